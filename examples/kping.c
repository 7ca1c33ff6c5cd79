/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rping as a module of the kernel, and as a program: the same source, the kernel's verbs alone.
 *
 *     cc kping.c $(pkg-config --cflags --libs kverbs) -o kping
 *     kping server=1 port=7174 &
 *     kping addr=127.0.0.1 port=7174 count=3 verbose=1
 *
 * As a module: echo 'obj-m := kping.o' >Kbuild; make -C /lib/modules/$(uname -r)/build M=$PWD; then
 * insmod kping.ko with the same parameters. It speaks with rping of rdma-core: for each ping the
 * client tells where the data is, the server reads it, is told where to write, and writes it back.
 */
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

MODULE_DESCRIPTION("RDMA ping, client and server");
MODULE_LICENSE("Dual BSD/GPL");

/* What a post says of the first work request that it could not take. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 19, 0)
#define BAD_WR(type) struct type
#else
#define BAD_WR(type) const struct type
#endif

static bool server;
module_param(server, bool, 0444);
MODULE_PARM_DESC(server, "wait for a client, and end with it");
static char *addr = "127.0.0.1";
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address of the server, for both");
static ushort port = 7174;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "where the server listens");
static int count = 1;
module_param(count, int, 0444);
MODULE_PARM_DESC(count, "of pings; 0: until it is stopped");
static int size = 64;
module_param(size, int, 0444);
MODULE_PARM_DESC(size, "bytes of a ping, 16 to 65536");
static bool verbose;
module_param(verbose, bool, 0444);
MODULE_PARM_DESC(verbose, "print what is sent and received");

enum { IS_RESOLVED, IS_REQUESTED, IS_CONNECTED, HAS_MESSAGE, HAS_READ, HAS_WRITTEN, HAS_FAILED };

/* What a client says of its memory; servers answer with one that says nothing. */
struct info {
    __be64 buf;
    __be32 rkey;
    __be32 size;
};

struct kping {
    unsigned long events; /* bits of the enum, set by handlers */
    wait_queue_head_t wait;
    struct rdma_cm_id *listener, *id;
    struct ib_pd *pd;
    struct ib_cq *cq;
    struct ib_mr *mr;
    bool registered;
    struct info in, out; /* a receive and a send at a time */
    u64 in_dma, out_dma;
    char *ping, *pong;
    u64 ping_dma, pong_dma;
};

static struct task_struct *thread;

static void happened(struct kping *k, int what)
{
    set_bit(what, &k->events);
    wake_up_interruptible(&k->wait);
}

static int wait_for(struct kping *k, int what)
{
    int ret = wait_event_interruptible(k->wait, test_bit(what, &k->events) ||
                                                    test_bit(HAS_FAILED, &k->events) ||
                                                    kthread_should_stop());
    if (test_and_clear_bit(what, &k->events))
        return 0;
    return ret ? ret : -EPIPE;
}

static int on_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct kping *k = id->context;

    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(id, 2000))
            happened(k, HAS_FAILED);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        happened(k, IS_RESOLVED);
        break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (k->id)
            return -EBUSY; /* one client is enough: the new id goes */
        k->id = id;
        happened(k, IS_REQUESTED);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        happened(k, IS_CONNECTED);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        happened(k, HAS_FAILED);
        break;
    default:
        pr_err("kping: CM event %d, status %d\n", event->event, event->status);
        happened(k, HAS_FAILED);
    }
    return 0;
}

static void on_completion(struct ib_cq *cq, void *context)
{
    struct kping *k = context;
    struct ib_wc wc;

    do {
        while (ib_poll_cq(cq, 1, &wc) == 1) {
            if (wc.status != IB_WC_SUCCESS) {
                if (wc.status != IB_WC_WR_FLUSH_ERR)
                    pr_err("kping: opcode %d, status %d\n", wc.opcode, wc.status);
                happened(k, HAS_FAILED);
            } else if (wc.opcode == IB_WC_RECV) {
                happened(k, HAS_MESSAGE);
            } else if (wc.opcode == IB_WC_RDMA_READ) {
                happened(k, HAS_READ);
            } else if (wc.opcode == IB_WC_RDMA_WRITE) {
                happened(k, HAS_WRITTEN);
            }
        }
    } while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static int post_recv(struct kping *k)
{
    struct ib_sge sge = {.addr = k->in_dma, .length = sizeof(k->in), .lkey = k->pd->local_dma_lkey};
    struct ib_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    BAD_WR(ib_recv_wr) * bad;

    return ib_post_recv(k->id->qp, &wr, &bad);
}

static int send_info(struct kping *k, u64 buf, u32 rkey, u32 length)
{
    struct ib_sge sge = {
        .addr = k->out_dma, .length = sizeof(k->out), .lkey = k->pd->local_dma_lkey};
    struct ib_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED};
    BAD_WR(ib_send_wr) * bad;

    k->out.buf = cpu_to_be64(buf);
    k->out.rkey = cpu_to_be32(rkey);
    k->out.size = cpu_to_be32(length);
    return ib_post_send(k->id->qp, &wr, &bad);
}

/* The memory gets a new key each time; what it was registered for before ends with that. */
static int register_memory(struct kping *k, u64 dma, u32 length, int access)
{
    struct ib_reg_wr reg = {.wr = {.opcode = IB_WR_REG_MR}, .mr = k->mr, .access = access};
    struct ib_send_wr inv = {.next = &reg.wr, .opcode = IB_WR_LOCAL_INV};
    BAD_WR(ib_send_wr) * bad;
    struct scatterlist sg;

    sg_init_table(&sg, 1);
    sg_dma_address(&sg) = dma;
    sg_dma_len(&sg) = length;
    inv.ex.invalidate_rkey = k->mr->rkey;
    if (ib_map_mr_sg(k->mr, &sg, 1, NULL, PAGE_SIZE) != 1)
        return -EINVAL;
    ib_update_fast_reg_key(k->mr, ib_inc_rkey(k->mr->rkey));
    reg.key = k->mr->rkey;
    if (!k->registered) {
        k->registered = true;
        return ib_post_send(k->id->qp, &reg.wr, &bad);
    }
    return ib_post_send(k->id->qp, &inv, &bad);
}

static int rdma(struct kping *k, enum ib_wr_opcode opcode, u32 lkey, u32 length)
{
    struct ib_sge sge = {.addr = k->ping_dma, .length = length, .lkey = lkey};
    struct ib_rdma_wr wr = {
        .wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IB_SEND_SIGNALED},
        .remote_addr = be64_to_cpu(k->in.buf),
        .rkey = be32_to_cpu(k->in.rkey)};
    BAD_WR(ib_send_wr) * bad;
    int ret = ib_post_send(k->id->qp, &wr.wr, &bad);

    return ret ? ret : wait_for(k, opcode == IB_WR_RDMA_READ ? HAS_READ : HAS_WRITTEN);
}

static void make_address(struct sockaddr_in *sin)
{
    memset(sin, 0, sizeof(*sin));
    sin->sin_family = AF_INET;
    sin->sin_port = htons(port);
    sin->sin_addr.s_addr = in_aton(addr);
}

static u64 map(struct kping *k, void *p, size_t length)
{
    return ib_dma_map_single(k->id->device, p, length, DMA_BIDIRECTIONAL);
}

static void unmap(struct kping *k, u64 dma, size_t length)
{
    if (dma)
        ib_dma_unmap_single(k->id->device, dma, length, DMA_BIDIRECTIONAL);
}

static int setup(struct kping *k)
{
    struct ib_cq_init_attr cq_attr = {.cqe = 64};
    struct ib_qp_init_attr qp_attr = {
        .cap = {.max_send_wr = 32, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
        .sq_sig_type = IB_SIGNAL_REQ_WR,
        .qp_type = IB_QPT_RC,
    };
    int ret;

    k->pd = ib_alloc_pd(k->id->device, 0);
    if (IS_ERR(k->pd))
        return PTR_ERR(k->pd);
    k->cq = ib_create_cq(k->id->device, on_completion, NULL, k, &cq_attr);
    if (IS_ERR(k->cq))
        return PTR_ERR(k->cq);
    ret = ib_req_notify_cq(k->cq, IB_CQ_NEXT_COMP);
    if (ret)
        return ret;
    qp_attr.send_cq = qp_attr.recv_cq = k->cq;
    ret = rdma_create_qp(k->id, k->pd, &qp_attr);
    if (ret)
        return ret;
    k->mr = ib_alloc_mr(k->pd, IB_MR_TYPE_MEM_REG, size / PAGE_SIZE + 2);
    if (IS_ERR(k->mr))
        return PTR_ERR(k->mr);
    k->ping = kzalloc(size, GFP_KERNEL);
    k->pong = kzalloc(size, GFP_KERNEL);
    if (!k->ping || !k->pong)
        return -ENOMEM;
    k->in_dma = map(k, &k->in, sizeof(k->in));
    k->out_dma = map(k, &k->out, sizeof(k->out));
    k->ping_dma = map(k, k->ping, size);
    k->pong_dma = map(k, k->pong, size);
    return post_recv(k);
}

static void teardown(struct kping *k)
{
    if (k->id && k->id->qp)
        rdma_destroy_qp(k->id);
    if (!IS_ERR_OR_NULL(k->mr))
        ib_dereg_mr(k->mr);
    if (!IS_ERR_OR_NULL(k->cq))
        ib_destroy_cq(k->cq);
    unmap(k, k->in_dma, sizeof(k->in));
    unmap(k, k->out_dma, sizeof(k->out));
    unmap(k, k->ping_dma, size);
    unmap(k, k->pong_dma, size);
    kfree(k->ping);
    kfree(k->pong);
    if (!IS_ERR_OR_NULL(k->pd))
        ib_dealloc_pd(k->pd);
    if (!IS_ERR_OR_NULL(k->id))
        rdma_destroy_id(k->id);
    if (!IS_ERR_OR_NULL(k->listener))
        rdma_destroy_id(k->listener);
}

/* Tells the server of memory, and waits for its answer. */
static int advertise(struct kping *k, u64 dma, int access)
{
    int ret = register_memory(k, dma, size, access);

    if (!ret)
        ret = send_info(k, dma, k->mr->rkey, size);
    if (!ret)
        ret = wait_for(k, HAS_MESSAGE);
    return ret ? ret : post_recv(k);
}

static int ping(struct kping *k, int number)
{
    int i, n = scnprintf(k->ping, size, "rdma-ping-%d: ", number), ret;

    for (i = n; i < size - 1; i++)
        k->ping[i] = 'A' + (number + i - n) % 58;
    ret = advertise(k, k->ping_dma, IB_ACCESS_REMOTE_READ);
    if (!ret)
        ret = advertise(k, k->pong_dma, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
    if (ret)
        return ret;
    if (memcmp(k->ping, k->pong, size)) {
        pr_err("kping: what came back is something else\n");
        return -EIO;
    }
    if (verbose)
        pr_info("kping: ping data: %.64s\n", k->pong);
    return 0;
}

static int run_client(struct kping *k)
{
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
    struct sockaddr_in sin;
    int i, ret;

    make_address(&sin);
    k->id = rdma_create_id(&init_net, on_cm_event, k, RDMA_PS_TCP, IB_QPT_RC);
    if (IS_ERR(k->id))
        return PTR_ERR(k->id);
    ret = rdma_resolve_addr(k->id, NULL, (struct sockaddr *)&sin, 2000);
    if (!ret)
        ret = wait_for(k, IS_RESOLVED);
    if (!ret)
        ret = setup(k);
    if (!ret)
        ret = rdma_connect(k->id, &param);
    if (!ret)
        ret = wait_for(k, IS_CONNECTED);
    if (ret)
        return ret;
    for (i = 0; !ret && (count == 0 || i < count) && !kthread_should_stop(); i++)
        ret = ping(k, i);
    rdma_disconnect(k->id);
    return ret;
}

/* One ping, from the message that tells where it is. */
static int pong(struct kping *k)
{
    u32 length = be32_to_cpu(k->in.size);
    int ret;

    if (length > (u32)size)
        return -EMSGSIZE;
    ret = register_memory(k, k->ping_dma, length, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
    if (!ret)
        ret = rdma(k, IB_WR_RDMA_READ, k->mr->lkey, length);
    if (!ret && verbose)
        pr_info("kping: server ping data: %.*s\n", min_t(int, length, 64), k->ping);
    if (!ret)
        ret = post_recv(k);
    if (!ret)
        ret = send_info(k, 0, 0, 0);
    if (!ret)
        ret = wait_for(k, HAS_MESSAGE);
    if (!ret)
        ret = rdma(k, IB_WR_RDMA_WRITE, k->pd->local_dma_lkey, length);
    if (!ret)
        ret = post_recv(k);
    return ret ? ret : send_info(k, 0, 0, 0);
}

static int run_server(struct kping *k)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    struct sockaddr_in sin;
    int ret;

    make_address(&sin);
    k->listener = rdma_create_id(&init_net, on_cm_event, k, RDMA_PS_TCP, IB_QPT_RC);
    if (IS_ERR(k->listener))
        return PTR_ERR(k->listener);
    ret = rdma_bind_addr(k->listener, (struct sockaddr *)&sin);
    if (!ret)
        ret = rdma_listen(k->listener, 1);
    if (!ret)
        ret = wait_for(k, IS_REQUESTED);
    if (!ret)
        ret = setup(k);
    if (!ret)
        ret = rdma_accept(k->id, &param);
    if (!ret)
        ret = wait_for(k, IS_CONNECTED);
    if (ret)
        return ret;
    while (!wait_for(k, HAS_MESSAGE)) {
        ret = pong(k);
        if (ret)
            return ret;
    }
    return 0; /* the client has gone */
}

static int run(void *data)
{
    struct kping *k = data;
    int ret = server ? run_server(k) : run_client(k);

    if (ret)
        pr_err("kping: %s: error %d\n", server ? "server" : "client", ret);
    teardown(k);
    kfree(k);
    return ret;
}

static int __init kping_init(void)
{
    struct kping *k;

    if (size < 16 || size > 65536)
        return -EINVAL;
    k = kzalloc(sizeof(*k), GFP_KERNEL);
    if (!k)
        return -ENOMEM;
    init_waitqueue_head(&k->wait);
    thread = kthread_create(run, k, "kping");
    if (IS_ERR(thread)) {
        kfree(k);
        return PTR_ERR(thread);
    }
    get_task_struct(thread); /* it may end before it is stopped */
    wake_up_process(thread);
    return 0;
}

static void __exit kping_exit(void)
{
    kthread_stop(thread);
    put_task_struct(thread);
}

module_init(kping_init);
module_exit(kping_exit);

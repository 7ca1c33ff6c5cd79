/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/sched.h>

static struct ib_device *rnic, *roce;

static void note(struct ib_device *device)
{
    if (device->node_type == RDMA_NODE_RNIC)
        rnic = device;
    else
        roce = device;
}

static void look(void)
{
    struct ib_client c = {.name = "kit", .add = note};
    assert_int_equal(ib_register_client(&c), 0);
    ib_unregister_client(&c);
}

struct ib_device *kit_device(void)
{
    look();
    assert_non_null(rnic);
    return rnic;
}

struct ib_device *kit_roce(void)
{
    look();
    assert_non_null(roce);
    return roce;
}

void kit_devices(void)
{
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "w0=iwarp:lo r0=roce:lo", 1);
}

void kit_wait(struct end *e, enum rdma_cm_event_type type)
{
    assert_true(wait_for_completion_timeout(&e->got[type], 30 * HZ));
}

void kit_make(struct end *e, ib_comp_handler handler, const struct kit_options *o)
{
    struct ib_device *d = e->id->device;
    assert_non_null(d);
    e->pd = ib_alloc_pd(d, 0);
    assert_false(IS_ERR(e->pd));
    struct ib_cq_init_attr cq = {.cqe = 256};
    e->cq = ib_create_cq(d, handler, NULL, o->context, &cq);
    assert_false(IS_ERR(e->cq));
    struct ib_qp_init_attr qp = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 64,
                .max_recv_wr = 64,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 32},
        .sq_sig_type = o->signal,
        .qp_type = IB_QPT_RC,
    };
    assert_int_equal(rdma_create_qp(e->id, e->pd, &qp), 0);
    assert_true(qp.cap.max_send_wr >= 64 && qp.cap.max_recv_sge >= 4);
    e->qp = e->id->qp;
    e->buf = ib_dma_alloc_coherent(d, KIT_SIZE, &e->dma, GFP_KERNEL);
    assert_non_null(e->buf);
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct end *e = id->context;
    WRITE_ONCE(e->status, event->status);
    int returns = e->returns && event->event == e->at ? e->returns : 0;
    complete(&e->got[event->event]);
    return returns;
}

/* A new id inherits the listener's handler and context: the latter is changed at once. */
static int on_request(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct pair *p = id->context;
    assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_not_equal(id, p->listener);
    p->b.id = id;
    id->context = &p->b;
    id->event_handler = on_event;
    if (!p->options.stop_at_request) {
        kit_make(&p->b, p->options.on_b, &p->options);
        struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
        assert_int_equal(rdma_accept(id, &param), 0);
    }
    complete(&p->requested);
    return 0;
}

static void end_init(struct end *e, struct pair *p)
{
    e->pair = p;
    for (int i = 0; i < KIT_EVENTS; i++)
        init_completion(&e->got[i]);
}

void kit_listen(struct pair *p)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->device = kit_device();
    init_completion(&p->requested);
    end_init(&p->a, p);
    end_init(&p->b, p);
    p->listener = rdma_create_id(&init_net, on_request, p, RDMA_PS_TCP, IB_QPT_RC);
    assert_false(IS_ERR(p->listener));
    assert_int_equal(rdma_bind_addr(p->listener, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_listen(p->listener, 8), 0);
}

void kit_resolve(struct pair *p, struct end *e)
{
    e->id = rdma_create_id(&init_net, on_event, e, RDMA_PS_TCP, IB_QPT_RC);
    assert_false(IS_ERR(e->id));
    assert_int_equal(
        rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&p->listener->route.addr.src_addr, 2000),
        0);
    kit_wait(e, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(e->id, 2000), 0);
    kit_wait(e, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void kit_open(struct pair *p, const struct kit_options *o)
{
    *p = (struct pair){.options = o ? *o : (struct kit_options){.signal = IB_SIGNAL_REQ_WR}};
    kit_listen(p);
    kit_resolve(p, &p->a);
    kit_make(&p->a, p->options.on_a, &p->options);
    struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
    assert_int_equal(rdma_connect(p->a.id, &param), 0);
    wait_for_completion(&p->requested);
    if (p->options.stop_at_request)
        return;
    kit_wait(&p->a, RDMA_CM_EVENT_ESTABLISHED);
    kit_wait(&p->b, RDMA_CM_EVENT_ESTABLISHED);
}

static void close_all_but_qp(struct end *e)
{
    assert_int_equal(ib_destroy_cq(e->cq), 0);
    ib_dma_free_coherent(e->pd->device, KIT_SIZE, e->buf, e->dma);
    ib_dealloc_pd(e->pd);
}

static void close_end(struct end *e)
{
    if (!e->pd)
        return;
    rdma_destroy_qp(e->id);
    assert_null(e->id->qp);
    close_all_but_qp(e);
}

void kit_close_rest(struct end *e)
{
    assert_int_equal(ib_destroy_qp(e->qp), 0);
    close_all_but_qp(e);
    *e = (struct end){.pd = NULL};
}

void kit_init_qp(struct ib_qp *qp)
{
    struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS),
        0);
}

void kit_close(struct pair *p)
{
    close_end(&p->a);
    close_end(&p->b);
    if (p->a.id)
        rdma_destroy_id(p->a.id);
    if (p->b.id)
        rdma_destroy_id(p->b.id);
    rdma_destroy_id(p->listener);
}

struct ib_wc kit_poll(struct ib_cq *cq)
{
    struct ib_wc wc;
    unsigned long end = jiffies + 30 * HZ;
    int n;
    while ((n = ib_poll_cq(cq, 1, &wc)) == 0 && time_before(jiffies, end))
        cond_resched();
    assert_int_equal(n, 1);
    return wc;
}

struct ib_sge kit_sge(const struct end *e, u64 offset, u32 length)
{
    return (struct ib_sge){e->dma + offset, length, e->pd->local_dma_lkey};
}

int kit_recv(struct end *e, u64 wr_id, u64 offset, u32 length)
{
    struct ib_sge sge = kit_sge(e, offset, length);
    struct ib_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ib_post_recv(e->qp, &wr, &bad);
}

int kit_send(struct end *e, u64 wr_id, u64 offset, u32 length)
{
    struct ib_sge sge = kit_sge(e, offset, length);
    struct ib_send_wr wr = {.wr_id = wr_id,
                            .sg_list = &sge,
                            .num_sge = 1,
                            .opcode = IB_WR_SEND,
                            .send_flags = IB_SEND_SIGNALED},
                      *bad;
    return ib_post_send(e->qp, &wr, &bad);
}

int kit_register(struct end *e, struct ib_mr *mr, u64 offset, u32 length, int access)
{
    struct scatterlist sg;
    sg_init_table(&sg, 1);
    sg_dma_address(&sg) = e->dma + offset;
    sg_dma_len(&sg) = length;
    assert_int_equal(ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
    ib_update_fast_reg_key(mr, (u8)ib_inc_rkey(mr->rkey));
    struct ib_reg_wr wr = {.wr = {.opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED},
                           .mr = mr,
                           .key = mr->rkey,
                           .access = access};
    struct ib_send_wr *bad;
    return ib_post_send(e->qp, &wr.wr, &bad);
}

int kit_invalidate(struct end *e, u32 key)
{
    struct ib_send_wr wr = {.opcode = IB_WR_LOCAL_INV,
                            .send_flags = IB_SEND_SIGNALED,
                            .ex.invalidate_rkey = key},
                      *bad;
    return ib_post_send(e->qp, &wr, &bad);
}

int kit_rdma(struct end *e, enum ib_wr_opcode opcode, u64 wr_id, u64 offset, u32 length, u64 to,
             u32 rkey)
{
    struct ib_sge sge = kit_sge(e, offset, length);
    struct ib_rdma_wr wr = {.wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IB_SEND_SIGNALED},
                            .remote_addr = to,
                            .rkey = rkey};
    struct ib_send_wr *bad;
    return ib_post_send(e->qp, &wr.wr, &bad);
}

void kit_stderr(char *text, size_t size, void (*call)(void *arg), void *arg)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    call(arg);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(f);
    size_t n = fread(text, 1, size - 1, f);
    text[n] = 0;
    fclose(f);
}

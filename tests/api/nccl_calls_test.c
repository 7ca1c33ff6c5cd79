/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of NCCL's InfiniBand transport, in its order: it takes the functions from the library
 * by name and version, connects by GID and number with packet sequence numbers of 0, has the
 * receiver write into the sender's memory where data is wanted, writes that with an immediate
 * behind it, reads over a queue pair that is its own peer, and resets what has failed.
 */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WAIT_S 30
#define BYTES  (1 << 20)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define FUNCTIONS(X)                                                                               \
    X(fork_init, int, (void))                                                                      \
    X(get_device_list, struct ibv_device **, (int *))                                              \
    X(free_device_list, void, (struct ibv_device **))                                              \
    X(get_device_name, const char *, (struct ibv_device *))                                        \
    X(open_device, struct ibv_context *, (struct ibv_device *))                                    \
    X(close_device, int, (struct ibv_context *))                                                   \
    X(get_async_event, int, (struct ibv_context *, struct ibv_async_event *))                      \
    X(ack_async_event, void, (struct ibv_async_event *))                                           \
    X(query_device, int, (struct ibv_context *, struct ibv_device_attr *))                         \
    X(query_port, int, (struct ibv_context *, uint8_t, struct ibv_port_attr *))                    \
    X(query_gid, int, (struct ibv_context *, uint8_t, int, union ibv_gid *))                       \
    X(query_qp, int, (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *))      \
    X(alloc_pd, struct ibv_pd *, (struct ibv_context *))                                           \
    X(dealloc_pd, int, (struct ibv_pd *))                                                          \
    X(reg_mr, struct ibv_mr *, (struct ibv_pd *, void *, size_t, int))                             \
    X(dereg_mr, int, (struct ibv_mr *))                                                            \
    X(create_cq, struct ibv_cq *,                                                                  \
      (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                         \
    X(destroy_cq, int, (struct ibv_cq *))                                                          \
    X(create_qp, struct ibv_qp *, (struct ibv_pd *, struct ibv_qp_init_attr *))                    \
    X(modify_qp, int, (struct ibv_qp *, struct ibv_qp_attr *, int))                                \
    X(destroy_qp, int, (struct ibv_qp *))                                                          \
    X(event_type_str, const char *, (enum ibv_event_type))

static struct {
#define X(name, type, arguments) type(*name) arguments;
    FUNCTIONS(X)
#undef X
} call;

struct end {
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint64_t *data;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint8_t gid_index;
static struct end sender, receiver;

static void load(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    assert_non_null(library);
#define X(name, type, arguments)                                                                   \
    *(void **)&call.name = dlvsym(library, "ibv_" #name, "IBVERBS_1.1");                           \
    assert_non_null(call.name);
    FUNCTIONS(X)
#undef X
    assert_non_null(dlvsym(library, "ibv_reg_mr_iova2", "IBVERBS_1.8"));
    assert_non_null(dlvsym(library, "ibv_set_ece", "IBVERBS_1.10"));
    assert_non_null(dlvsym(library, "ibv_reg_dmabuf_mr", "IBVERBS_1.12"));
}

/** The one GID that is an IPv4 address, so that it asks for no file of the kernel's. */
static void choose_gid(void)
{
    int found = 0;
    assert_true(port.gid_tbl_len > 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        union ibv_gid g;
        assert_int_equal(call.query_gid(ctx, 1, i, &g), 0);
        if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)g.raw))
            continue;
        gid = g;
        gid_index = (uint8_t)i;
        found++;
    }
    assert_int_equal(found, 1);
    assert_int_equal(gid_index, 0);
}

static int open_it(void **state)
{
    struct ibv_device_attr attr;
    int n;
    (void)state;
    load();
    call.fork_init();
    struct ibv_device **list = call.get_device_list(&n);
    assert_int_equal(n, 1);
    assert_string_equal(call.get_device_name(list[0]), "r0");
    ctx = call.open_device(list[0]);
    assert_non_null(ctx);
    call.free_device_list(list);
    assert_int_equal(call.query_device(ctx, &attr), 0);
    assert_int_equal(attr.phys_port_cnt, 1);
    memset(&port, 0, sizeof(port));
    assert_int_equal(call.query_port(ctx, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    choose_gid();
    pd = call.alloc_pd(ctx);
    assert_non_null(pd);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    assert_int_equal(call.dealloc_pd(pd), 0);
    return call.close_device(ctx);
}

/* ---- queue pairs ---- */

static void to_init(struct end *e)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE};
    assert_int_equal(
        call.modify_qp(e->qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
}

static void make(struct end *e)
{
    e->cq = call.create_cq(ctx, 256, e, NULL, 0);
    assert_non_null(e->cq);
    struct ibv_qp_init_attr init = {.qp_context = e,
                                    .send_cq = e->cq,
                                    .recv_cq = e->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {128, 64, 1, 1, 64}};
    e->qp = call.create_qp(pd, &init);
    assert_non_null(e->qp);
    e->data = calloc(1, BYTES);
    e->mr = call.reg_mr(pd, e->data, BYTES, IBV_ACCESS_LOCAL_WRITE | REMOTE);
    assert_non_null(e->mr);
    to_init(e);
}

static void drop(struct end *e)
{
    assert_int_equal(call.destroy_qp(e->qp), 0);
    assert_int_equal(call.destroy_cq(e->cq), 0);
    assert_int_equal(call.dereg_mr(e->mr), 0);
    free(e->data);
}

static void connect_to(struct end *e, uint32_t number)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = port.active_mtu,
        .dest_qp_num = number,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = gid, .sgid_index = gid_index, .hop_limit = 255}},
    };
    assert_int_equal(call.modify_qp(e->qp, &attr,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                        IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    assert_int_equal(call.modify_qp(e->qp, &attr,
                                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static struct ibv_wc next(struct end *e)
{
    time_t end = time(NULL) + WAIT_S;
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0 && time(NULL) < end)
        ;
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return wc;
}

/* ---- what it does with them ---- */

/** One message: the receiver says where it wants it, and the sender writes it there in two parts.
 */
static void exchange(uint32_t size)
{
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};
    assert_int_equal(ibv_post_recv(receiver.qp, &recv, &bad_recv), 0);
    uint64_t wish[2] = {(uintptr_t)receiver.data, receiver.mr->rkey};
    struct ibv_sge sge = {(uintptr_t)wish, sizeof(wish), 0};
    struct ibv_send_wr *bad, clear = {.sg_list = &sge,
                                      .num_sge = 1,
                                      .opcode = IBV_WR_RDMA_WRITE,
                                      .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                                      .wr.rdma = {(uintptr_t)sender.data, sender.mr->rkey}};
    assert_int_equal(ibv_post_send(receiver.qp, &clear, &bad), 0);
    assert_int_equal(next(&receiver).opcode, IBV_WC_RDMA_WRITE);
    assert_true(sender.data[0] == wish[0] && sender.data[1] == wish[1]); /* it is complete */

    memset(sender.data, (int)size, size);
    struct ibv_sge all = {(uintptr_t)sender.data, size, sender.mr->lkey};
    struct ibv_send_wr last = {.wr_id = 2,
                               .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = htonl(size),
                               .wr.rdma = {wish[0], (uint32_t)wish[1]}};
    struct ibv_send_wr first = {.next = &last,
                                .sg_list = &all,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = last.wr.rdma};
    assert_int_equal(ibv_post_send(sender.qp, &first, &bad), 0);
    struct ibv_wc wc = next(&receiver);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, htonl(size));
    assert_memory_equal(receiver.data, sender.data, size);
    assert_int_equal(next(&sender).wr_id, 2);
}

static void begin(void)
{
    make(&sender);
    make(&receiver);
    connect_to(&sender, receiver.qp->qp_num);
    connect_to(&receiver, sender.qp->qp_num);
}

static void end(void)
{
    drop(&sender);
    drop(&receiver);
}

static void messages(void **state)
{
    (void)state;
    begin();
    for (uint32_t size = 8; size <= BYTES; size *= 2)
        exchange(size);
    end();
}

/** What flushes a GPU's writes: a read of four bytes over a queue pair that is its own peer. */
static void flush(void **state)
{
    struct end self;
    (void)state;
    make(&self);
    connect_to(&self, self.qp->qp_num);
    self.data[0] = 5;
    for (int i = 0; i < 10; i++) {
        struct ibv_sge sge = {(uintptr_t)(self.data + 1), 4, self.mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_RDMA_READ,
                                       .send_flags = IBV_SEND_SIGNALED,
                                       .wr.rdma = {(uintptr_t)self.data, self.mr->rkey}};
        assert_int_equal(ibv_post_send(self.qp, &wr, &bad), 0);
        assert_int_equal(next(&self).opcode, IBV_WC_RDMA_READ);
        assert_true(self.data[1] == 5);
    }
    drop(&self);
}

static void counters(void **state)
{
    (void)state;
    begin();
    receiver.data[0] = 40;
    struct ibv_sge sge = {(uintptr_t)sender.data, 8, sender.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   .send_flags = IBV_SEND_SIGNALED};
    wr.wr.atomic.remote_addr = (uintptr_t)receiver.data;
    wr.wr.atomic.rkey = receiver.mr->rkey;
    wr.wr.atomic.compare_add = 2;
    assert_int_equal(ibv_post_send(sender.qp, &wr, &bad), 0);
    assert_int_equal(next(&sender).opcode, IBV_WC_FETCH_ADD);
    assert_true(sender.data[0] == 40 && receiver.data[0] == 42);
    end();
}

static void again(struct end *e)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_init_attr init;
    assert_int_equal(call.modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(call.query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(call.modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
    to_init(e);
}

/** Both ends fail, and come together anew with the numbers that they have. */
static void recovery(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 5; i++) {
        exchange(4096);
        again(&sender);
        again(&receiver);
        connect_to(i % 2 ? &sender : &receiver, (i % 2 ? &receiver : &sender)->qp->qp_num);
        connect_to(i % 2 ? &receiver : &sender, (i % 2 ? &sender : &receiver)->qp->qp_num);
    }
    exchange(BYTES);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(flush),
        cmocka_unit_test(counters),
        cmocka_unit_test(recovery),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, open_it, close_it);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that are connected by GID and number, without rdma_cm: whoever is ready first,
 * whoever sends first, after RESET again; and what becomes of one whose peer goes, or never comes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES  4096
#define HALF   (BYTES / 2)
#define WAIT_S 30
#define LOCAL  (IBV_ACCESS_LOCAL_WRITE)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t data[BYTES / 8];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct end a, b;

static void make(struct end *e)
{
    e->cq = ibv_create_cq(ctx, 32, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = e->cq, .recv_cq = e->cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    e->qp = ibv_create_qp(pd, &init);
    assert_non_null(e->qp);
    memset(e->data, 0, sizeof(e->data));
    e->mr = ibv_reg_mr(pd, e->data, sizeof(e->data), LOCAL | REMOTE);
    assert_non_null(e->mr);
}

static void drop_qp(struct end *e)
{
    if (e->qp)
        assert_int_equal(ibv_destroy_qp(e->qp), 0);
    e->qp = NULL;
}

static void drop(struct end *e)
{
    drop_qp(e);
    assert_int_equal(ibv_dereg_mr(e->mr), 0);
    assert_int_equal(ibv_destroy_cq(e->cq), 0);
}

static int setup(void **state)
{
    (void)state;
    make(&a);
    make(&b);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drop(&a);
    drop(&b);
    return 0;
}

/* ---- the way to RTS ---- */

static void to_init(struct end *e)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = LOCAL | REMOTE};
    assert_int_equal(
        ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
}

/** @param gid  of the peer. @return what ibv_modify_qp() returned */
static int try_rtr(struct end *e, uint32_t peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.port_num = 1,
                    .is_global = 1,
                    .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 1}},
    };
    return ibv_modify_qp(e->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void to_rtr(struct end *e, uint32_t peer)
{
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    assert_int_equal(try_rtr(e, peer, &gid), 0);
}

static void to_rts(struct end *e)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 1, .rnr_retry = 7, .max_rd_atomic = 1};
    assert_int_equal(ibv_modify_qp(e->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static void to_state(struct end *e, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

static enum ibv_qp_state state_of(struct end *e)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

static void connect_all(void)
{
    to_init(&a);
    to_init(&b);
    to_rtr(&a, b.qp->qp_num);
    to_rtr(&b, a.qp->qp_num);
    to_rts(&a);
    to_rts(&b);
}

/* ---- work ---- */

static void receive(struct end *e)
{
    struct ibv_sge sge = {(uintptr_t)e->data, HALF, e->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static int post(struct end *from, struct end *to, enum ibv_wr_opcode op)
{
    struct ibv_sge sge = {(uintptr_t)from->data + HALF, 8, from->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = op,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = op,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = 0x1234};
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->data;
        wr.wr.atomic.rkey = to->mr->rkey;
        wr.wr.atomic.compare_add = 5;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)to->data;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    return ibv_post_send(from->qp, &wr, &bad);
}

static struct ibv_wc next(struct end *e)
{
    struct timespec now, first;
    struct ibv_wc wc;
    int n;
    clock_gettime(CLOCK_MONOTONIC, &first);
    do {
        n = ibv_poll_cq(e->cq, 1, &wc);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (n == 0 && now.tv_sec - first.tv_sec < WAIT_S);
    assert_int_equal(n, 1);
    return wc;
}

static void expect(struct end *e, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next(e);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.qp_num, e->qp->qp_num);
}

static void send_once(struct end *from, struct end *to, uint64_t value)
{
    receive(to);
    from->data[HALF / 8] = value;
    assert_int_equal(post(from, to, IBV_WR_SEND), 0);
    expect(to, 77, IBV_WC_SUCCESS);
    expect(from, IBV_WR_SEND, IBV_WC_SUCCESS);
    assert_true(to->data[0] == value);
}

/* ---- tests ---- */

static void both_ways(void **state)
{
    (void)state;
    connect_all();
    send_once(&a, &b, 1);
    send_once(&b, &a, 2);
    assert_int_equal(state_of(&a), IBV_QPS_RTS);
}

/** Neither end has to be spoken to first. */
static void the_other_first(void **state)
{
    (void)state;
    connect_all();
    send_once(&b, &a, 3);
    send_once(&a, &b, 4);
}

static void every_opcode(void **state)
{
    (void)state;
    connect_all();
    a.data[HALF / 8] = 9;
    assert_int_equal(post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    assert_int_equal(post(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD), 0);
    expect(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS);
    assert_true(a.data[HALF / 8] == 9);
    assert_int_equal(post(&a, &b, IBV_WR_RDMA_READ), 0);
    expect(&a, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
    assert_true(a.data[HALF / 8] == 14);
    receive(&b);
    receive(&b);
    assert_int_equal(post(&a, &b, IBV_WR_SEND_WITH_IMM), 0);
    assert_int_equal(post(&a, &b, IBV_WR_RDMA_WRITE_WITH_IMM), 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next(&b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
        assert_int_equal(wc.imm_data, 0x1234);
    }
}

/** A peer that is late is waited for: what is posted meanwhile goes out then. */
static void late(struct end *first, struct end *second)
{
    to_init(&a);
    to_init(&b);
    to_rtr(first, second->qp->qp_num);
    to_rts(first);
    receive(second);
    first->data[HALF / 8] = 6;
    assert_int_equal(post(first, second, IBV_WR_SEND_WITH_IMM), 0);
    usleep(100000);
    to_rtr(second, first->qp->qp_num);
    expect(second, 77, IBV_WC_SUCCESS); /* it receives in RTR */
    assert_true(second->data[0] == 6);
    expect(first, IBV_WR_SEND_WITH_IMM, IBV_WC_SUCCESS);
    to_rts(second);
    send_once(second, first, 7);
}

static void late_a(void **state)
{
    (void)state;
    late(&b, &a);
}

static void late_b(void **state)
{
    (void)state;
    late(&a, &b);
}

/** Nothing happens until it sends: then its time runs out, and the send tells. */
static void peer_goes(void **state)
{
    struct ibv_wc wc;
    (void)state;
    connect_all();
    send_once(&a, &b, 8);
    receive(&b);
    drop_qp(&a);
    usleep(200000);
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    assert_int_equal(state_of(&b), IBV_QPS_RTS);
    assert_int_equal(post(&b, &a, IBV_WR_SEND), 0);
    expect(&b, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    expect(&b, 77, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(&b), IBV_QPS_ERR);
}

/** One that names a third is not accepted: its sends fail in their time, ours go on. */
static void not_asked_for(void **state)
{
    struct end c;
    (void)state;
    make(&c);
    connect_all();
    to_init(&c);
    to_rtr(&c, b.qp->qp_num);
    to_rts(&c);
    assert_int_equal(post(&c, &b, IBV_WR_SEND), 0);
    expect(&c, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    send_once(&a, &b, 10);
    drop(&c);
}

static void again_after_reset(void **state)
{
    uint32_t number = a.qp->qp_num;
    (void)state;
    for (int round = 0; round < 5; round++) {
        connect_all();
        send_once(&a, &b, 11);
        receive(&a); /* forgotten without a completion */
        to_state(&a, IBV_QPS_RESET);
        to_state(&b, IBV_QPS_RESET);
        assert_int_equal(a.qp->qp_num, number);
    }
    connect_all();
    send_once(&b, &a, 12);
}

/** One end is new before the other knows: its hello is kept for the other's next life. */
static void one_before_the_other(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct end *first = round ? &a : &b, *second = round ? &b : &a;
        connect_all();
        send_once(&a, &b, 13);
        to_state(first, IBV_QPS_RESET);
        to_init(first);
        to_rtr(first, second->qp->qp_num);
        to_rts(first);
        usleep(50000);
        to_state(second, IBV_QPS_RESET);
        to_init(second);
        to_rtr(second, first->qp->qp_num);
        to_rts(second);
        send_once(first, second, 14);
        to_state(&a, IBV_QPS_RESET);
        to_state(&b, IBV_QPS_RESET);
    }
}

static void to_error(void **state)
{
    (void)state;
    connect_all();
    receive(&a);
    to_state(&a, IBV_QPS_ERR);
    expect(&a, 77, IBV_WC_WR_FLUSH_ERR);
    usleep(50000);
    assert_int_equal(state_of(&b), IBV_QPS_RTS);
}

/** Nor does it hear that the peer's fails in the midst of it; its next send finds nobody. */
static void to_error_later(void **state)
{
    struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    (void)state;
    connect_all();
    send_once(&a, &b, 17);
    send_once(&b, &a, 18);
    to_state(&a, IBV_QPS_ERR);
    usleep(50000);
    assert_int_equal(state_of(&b), IBV_QPS_RTS);
    assert_int_equal(ibv_post_send(b.qp, &wr, &bad), 0);
    expect(&b, 5, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(state_of(&b), IBV_QPS_ERR);
}

/** What cannot be reached is refused, and changes nothing. */
static void no_way(void **state)
{
    const union ibv_gid four = {.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
                        six = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    union ibv_gid own;
    (void)state;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &own), 0);
    bool is_four = memcmp(&own, &four, 12) == 0;
    to_init(&a);
    to_init(&b);
    assert_int_equal(try_rtr(&a, a.qp->qp_num, &own), EOPNOTSUPP);
    assert_int_equal(try_rtr(&a, b.qp->qp_num, is_four ? &six : &four), EHOSTUNREACH);
    to_rtr(&a, b.qp->qp_num);
    to_rtr(&b, a.qp->qp_num);
    to_rts(&a);
    to_rts(&b);
    send_once(&a, &b, 16);
}

/* ---- the port ---- */

/** A connection to the port of a number. @return its descriptor or a negative errno */
static int call(uint32_t number)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(number >> 8)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

static void open_from_init_on(void **state)
{
    (void)state;
    assert_true(a.qp->qp_num >> 8 >= 1024);
    assert_int_equal(call(a.qp->qp_num), -ECONNREFUSED);
    to_init(&a);
    int fd = call(a.qp->qp_num);
    assert_true(fd >= 0);
    close(fd);
}

/** Whoever says something else is hung up on. */
static void garbage(void **state)
{
    static const char words[][64] = {"GET / HTTP/1.0\r\n\r\n", "MPA ID Req Frame\x40\x02\0\4abcd"};
    char answer[64];
    (void)state;
    connect_all();
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        int fd = call(a.qp->qp_num);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, words[i], sizeof(words[i]), MSG_NOSIGNAL), sizeof(words[i]));
        ssize_t n;
        while ((n = recv(fd, answer, sizeof(answer), 0)) > 0)
            ;
        close(fd);
    }
    send_once(&a, &b, 15);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(both_ways), T(the_other_first), T(every_opcode),      T(late_a),
        T(late_b),    T(peer_goes),       T(not_asked_for),     T(again_after_reset),
        T(to_error),  T(garbage),         T(open_from_init_on), T(one_before_the_other),
        T(no_way),    T(to_error_later),
    };
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    return failed;
}

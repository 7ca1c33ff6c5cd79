/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a queue pair through the public API: creation and attributes. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
     IBV_QP_MAX_QP_RD_ATOMIC)
#define EVERYTHING ((IBV_QP_DEST_QPN << 1) - 1)

/** A QP without connection. */
struct lone {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static void lone_open(struct lone *l)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_true(n > 0);
    l->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(l->context);
    l->pd = ibv_alloc_pd(l->context);
    l->cq = ibv_create_cq(l->context, 64, NULL, NULL, 0);
    assert_non_null(l->cq);
    struct ibv_qp_init_attr init = {
        .send_cq = l->cq,
        .recv_cq = l->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    l->qp = ibv_create_qp(l->pd, &init);
    assert_non_null(l->qp);
}

static void lone_close(struct lone *l)
{
    assert_int_equal(ibv_destroy_qp(l->qp), 0);
    assert_int_equal(ibv_destroy_cq(l->cq), 0);
    assert_int_equal(ibv_dealloc_pd(l->pd), 0);
    assert_int_equal(ibv_close_device(l->context), 0);
}

/* ---- creation ---- */

static const struct {
    uint32_t send, recv;
    bool send_cq, recv_cq;
    int error;
} queues[] = {
    {5, 7, true, true, 0},          {5, 0, true, true, 0},          {0, 7, true, true, 0},
    {0, 0, true, true, 0},          {5, 0, true, false, 0},         {0, 7, false, true, 0},
    {5, 7, true, false, EINVAL},    {5, 7, false, true, EINVAL},    {32768, 32768, true, true, 0},
    {32769, 1, true, true, EINVAL}, {1, 32769, true, true, EINVAL},
};

static void queues_of_every_size(void **state)
{
    struct lone l;
    (void)state;
    lone_open(&l);
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        struct ibv_qp_init_attr init = {.qp_context = &l,
                                        .send_cq = queues[i].send_cq ? l.cq : NULL,
                                        .recv_cq = queues[i].recv_cq ? l.cq : NULL,
                                        .qp_type = IBV_QPT_RC,
                                        .sq_sig_all = i % 2,
                                        .cap = {.max_send_wr = queues[i].send,
                                                .max_recv_wr = queues[i].recv,
                                                .max_send_sge = 16,
                                                .max_recv_sge = 16,
                                                .max_inline_data = 512}};
        struct ibv_qp_init_attr got;
        struct ibv_qp_attr attr;
        errno = 0;
        struct ibv_qp *qp = ibv_create_qp(l.pd, &init);
        assert_int_equal(qp ? 0 : errno, queues[i].error);
        if (!qp)
            continue;
        assert_true(init.cap.max_send_wr >= queues[i].send);
        assert_true(init.cap.max_recv_wr >= queues[i].recv);
        assert_true(init.cap.max_send_sge >= 16 && init.cap.max_recv_sge >= 16);
        assert_true(init.cap.max_inline_data >= 512);
        assert_int_equal(qp->state, IBV_QPS_RESET); /* and INIT, when it is queried, as with siw */
        assert_ptr_equal(qp->send_cq, init.send_cq);
        assert_ptr_equal(qp->recv_cq, init.recv_cq);
        assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &got), 0);
        assert_int_equal(attr.qp_state, IBV_QPS_INIT);
        assert_int_equal(attr.cur_qp_state, IBV_QPS_INIT);
        assert_memory_equal(&attr.cap, &init.cap, sizeof(init.cap));
        assert_memory_equal(&got.cap, &init.cap, sizeof(init.cap));
        assert_ptr_equal(got.qp_context, &l);
        assert_ptr_equal(got.send_cq, init.send_cq);
        assert_ptr_equal(got.recv_cq, init.recv_cq);
        assert_int_equal(got.qp_type, IBV_QPT_RC);
        assert_int_equal(got.sq_sig_all, i % 2);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    lone_close(&l);
}

static void a_queue_of_size_zero_takes_nothing(void **state)
{
    struct pair p;
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
    (void)state;
    pair_open(&p, &(struct pair_conf){.one_way = true});
    assert_int_equal(ibv_post_recv(p.a.id->qp, &recv, &bad_recv), ENOMEM);
    assert_ptr_equal(bad_recv, &recv);
    assert_int_equal(side_post(&p.b, &p.a, IBV_WR_SEND, 1, 0, 8, 0, 0), ENOMEM);
    side_recv(&p.b, 2, 0, 64);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 3, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).wr_id, 3);
    assert_int_equal(side_poll(&p.b).wr_id, 2);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 4, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

static void sig_all_completes_everything(void **state)
{
    struct pair p;
    struct ibv_send_wr *bad;
    (void)state;
    pair_open(&p, &(struct pair_conf){.sig_all = 1});
    for (unsigned i = 0; i < 10; i++) {
        struct ibv_send_wr wr = {
            .wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey}};
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        assert_int_equal(side_poll(&p.a).wr_id, i);
    }
    pair_close(&p, 1);
}

/* ---- attributes ---- */

#define FLUSH (3 << 8) /* IBV_ACCESS_FLUSH_GLOBAL, _PERSISTENT, which came with rdma-core 45 */

static const struct ibv_qp_attr init_attr = {
    .qp_state = IBV_QPS_INIT,
    .port_num = 1,
    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | FLUSH,
};

static const struct ibv_qp_attr rtr_attr = {
    .qp_state = IBV_QPS_RTR,
    .path_mtu = IBV_MTU_1024,
    .dest_qp_num = 0x123456,
    .rq_psn = 0xabcdef,
    .max_dest_rd_atomic = 9,
    .min_rnr_timer = 12,
    .ah_attr = {.port_num = 1, .dlid = 7, .sl = 3, .is_global = 1, .grh = {.hop_limit = 64}},
};

static void what_was_set_is_returned(void **state)
{
    struct lone l;
    struct ibv_qp_attr attr = init_attr, rts = {.qp_state = IBV_QPS_RTS};
    (void)state;
    lone_open(&l);
    assert_int_equal(ibv_modify_qp(l.qp, &attr, INIT_MASK), 0);
    struct ibv_qp_attr got = qp_query(l.qp, EVERYTHING);
    assert_int_equal(got.qp_state, IBV_QPS_INIT);
    assert_int_equal(got.qp_access_flags, init_attr.qp_access_flags);
    assert_int_equal(got.port_num, 1);
    attr = rtr_attr;
    assert_int_equal(ibv_modify_qp(l.qp, &attr, RTR_MASK), 0);
    got = qp_query(l.qp, EVERYTHING);
    assert_int_equal(got.qp_state, IBV_QPS_RTR);
    assert_int_equal(got.path_mtu, IBV_MTU_1024);
    assert_int_equal(got.dest_qp_num, 0x123456);
    assert_int_equal(got.rq_psn, 0xabcdef);
    assert_int_equal(got.max_dest_rd_atomic, 9);
    assert_int_equal(got.min_rnr_timer, 12);
    assert_memory_equal(&got.ah_attr, &rtr_attr.ah_attr, sizeof(got.ah_attr));
    assert_int_equal(got.qp_access_flags, init_attr.qp_access_flags);

    /* A connection may come later. */
    assert_int_equal(ibv_modify_qp(l.qp, &rts, RTS_MASK), 0);
    assert_int_equal(qp_query(l.qp, EVERYTHING).qp_state, IBV_QPS_RTS);

    /* RESET forgets it, and what was posted with it. */
    qp_post_recv(l.qp, 1);
    assert_int_equal(qp_to_state(l.qp, IBV_QPS_RESET), 0);
    got = qp_query(l.qp, EVERYTHING);
    assert_int_equal(got.qp_state, IBV_QPS_RESET);
    assert_int_equal(got.qp_access_flags, 0);
    assert_int_equal(got.dest_qp_num, 0);
    struct ibv_recv_wr early = {.wr_id = 3, .next = &(struct ibv_recv_wr){.wr_id = 4}}, *bad = NULL;
    assert_int_equal(ibv_post_recv(l.qp, &early, &bad), EINVAL);
    assert_ptr_equal(bad, &early);
    assert_int_equal(qp_to_state(l.qp, IBV_QPS_ERR), EINVAL);
    attr = init_attr;
    assert_int_equal(ibv_modify_qp(l.qp, &attr, INIT_MASK), 0);
    qp_post_recv(l.qp, 2);
    assert_int_equal(qp_to_state(l.qp, IBV_QPS_ERR), 0);
    struct ibv_wc wc[2];
    assert_int_equal(ibv_poll_cq(l.cq, 2, wc), 1);
    assert_int_equal(wc[0].wr_id, 2);
    assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
    lone_close(&l);
}

/** A device of node type RNIC begins there: receives can be posted before the first transition. */
static void a_new_queue_pair_is_in_init(void **state)
{
    struct lone l;
    struct ibv_qp_attr attr = rtr_attr;
    struct ibv_wc wc[2];
    (void)state;
    lone_open(&l);
    assert_int_equal(l.context->device->node_type, IBV_NODE_RNIC);
    assert_int_equal(qp_query(l.qp, EVERYTHING).qp_state, IBV_QPS_INIT);
    qp_post_recv(l.qp, 1);
    assert_int_equal(ibv_modify_qp(l.qp, &attr, RTR_MASK), 0);
    assert_int_equal(qp_query(l.qp, EVERYTHING).qp_state, IBV_QPS_RTR);
    assert_int_equal(qp_to_state(l.qp, IBV_QPS_ERR), 0);
    assert_int_equal(ibv_poll_cq(l.cq, 2, wc), 1);
    assert_int_equal(wc[0].wr_id, 1);
    assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
    lone_close(&l);
}

/** Each is wrong in one thing; the rest must not come through either. */
static const struct {
    const char *what;
    int more, less; /* of the mask */
    struct ibv_qp_attr attr;
    int error;
} wrongs[] = {
    {"port", 0, 0, {.qp_state = IBV_QPS_INIT, .port_num = 2, .qp_access_flags = 2}, EINVAL},
    {"port 0", 0, 0, {.qp_state = IBV_QPS_INIT, .port_num = 0, .qp_access_flags = 2}, EINVAL},
    {"pkey", 0, 0, {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1}, EINVAL},
    {"access", 0, 0, {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 1 << 30}, EINVAL},
    {"state", 0, 0, {.qp_state = IBV_QPS_ERR + 1, .port_num = 1, .qp_access_flags = 2}, EINVAL},
    {"jump", 0, 0, {.qp_state = IBV_QPS_RTR, .port_num = 1, .qp_access_flags = 2}, EINVAL},
    {"to ERR",
     0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
     {.qp_state = IBV_QPS_ERR},
     EINVAL},
    {"missing", 0, IBV_QP_ACCESS_FLAGS, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
    {"too much",
     IBV_QP_TIMEOUT,
     0,
     {.qp_state = IBV_QPS_INIT, .port_num = 1, .timeout = 3},
     EINVAL},
    {"current state",
     IBV_QP_CUR_STATE,
     0,
     {.qp_state = IBV_QPS_INIT, .cur_qp_state = IBV_QPS_RTR, .port_num = 1},
     EINVAL},
    {"unknown", 1 << 28, 0, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EOPNOTSUPP},
};

static void a_wrong_attribute_changes_nothing(void **state)
{
    struct lone l;
    (void)state;
    lone_open(&l);
    assert_int_equal(qp_to_state(l.qp, IBV_QPS_RESET), 0);
    const struct ibv_qp_attr before = qp_query(l.qp, EVERYTHING);
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct ibv_qp_attr attr = wrongs[i].attr;
        int mask = (INIT_MASK | wrongs[i].more) & ~wrongs[i].less;
        if (ibv_modify_qp(l.qp, &attr, mask) != wrongs[i].error)
            fail_msg("%s is not refused as it should be", wrongs[i].what);
        struct ibv_qp_attr after = qp_query(l.qp, EVERYTHING);
        assert_memory_equal(&after, &before, sizeof(after));
    }
    assert_int_equal(ibv_modify_qp(l.qp, NULL, 0), EINVAL);
    lone_close(&l);
}

static void the_masks_of_the_cm_are_accepted(void **state)
{
    struct lone l;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    (void)state;
    lone_open(&l);
    const int with_state = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
    assert_int_equal(ibv_modify_qp(l.qp, &attr, with_state), 0);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    assert_int_equal(ibv_modify_qp(l.qp, &attr, with_state), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(l.qp, &attr, with_state), 0);
    attr.qp_state = IBV_QPS_RTS; /* not in the mask: the CM moves it */
    assert_int_equal(ibv_modify_qp(l.qp, &attr, IBV_QP_PORT), 0);
    assert_int_equal(ibv_modify_qp(l.qp, &attr, 0), 0);
    assert_int_equal(qp_query(l.qp, EVERYTHING).qp_state, IBV_QPS_RTR);
    assert_int_equal(ibv_modify_qp(l.qp, &attr, with_state), EINVAL);
    lone_close(&l);
}

static void a_connection_tells_its_depths(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 3});
    struct ibv_qp_attr attr = qp_query(p.a.id->qp, EVERYTHING);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.max_rd_atomic, 3);
    assert_int_equal(attr.max_dest_rd_atomic, 3);

    /* They can be lowered while the queue is drained, never raised. */
    assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_SQD), 0);
    attr.max_rd_atomic = 4;
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
    attr.max_rd_atomic = 1;
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC), 0);
    assert_int_equal(qp_query(p.a.id->qp, EVERYTHING).max_rd_atomic, 1);
    assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_RTS), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, 0, 100, 0, 0), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_of_every_size),
        cmocka_unit_test(a_queue_of_size_zero_takes_nothing),
        cmocka_unit_test(sig_all_completes_everything),
        cmocka_unit_test(a_new_queue_pair_is_in_init),
        cmocka_unit_test(what_was_set_is_returned),
        cmocka_unit_test(a_wrong_attribute_changes_nothing),
        cmocka_unit_test(the_masks_of_the_cm_are_accepted),
        cmocka_unit_test(a_connection_tells_its_depths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

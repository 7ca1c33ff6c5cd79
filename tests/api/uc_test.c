/* SPDX-License-Identifier: BSD-2-Clause */
/* UC: what is sent is complete, what finds no place is dropped, and neither end fails for it. */
#include "by_number.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WORDS_SENT (END_HALF / 8) /* where what is sent begins */

static struct end a, b;

static void make(struct end *e, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = type};
    end_make(e);
    end_drop_qp(e);
    init.send_cq = init.recv_cq = e->cq;
    e->qp = ibv_create_qp(pd, &init);
    assert_non_null(e->qp);
    assert_int_equal(e->qp->qp_type, type);
}

static void ready(struct end *e, struct end *peer)
{
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(ibv_modify_qp(e->qp, &attr, init), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer->qp->qp_num,
                                .ah_attr = {.port_num = 1, .is_global = 1}};
    attr.ah_attr.grh.sgid_index = 1;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &attr.ah_attr.grh.dgid), 0);
    assert_int_equal(
        ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
        0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static int setup(void **state)
{
    (void)state;
    make(&a, IBV_QPT_UC);
    make(&b, IBV_QPT_UC);
    ready(&a, &b);
    ready(&b, &a);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_drop(&a);
    end_drop(&b);
    return 0;
}

static void rest(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/** Sends or writes @p value, which is complete whatever becomes of it. */
static void put(enum ibv_wr_opcode op, uint64_t value)
{
    a.data[WORDS_SENT] = value;
    assert_int_equal(end_post(&a, &b, op), 0);
    end_expect(&a, op, IBV_WC_SUCCESS);
}

static void expect_received(uint64_t value)
{
    end_expect(&b, END_RECV, IBV_WC_SUCCESS);
    assert_true(b.data[0] == value);
}

static void both_are_well(void)
{
    assert_int_equal(end_state(&a), IBV_QPS_RTS);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
    end_receive(&b);
    put(IBV_WR_SEND, 99);
    expect_received(99);
    end_send_once(&b, &a, 98);
}

/* ---- what it has ---- */

static void every_opcode(void **state)
{
    (void)state;
    end_receive(&b);
    put(IBV_WR_SEND, 1);
    expect_received(1);
    end_receive(&b);
    put(IBV_WR_SEND_WITH_IMM, 2);
    expect_received(2);
    put(IBV_WR_RDMA_WRITE, 3);
    end_receive(&b);
    put(IBV_WR_RDMA_WRITE_WITH_IMM, 4);
    struct ibv_wc wc = end_next(&b);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x1234);
    assert_true(b.data[0] == 4);
    both_are_well();
}

static void what_it_has_not(void **state)
{
    (void)state;
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_READ), EINVAL);
    assert_int_equal(end_post(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD), EINVAL);
    assert_int_equal(end_post(&a, &b, IBV_WR_LOCAL_INV), EINVAL);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND_WITH_INV), EINVAL);
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_UC,
                                       .send_cq = a.cq,
                                       .recv_cq = a.cq,
                                       .cap = {1, 1, 1, 1, 0},
                                       .pd = pd,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ};
    assert_null(ibv_create_qp_ex(ctx, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    both_are_well();
}

/* ---- what is dropped ---- */

static void a_receive_in_time(void **state)
{
    (void)state;
    put(IBV_WR_SEND, 5);
    rest(5);
    end_receive(&b);
    expect_received(5);
    both_are_well();
}

static void no_receive(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        put(i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i);
    rest(400);
    put(IBV_WR_SEND, 10); /* at once */
    put(IBV_WR_RDMA_WRITE_WITH_IMM, 11);
    rest(50);
    both_are_well();
    put(IBV_WR_SEND, 12);
    rest(5);
    end_receive(&b);
    expect_received(12);
    both_are_well();
}

static void too_long(void **state)
{
    struct ibv_sge sge = {(uintptr_t)b.data, 4, b.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = END_RECV, .sg_list = &sge, .num_sge = 1};
    (void)state;
    assert_int_equal(ibv_post_recv(b.qp, &wr, &bad), 0);
    put(IBV_WR_SEND, 6);
    rest(50);
    /* The receive is there for the next one. */
    put(IBV_WR_RDMA_WRITE_WITH_IMM, 7);
    struct ibv_wc wc = end_next(&b);
    assert_int_equal(wc.wr_id, END_RECV);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_true(b.data[0] == 7);
    both_are_well();
}

static void no_such_key(void **state)
{
    uint32_t key = b.mr->rkey;
    (void)state;
    end_receive(&b);
    b.data[0] = 1;
    b.mr->rkey ^= 0x100;
    put(IBV_WR_RDMA_WRITE, 8);
    put(IBV_WR_RDMA_WRITE_WITH_IMM, 9);
    b.mr->rkey = key;
    put(IBV_WR_RDMA_WRITE_WITH_IMM, 10); /* the receive is for this one */
    struct ibv_wc wc = end_next(&b);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_true(b.data[0] == 10);
    both_are_well();
}

static void own_error(void **state)
{
    uint32_t key = a.mr->lkey;
    (void)state;
    both_are_well();
    a.mr->lkey ^= 0x100;
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    a.mr->lkey = key;
    end_expect(&a, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(end_state(&a), IBV_QPS_ERR);
    rest(50);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
}

/* ---- no peer ---- */

static void a_peer_that_goes(void **state)
{
    (void)state;
    both_are_well();
    end_move(&b, IBV_QPS_ERR);
    for (uint64_t i = 0; i < 20; i++)
        put(i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i);
    assert_int_equal(end_state(&a), IBV_QPS_RTS);
}

static void one_that_never_comes(void **state)
{
    (void)state;
    end_move(&a, IBV_QPS_RESET);
    end_move(&b, IBV_QPS_RESET);
    ready(&a, &b);
    put(IBV_WR_SEND, 1);
    assert_int_equal(end_state(&a), IBV_QPS_RTS);
}

static void after_reset(void **state)
{
    (void)state;
    both_are_well();
    end_move(&a, IBV_QPS_RESET);
    end_move(&b, IBV_QPS_RESET);
    ready(&a, &b);
    ready(&b, &a);
    both_are_well();
}

/** RC is no peer for it. */
static void of_another_type(void **state)
{
    struct end rc;
    (void)state;
    make(&rc, IBV_QPT_RC);
    end_init(&rc);
    end_rtr(&rc, a.qp->qp_num);
    end_rts(&rc, 7);
    end_set_timeout(&rc, 8);
    end_move(&a, IBV_QPS_RESET);
    ready(&a, &rc);
    assert_int_equal(end_post(&rc, &a, IBV_WR_SEND), 0);
    end_expect(&rc, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    end_drop(&rc);
    end_move(&b, IBV_QPS_RESET);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test_setup_teardown(every_opcode, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_has_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receive_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(no_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(no_such_key, setup, teardown),
        cmocka_unit_test_setup_teardown(own_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_never_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(after_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(of_another_type, setup, teardown),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return ends_run(tests);
}

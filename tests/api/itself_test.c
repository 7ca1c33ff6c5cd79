/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair that is connected to itself: all that it sends comes back to it. */
#include "by_number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONG (1 << 20)

static struct end a;

static int setup(void **state)
{
    (void)state;
    end_make(&a);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_drop(&a);
    return 0;
}

static void connect_itself(void)
{
    end_init(&a);
    end_rtr(&a, a.qp->qp_num);
    end_rts(&a, 7);
}

/** Two completions, of which the receive's may come first. */
static void expect_both(enum ibv_wr_opcode op)
{
    bool sent = false, received = false;
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = end_next(&a);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        sent |= wc.wr_id == op;
        received |= wc.wr_id == END_RECV;
    }
    assert_true(sent && received);
}

static void send_once(uint64_t value)
{
    end_receive(&a);
    a.data[END_HALF / 8] = value;
    assert_int_equal(end_post(&a, &a, IBV_WR_SEND_WITH_IMM), 0);
    expect_both(IBV_WR_SEND_WITH_IMM);
    assert_true(a.data[0] == value);
}

static void every_opcode(void **state)
{
    (void)state;
    connect_itself();
    send_once(8);
    a.data[END_HALF / 8] = 9;
    assert_int_equal(end_post(&a, &a, IBV_WR_RDMA_WRITE), 0);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    assert_true(a.data[0] == 9);
    assert_int_equal(end_post(&a, &a, IBV_WR_ATOMIC_FETCH_AND_ADD), 0);
    end_expect(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS);
    assert_true(a.data[0] == 14);
    assert_int_equal(end_post(&a, &a, IBV_WR_RDMA_READ), 0);
    end_expect(&a, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
    assert_true(a.data[END_HALF / 8] == 14);
    end_receive(&a);
    assert_int_equal(end_post(&a, &a, IBV_WR_RDMA_WRITE_WITH_IMM), 0);
    expect_both(IBV_WR_RDMA_WRITE_WITH_IMM);
}

/** The receive comes after the Send, which waits for it as it would at another's. */
static void receives_late(void **state)
{
    struct ibv_wc wc;
    (void)state;
    connect_itself();
    assert_int_equal(end_post(&a, &a, IBV_WR_SEND), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
    end_receive(&a);
    expect_both(IBV_WR_SEND);
}

static void again_after_reset(void **state)
{
    uint32_t number = a.qp->qp_num;
    (void)state;
    for (uint64_t round = 0; round < 5; round++) {
        connect_itself();
        send_once(100 + round);
        end_move(&a, IBV_QPS_RESET);
        assert_int_equal(a.qp->qp_num, number);
    }
}

/** More than its socket holds goes round. */
static void long_messages(void **state)
{
    uint8_t *data = malloc(2 * LONG);
    struct ibv_mr *mr =
        ibv_reg_mr(pd, data, 2 * LONG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_sge sge = {(uintptr_t)data, LONG, mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)data + LONG, mr->rkey}};
    (void)state;
    connect_itself();
    for (size_t i = 0; i < LONG; i++)
        data[i] = (uint8_t)(i * 31 >> 3);
    for (wr.wr_id = 0; wr.wr_id < 8; wr.wr_id++)
        assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
    for (uint64_t id = 0; id < 8; id++)
        end_expect(&a, id, IBV_WC_SUCCESS);
    assert_memory_equal(data, data + LONG, LONG);
    end_drop_qp(&a);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(data);
}

/** Who refuses is who is refused, and whose work is flushed: there is one queue pair to fail. */
static void wrong_key(void **state)
{
    struct ibv_sge sge = {(uintptr_t)a.data, 8, a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)a.data, a.mr->rkey + 1}};
    (void)state;
    connect_itself();
    assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
    end_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(end_state(&a), IBV_QPS_ERR);
}

/** By any of the device's addresses, seen from any of them. */
static void every_address(void **state)
{
    union ibv_gid gid;
    (void)state;
    for (int i = 0; ibv_query_gid(ctx, 1, i, &gid) == 0 && i < 8; i++) {
        end_init(&a);
        int r = end_try_rtr(&a, a.qp->qp_num, &gid);
        if (r == 0) {
            end_rts(&a, 7);
            send_once(200 + (uint64_t)i);
        }
        end_move(&a, IBV_QPS_RESET);
    }
}

static int tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest all[] = {
        T(every_opcode),  T(receives_late), T(again_after_reset),
        T(long_messages), T(wrong_key),     T(every_address),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return ends_run(tests);
}

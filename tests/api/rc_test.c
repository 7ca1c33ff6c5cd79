/* SPDX-License-Identifier: BSD-2-Clause */
/* Data over one connection through the public API: every work request of an RC QP, and its limits.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 7 + seed);
}

static void expect_ok(struct side *s, uint64_t wr_id, enum ibv_wc_opcode op)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != IBV_WC_SUCCESS)
        print_error("%s\n", ibv_wc_status_str(wc.status));
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.opcode, op);
    assert_int_equal(wc.qp_num, s->id->qp->qp_num);
}

static const uint32_t sizes[] = {0, 1, 63, 64, 1000, 4096, 65535, 65536, 300001, SIDE_BYTES / 2};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void sends_of_every_size(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (size_t i = 0; i < SIZES; i++) {
        fill(p.a.buf, sizes[i], (unsigned)i);
        side_recv(&p.b, 100 + i, 0, SIDE_BYTES);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, sizes[i], 0, 0), 0);
        expect_ok(&p.a, i, IBV_WC_SEND);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.wr_id, 100 + i);
        assert_int_equal(wc.byte_len, sizes[i]);
        assert_int_equal(wc.wc_flags, 0);
        assert_memory_equal(p.a.buf, p.b.buf, sizes[i]);
    }
    pair_close(&p, 1);
}

static void passive_side_may_send_first(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    fill(p.b.buf, 100, 9);
    side_recv(&p.a, 1, 0, 100);
    assert_int_equal(side_post(&p.b, &p.a, IBV_WR_SEND, 2, 0, 100, 0, 0), 0);
    expect_ok(&p.b, 2, IBV_WC_SEND);
    expect_ok(&p.a, 1, IBV_WC_RECV);
    assert_memory_equal(p.a.buf, p.b.buf, 100);
    pair_close(&p, 1);
}

static void writes_and_reads_of_every_size(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (size_t i = 0; i < SIZES; i++) {
        size_t half = SIDE_BYTES / 2;
        fill(p.a.buf, sizes[i], (unsigned)i + 50);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, sizes[i], 0, 0), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 2, half, sizes[i], 0, 0), 0);
        expect_ok(&p.a, 1, IBV_WC_RDMA_WRITE);
        expect_ok(&p.a, 2, IBV_WC_RDMA_READ); /* a read sees the writes before it */
        assert_memory_equal(p.a.buf, p.b.buf, sizes[i]);
        assert_memory_equal(p.a.buf, p.a.buf + half, sizes[i]);
    }
    pair_close(&p, 1);
}

static void more_reads_than_ord_wait(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 2});
    fill(p.b.buf, 40 * 100, 3);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, i * 100, 100, i * 100, 0), 0);
    for (unsigned i = 0; i < 40; i++)
        expect_ok(&p.a, i, IBV_WC_RDMA_READ);
    assert_memory_equal(p.a.buf, p.b.buf, 40 * 100);
    pair_close(&p, 1);
}

/* More than TCP takes at once: responses are kept half sent, others behind them not begun. */
static void long_reads_share_the_stream(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 16});
    fill(p.b.buf, SIDE_BYTES, 4);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, 0, SIDE_BYTES, 0, 0), 0);
    for (unsigned i = 0; i < 16; i++)
        expect_ok(&p.a, i, IBV_WC_RDMA_READ);
    assert_memory_equal(p.a.buf, p.b.buf, SIDE_BYTES);
    pair_close(&p, 1);
}

static void sends_complete_behind_reads(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 9, 0, 100);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 1, 0, 500000, 0, 0), 0);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 10, 0, 0), 0);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 3, 0, 10, 600000, IBV_SEND_FENCE), 0);
    expect_ok(&p.a, 1, IBV_WC_RDMA_READ);
    expect_ok(&p.a, 2, IBV_WC_SEND);
    expect_ok(&p.a, 3, IBV_WC_RDMA_WRITE);
    expect_ok(&p.b, 9, IBV_WC_RECV);
    pair_close(&p, 1);
}

static void inline_data_may_be_reused_at_once(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.inline_data = 512});
    uint8_t local[512];
    struct ibv_sge sge = {(uintptr_t)local, sizeof(local), 0};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    for (unsigned i = 0; i < 20; i++)
        side_recv(&p.b, i, i * sizeof(local), sizeof(local));
    for (unsigned i = 0; i < 20; i++) {
        fill(local, sizeof(local), i);
        wr.wr_id = i;
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        memset(local, 0xff, sizeof(local));
    }
    for (unsigned i = 0; i < 20; i++) {
        expect_ok(&p.a, i, IBV_WC_SEND);
        expect_ok(&p.b, i, IBV_WC_RECV);
        fill(local, sizeof(local), i);
        assert_memory_equal(p.b.buf + i * sizeof(local), local, sizeof(local));
    }
    sge.length = 513;
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    pair_close(&p, 1);
}

static void unsignaled_work_makes_no_completion(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey}};
    struct ibv_send_wr *bad;
    for (unsigned i = 0; i < 1000; i++) {
        wr.wr_id = i;
        wr.send_flags = i % 32 == 31 ? IBV_SEND_SIGNALED : 0;
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        if (i % 32 == 31)
            expect_ok(&p.a, i, IBV_WC_RDMA_WRITE);
    }
    side_poll_none(&p.a, 20);
    pair_close(&p, 1);
}

static void a_list_stops_at_the_first_bad_one(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 3, .sge = 1});
    struct ibv_sge sge[2] = {{(uintptr_t)p.a.buf, 8, p.a.mr->lkey},
                             {(uintptr_t)p.a.buf, 8, p.a.mr->lkey}};
    struct ibv_send_wr wr[3] = {0};
    struct ibv_send_wr *bad = NULL;
    for (int i = 0; i < 3; i++) {
        wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                     .next = i < 2 ? &wr[i + 1] : NULL,
                                     .sg_list = sge,
                                     .num_sge = i == 1 ? 2 : 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
        side_recv(&p.b, (uint64_t)i, 0, 8);
    }
    assert_int_equal(ibv_post_send(p.a.id->qp, wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    expect_ok(&p.a, 0, IBV_WC_SEND);
    expect_ok(&p.b, 0, IBV_WC_RECV);
    side_poll_none(&p.b, 20);
    pair_close(&p, 1);
}

static void late_receives_are_waited_for(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    /* More than the bound of held bytes: the rest waits in TCP. */
    for (unsigned i = 0; i < 20; i++) {
        fill(p.a.buf + i * 40000, 40000, i);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, i * 40000, 40000, 0, 0), 0);
    }
    side_poll_none(&p.b, 50);
    for (unsigned i = 0; i < 20; i++) {
        side_recv(&p.b, i, i * 40000, 40000);
        expect_ok(&p.b, i, IBV_WC_RECV);
        expect_ok(&p.a, i, IBV_WC_SEND);
    }
    assert_memory_equal(p.a.buf, p.b.buf, 20 * 40000);
    pair_close(&p, 1);
}

static void a_read_passes_held_sends_of_the_peer(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 1000, 0, 0), 0);
    fill(p.a.buf + 5000, 1000, 4);
    assert_int_equal(side_post(&p.b, &p.a, IBV_WR_RDMA_READ, 77, 0, 1000, 5000, 0), 0);
    expect_ok(&p.b, 77, IBV_WC_RDMA_READ);
    assert_memory_equal(p.b.buf, p.a.buf + 5000, 1000);
    pair_close(&p, 1);
}

static void atomics_add_and_swap(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    uint64_t *word = (uint64_t *)(((uintptr_t)p.b.buf + 7) & ~(uintptr_t)7);
    uint64_t *answer = (uint64_t *)(((uintptr_t)p.a.buf + 7) & ~(uintptr_t)7);
    struct ibv_sge sge = {(uintptr_t)answer, 8, p.a.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic = {.remote_addr = (uintptr_t)word, .compare_add = 5, .rkey = p.b.mr->rkey}};
    struct ibv_send_wr *bad;
    *word = 37;
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect_ok(&p.a, 1, IBV_WC_FETCH_ADD);
    assert_int_equal(*answer, 37);
    assert_int_equal(*word, 42);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.compare_add = 42;
    wr.wr.atomic.swap = 99;
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect_ok(&p.a, 1, IBV_WC_COMP_SWAP);
    assert_int_equal(*answer, 42);
    assert_int_equal(*word, 99);
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect_ok(&p.a, 1, IBV_WC_COMP_SWAP);
    assert_int_equal(*answer, 99);
    assert_int_equal(*word, 99);
    pair_close(&p, 1);
}

static void immediates_arrive(void **state)
{
    struct pair p;
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (int i = 0; i < 4; i++) {
        uint32_t len = i < 2 ? 70000 : 0;
        struct ibv_sge sge = {(uintptr_t)p.a.buf, len, p.a.mr->lkey};
        struct ibv_send_wr wr = {.wr_id = 4,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = ops[i % 2],
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .imm_data = htobe32(0x12345678u + (unsigned)i),
                                 .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey}};
        struct ibv_send_wr *bad;
        fill(p.a.buf, len, (unsigned)i);
        side_recv(&p.b, 5, 0, SIDE_BYTES);
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        expect_ok(&p.a, 4, i % 2 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, i % 2 ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
        assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
        assert_int_equal(be32toh(wc.imm_data), 0x12345678u + (unsigned)i);
        assert_int_equal(wc.byte_len, len);
        assert_memory_equal(p.a.buf, p.b.buf, len);
    }
    pair_close(&p, 1);
}

static void send_with_invalidate_revokes(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct loan loan;
    side_lend(&p.b, &loan, 0, 4096, IBV_ACCESS_REMOTE_WRITE);
    struct ibv_sge sge = {(uintptr_t)p.a.buf, 16, p.a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_INV,
                             .send_flags = IBV_SEND_SIGNALED,
                             .invalidate_rkey = loan.mw->rkey};
    struct ibv_send_wr *bad;
    side_recv(&p.b, 2, 8192, 64);
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect_ok(&p.a, 1, IBV_WC_SEND);
    struct ibv_wc wc = side_poll(&p.b);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, loan.mw->rkey);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
    wr.wr.rdma.rkey = loan.mw->rkey;
    memset(p.b.buf, 0x11, 16);
    memset(p.a.buf, 0x22, 16);
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(p.b.buf[0], 0x11);
    side_end_loan(&loan);
    pair_close(&p, 0);
}

/** Nothing is sent, so nothing else drives it to its completion. */
static void local_invalidate_alone(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr = ibv_reg_mr(p.a.pd, p.a.buf, 4096, IBV_ACCESS_REMOTE_READ);
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .opcode = IBV_WR_LOCAL_INV,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .invalidate_rkey = mr->rkey};
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect_ok(&p.a, 1, IBV_WC_LOCAL_INV);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_of_every_size),
        cmocka_unit_test(passive_side_may_send_first),
        cmocka_unit_test(writes_and_reads_of_every_size),
        cmocka_unit_test(more_reads_than_ord_wait),
        cmocka_unit_test(long_reads_share_the_stream),
        cmocka_unit_test(sends_complete_behind_reads),
        cmocka_unit_test(inline_data_may_be_reused_at_once),
        cmocka_unit_test(unsignaled_work_makes_no_completion),
        cmocka_unit_test(a_list_stops_at_the_first_bad_one),
        cmocka_unit_test(late_receives_are_waited_for),
        cmocka_unit_test(a_read_passes_held_sends_of_the_peer),
        cmocka_unit_test(atomics_add_and_swap),
        cmocka_unit_test(immediates_arrive),
        cmocka_unit_test(send_with_invalidate_revokes),
        cmocka_unit_test(local_invalidate_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

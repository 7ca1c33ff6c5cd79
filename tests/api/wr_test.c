/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests through the public API: opcodes, flags, lists, scatter lists, lengths, fences. */
#include "pair.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MARK 999 /* wr_id of the signaled request that ends a step */

static void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 11 + seed);
}

static int post(struct side *s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int r = ibv_post_send(s->id->qp, wr, &bad);
    assert_ptr_equal(bad, r ? wr : NULL);
    return r;
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_opcode op)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != IBV_WC_SUCCESS)
        print_error("%s\n", ibv_wc_status_str(wc.status));
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.opcode, op);
}

/* ---- opcodes and flags ---- */

static const struct op {
    enum ibv_wr_opcode op;
    enum ibv_wc_opcode wc;
    bool to_receive, into_memory, inlined, imm;
} ops[] = {
    {IBV_WR_SEND, IBV_WC_SEND, .to_receive = true, .inlined = true},
    {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, .to_receive = true, .inlined = true, .imm = true},
    {IBV_WR_SEND_WITH_INV, IBV_WC_SEND, .to_receive = true, .inlined = true},
    {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, .into_memory = true, .inlined = true},
    {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, .into_memory = true, .inlined = true,
     .imm = true},
    {.op = IBV_WR_RDMA_READ, .wc = IBV_WC_RDMA_READ},
    {.op = IBV_WR_ATOMIC_FETCH_AND_ADD, .wc = IBV_WC_FETCH_ADD},
    {.op = IBV_WR_ATOMIC_CMP_AND_SWP, .wc = IBV_WC_COMP_SWAP},
};

#define OPS (sizeof(ops) / sizeof(ops[0]))

/** Where "b" takes data: Sends at 0, everything tagged at WORD, which is aligned. */
static size_t word_of(const struct side *s)
{
    return 4096 - (uintptr_t)s->buf % 8;
}

static struct ibv_send_wr make(struct pair *p, const struct op *o, struct ibv_sge *sge)
{
    uint64_t remote = (uintptr_t)p->b.buf + word_of(&p->b);
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = o->op};
    if (o->wc == IBV_WC_FETCH_ADD || o->wc == IBV_WC_COMP_SWAP) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = p->b.mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = p->b.mr->rkey;
    }
    if (o->imm)
        wr.imm_data = htobe32(0xfeedbeef);
    return wr;
}

static void one_with_flags(struct pair *p, const struct op *o, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)p->a.buf, 8, flags & IBV_SEND_INLINE ? 0 : p->a.mr->lkey};
    struct ibv_send_wr wr = make(p, o, &sge);
    struct loan loan;
    side_lend(&p->b, &loan, 8192, 64, IBV_ACCESS_REMOTE_WRITE);
    wr.send_flags = flags;
    if (o->op == IBV_WR_SEND_WITH_INV)
        wr.invalidate_rkey = loan.mw->rkey;
    fill(p->a.buf, 8, flags);
    memset(p->b.buf, 0, 16384);
    if ((flags & IBV_SEND_INLINE) && !o->inlined) {
        assert_int_equal(post(&p->a, &wr), EINVAL);
    } else {
        if (o->to_receive || o->imm)
            side_recv(&p->b, 2, 0, 64);
        assert_int_equal(post(&p->a, &wr), 0);
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, MARK, 64, 8, 64, 0), 0);
        if (flags & IBV_SEND_SIGNALED)
            expect(&p->a, 1, o->wc);
        expect(&p->a, MARK, IBV_WC_RDMA_READ);
        if (o->to_receive || o->imm) {
            struct ibv_wc wc = side_poll(&p->b);
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            assert_int_equal(wc.byte_len, 8);
            assert_int_equal(wc.wc_flags, o->imm                          ? IBV_WC_WITH_IMM
                                          : o->op == IBV_WR_SEND_WITH_INV ? IBV_WC_WITH_INV
                                                                          : 0);
            if (o->imm)
                assert_int_equal(be32toh(wc.imm_data), 0xfeedbeef);
        }
        if (o->to_receive)
            assert_memory_equal(p->b.buf, p->a.buf, 8);
        if (o->into_memory)
            assert_memory_equal(p->b.buf + word_of(&p->b), p->a.buf, 8);
        if (!o->to_receive && !o->into_memory) /* what was there */
            assert_memory_equal(p->a.buf, "\0\0\0\0\0\0\0", 8);
    }
    side_end_loan(&loan);
}

static void every_opcode_with_every_flag(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (size_t i = 0; i < OPS; i++)
        for (unsigned flags = 0; flags < 16; flags++)
            one_with_flags(&p, &ops[i], flags);
    side_poll_none(&p.a, 5);
    side_poll_none(&p.b, 5);
    pair_close(&p, 1);
}

static void solicited_wakes_who_waits_for_it(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    void *context;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    int flags = fcntl(p.b.channel->fd, F_GETFL);
    assert_int_equal(fcntl(p.b.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
    for (size_t i = 0; i < OPS; i++) {
        if ((!ops[i].to_receive && !ops[i].imm) || ops[i].op == IBV_WR_SEND_WITH_INV)
            continue;
        struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
        struct ibv_send_wr wr = make(&p, &ops[i], &sge);
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
            side_recv(&p.b, 2, 0, 64);
            wr.send_flags = IBV_SEND_SIGNALED | (k ? IBV_SEND_SOLICITED : 0);
            assert_int_equal(post(&p.a, &wr), 0);
            expect(&p.a, 1, ops[i].wc);
            assert_int_equal(side_poll(&p.b).wr_id, 2);
            int r = ibv_get_cq_event(p.b.channel, &cq, &context);
            assert_int_equal(r, k ? 0 : -1);
            if (k)
                ibv_ack_cq_events(cq, 1);
            else
                assert_int_equal(errno, EAGAIN);
        }
    }
    pair_close(&p, 1);
}

/* ---- lists ---- */

/** What makes a work request wrong. */
static const struct fault {
    const char *what;
    int num_sge; /* 0: one as in the others */
    enum ibv_wr_opcode op;
    uint32_t len;
    unsigned flags;
    int error;
} faults[] = {
    {"too many SGEs", 5, IBV_WR_SEND, 8, 0, EINVAL},
    {"SGEs below zero", -1, IBV_WR_SEND, 8, 0, EINVAL},
    {"inline data too long", 0, IBV_WR_SEND, 513, IBV_SEND_INLINE, EINVAL},
    {"inline read", 0, IBV_WR_RDMA_READ, 8, IBV_SEND_INLINE, EINVAL},
    {"atomic of 4 bytes", 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 0, EINVAL},
    {"atomic without memory", 0, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, EINVAL},
    {"unknown opcode", 0, (enum ibv_wr_opcode)99, 8, 0, EINVAL},
    {"opcode of another QP type", 0, IBV_WR_TSO, 8, 0, EINVAL},
    {"unknown flag", 0, IBV_WR_SEND, 8, 1 << 9, EINVAL},
};

#define LIST 4

static void a_list_ends_at_the_first_wrong_one(void **state)
{
    struct pair p;
    struct ibv_sge sge[LIST][5];
    struct ibv_send_wr wr[LIST], *bad;
    (void)state;
    pair_open(&p, &(struct pair_conf){.inline_data = 512});
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
        for (unsigned at = 0; at < LIST; at++) {
            for (unsigned i = 0; i < LIST; i++) {
                for (unsigned k = 0; k < 5; k++)
                    sge[i][k] = (struct ibv_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
                wr[i] = (struct ibv_send_wr){.wr_id = i,
                                             .next = i + 1 < LIST ? &wr[i + 1] : NULL,
                                             .sg_list = sge[i],
                                             .num_sge = 1,
                                             .opcode = IBV_WR_RDMA_WRITE,
                                             .send_flags = IBV_SEND_SIGNALED,
                                             .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey}};
            }
            wr[at].opcode = faults[f].op;
            wr[at].num_sge = faults[f].num_sge ? faults[f].num_sge : 1;
            wr[at].send_flags |= faults[f].flags;
            sge[at][0].length = faults[f].len;
            bad = NULL;
            if (ibv_post_send(p.a.id->qp, wr, &bad) != faults[f].error || bad != &wr[at])
                fail_msg("%s at %u", faults[f].what, at);
            for (unsigned i = 0; i < at; i++)
                expect(&p.a, i, IBV_WC_RDMA_WRITE);
            side_poll_none(&p.a, 1);
        }
    pair_close(&p, 1);
}

static void a_list_of_receives_ends_when_the_queue_is_full(void **state)
{
    struct pair p;
    struct ibv_recv_wr wr[LIST] = {{0}}, *bad = NULL;
    (void)state;
    pair_open(&p, &(struct pair_conf){.recv_wr = LIST - 1});
    for (unsigned i = 0; i < LIST; i++)
        wr[i] = (struct ibv_recv_wr){.wr_id = i, .next = i + 1 < LIST ? &wr[i + 1] : NULL};
    assert_int_equal(ibv_post_recv(p.b.id->qp, wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr[LIST - 1]);
    struct ibv_recv_wr wrong = {.num_sge = 17};
    assert_int_equal(ibv_post_recv(p.a.id->qp, &wrong, &bad), EINVAL);
    assert_ptr_equal(bad, &wrong);
    for (unsigned i = 0; i < LIST - 1; i++) {
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 0, 0, 0), 0);
        expect(&p.a, i, IBV_WC_SEND);
        expect(&p.b, i, IBV_WC_RECV);
    }
    pair_close(&p, 1);
}

/* ---- scatter and gather ---- */

#define PIECES 16

/* Two cuts of the same length; what is empty has a key that does not exist. */
static const uint32_t cut_a[PIECES] = {1, 0,      4097, 3, 65536, 0,  7, 12345,
                                       2, 100000, 0,    1, 8191,  31, 5, 0};
static const uint32_t cut_b[PIECES] = {0,     0,  70000, 1, 1, 64, 63, 4096,
                                       50000, 17, 13,    0, 0, 9,  11, 65944};

static uint32_t list(struct side *s, size_t at, const uint32_t cut[PIECES], struct ibv_sge *sge)
{
    uint32_t total = 0;
    for (int i = 0; i < PIECES; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t)s->buf + at, cut[i], s->mr->lkey};
        if (cut[i] == 0)
            sge[i] = (struct ibv_sge){0, 0, 0xdead};
        at += cut[i] + 3;
        total += cut[i];
    }
    return total;
}

/** The bytes of a list are those of fill(..., seed). */
static void check_list(const struct ibv_sge *sge, unsigned seed)
{
    size_t n = 0;
    for (int i = 0; i < PIECES; i++)
        for (uint32_t k = 0; k < sge[i].length; k++, n++)
            if (((const uint8_t *)(uintptr_t)sge[i].addr)[k] != (uint8_t)(n * 11 + seed))
                fail_msg("byte %zu", n);
}

static void fill_list(const struct ibv_sge *sge, unsigned seed)
{
    size_t n = 0;
    for (int i = 0; i < PIECES; i++)
        for (uint32_t k = 0; k < sge[i].length; k++, n++)
            ((uint8_t *)(uintptr_t)sge[i].addr)[k] = (uint8_t)(n * 11 + seed);
}

static void uneven_pieces(void **state)
{
    struct pair p;
    struct ibv_sge from[PIECES], to[PIECES];
    struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = to, .num_sge = PIECES}, *bad;
    (void)state;
    pair_open(&p, &(struct pair_conf){.sge = PIECES});
    uint32_t len = list(&p.a, 5, cut_a, from);
    assert_int_equal(list(&p.b, 1, cut_b, to), len);
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = from,
                             .num_sge = PIECES,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.b.buf + 500001, p.b.mr->rkey}};
    for (unsigned seed = 0; seed < 3; seed++) {
        fill_list(from, seed);
        assert_int_equal(ibv_post_recv(p.b.id->qp, &recv, &bad), 0);
        wr.opcode = IBV_WR_SEND;
        assert_int_equal(post(&p.a, &wr), 0);
        expect(&p.a, 1, IBV_WC_SEND);
        assert_int_equal(side_poll(&p.b).byte_len, len);
        check_list(to, seed);

        wr.opcode = IBV_WR_RDMA_WRITE;
        assert_int_equal(post(&p.a, &wr), 0);
        expect(&p.a, 1, IBV_WC_RDMA_WRITE);
        fill_list(from, 77); /* the Write is with TCP */
        wr.opcode = IBV_WR_RDMA_READ;
        assert_int_equal(post(&p.a, &wr), 0);
        expect(&p.a, 1, IBV_WC_RDMA_READ);
        check_list(from, seed);
    }
    pair_close(&p, 1);
}

static void nothing_at_all_can_be_moved(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (size_t i = 0; i < OPS; i++)
        for (int num_sge = 0; num_sge < 3; num_sge++)
            for (unsigned is_inline = 0; is_inline < 2; is_inline++) {
                const struct op *o = &ops[i];
                struct ibv_sge sge[2] = {{0, 0, 0xdead}, {~(uint64_t)0, 0, 0}};
                struct ibv_send_wr wr = make(&p, o, sge);
                if (o->wc == IBV_WC_FETCH_ADD || o->wc == IBV_WC_COMP_SWAP ||
                    o->op == IBV_WR_SEND_WITH_INV || (is_inline && !o->inlined))
                    continue;
                wr.num_sge = num_sge;
                wr.send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0);
                wr.wr.rdma.rkey ^= 0x100; /* nobody looks at it */
                if (o->to_receive || o->imm)
                    side_recv(&p.b, 2, 0, 64);
                assert_int_equal(post(&p.a, &wr), 0);
                expect(&p.a, 1, o->wc);
                if (o->to_receive || o->imm)
                    assert_int_equal(side_poll(&p.b).byte_len, 0);
            }
    pair_close(&p, 1);
}

/* ---- immediates and fences ---- */

/* Writes, then what tells of them: byte_len is that of the one Write right before it. */
static const struct step {
    enum ibv_wr_opcode op;
    uint32_t len;
} steps[] = {
    {IBV_WR_RDMA_WRITE, 1000},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 10},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {IBV_WR_RDMA_WRITE, 300000},
    {IBV_WR_RDMA_WRITE, 3},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {IBV_WR_SEND, 17},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 200000},
    {IBV_WR_RDMA_WRITE, 4},
    {IBV_WR_SEND_WITH_IMM, 5},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 1},
    {IBV_WR_RDMA_WRITE, 8},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 300},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 1 << 19},
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static bool uses_receive(const struct step *s)
{
    return s->op != IBV_WR_RDMA_WRITE;
}

static void an_immediate_tells_of_its_own_write(void **state)
{
    struct pair p;
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        pair_open(&p, &(struct pair_conf){0});
        for (size_t i = 0; !late && i < STEPS; i++)
            if (uses_receive(&steps[i]))
                side_recv(&p.b, i, SIDE_BYTES / 2, 4096);
        for (size_t i = 0; i < STEPS; i++)
            assert_int_equal(side_post(&p.a, &p.b, steps[i].op, i, 0, steps[i].len, 0, 0), 0);
        for (size_t i = 0; i < STEPS; i++)
            assert_int_equal(side_poll(&p.a).wr_id, i);
        if (late)
            side_poll_none(&p.b, 20);
        for (size_t i = 0; late && i < STEPS; i++)
            if (uses_receive(&steps[i]))
                side_recv(&p.b, i, SIDE_BYTES / 2, 4096);
        for (size_t i = 0; i < STEPS; i++) {
            if (!uses_receive(&steps[i]))
                continue;
            struct ibv_wc wc = side_poll(&p.b);
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            assert_int_equal(wc.wr_id, i);
            assert_int_equal(wc.byte_len, steps[i].len);
        }
        pair_close(&p, 1);
    }
}

static void a_fence_waits_for_a_read(void **state)
{
    struct pair p;
    const uint32_t len = 200000;
    const size_t copy = SIDE_BYTES / 2;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (unsigned i = 0; i < 20; i++) {
        fill(p.b.buf, len, i);
        memset(p.a.buf, 0xee, len);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 1, 0, len, 0, 0), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 2, 0, len, copy, IBV_SEND_FENCE),
                         0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, MARK, copy, 8, 0, 0), 0);
        expect(&p.a, 1, IBV_WC_RDMA_READ);
        expect(&p.a, 2, IBV_WC_RDMA_WRITE);
        expect(&p.a, MARK, IBV_WC_RDMA_READ); /* now the Write is there */
        assert_memory_equal(p.b.buf + copy, p.b.buf, len);
    }
    pair_close(&p, 1);
}

static void a_fence_waits_for_an_atomic(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (uint64_t i = 0; i < 100; i++) {
        struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
        struct ibv_send_wr wr = make(&p, &ops[6], &sge);
        wr.wr.atomic.compare_add = 3;
        memset(p.a.buf, 0xee, 8);
        if (i == 0)
            memset(p.b.buf, 0, 16384);
        side_recv(&p.b, 9, 0, 8);
        assert_int_equal(post(&p.a, &wr), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 3, 0, 8, 0, IBV_SEND_FENCE), 0);
        expect(&p.a, 3, IBV_WC_SEND);
        expect(&p.b, 9, IBV_WC_RECV);
        assert_memory_equal(p.b.buf, &(uint64_t){3 * i}, 8); /* what the word was comes back */
    }
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_with_every_flag),
        cmocka_unit_test(solicited_wakes_who_waits_for_it),
        cmocka_unit_test(a_list_ends_at_the_first_wrong_one),
        cmocka_unit_test(a_list_of_receives_ends_when_the_queue_is_full),
        cmocka_unit_test(uneven_pieces),
        cmocka_unit_test(nothing_at_all_can_be_moved),
        cmocka_unit_test(an_immediate_tells_of_its_own_write),
        cmocka_unit_test(a_fence_waits_for_a_read),
        cmocka_unit_test(a_fence_waits_for_an_atomic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Two whole ends over a pipe in memory that splits, starves and corrupts. */
#include "conn/stream_mem.h"
#include "engine/end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define RTR_ALL  (MPA_RTR_WRITE | MPA_RTR_READ)

/** One run. */
struct run {
    struct mpa_conf conf[2]; /* initiator, responder */
    const struct end_op *ops[2];
    unsigned nops[2];
    bool markers[2]; /* who wants them */
    bool reject, hold;
    size_t chunk, window;
    uint32_t mulpdu;
    uint64_t split[2]; /* of what each end receives */
    int corrupt;       /* 1 + the end whose sent bytes are hit, 0 for none */
    uint64_t corrupt_at;
    uint8_t corrupt_mask;
    uint64_t cut_off; /* the initiator's FIN comes behind that many bytes, 0 for all of them */
    uint16_t pd_len;
};

static struct end ends[2];
static uint8_t pd[508];

static struct run run_new(const struct end_op *a, unsigned na, const struct end_op *b, unsigned nb)
{
    struct mpa_conf conf = {.rev = 2,
                            .crc = true,
                            .ext = true,
                            .p2p = true,
                            .rtr = RTR_ALL,
                            .ird = END_IRD,
                            .ord = END_IRD};
    return (struct run){.conf = {conf, conf},
                        .ops = {a, b},
                        .nops = {na, nb},
                        .chunk = SIZE_MAX,
                        .window = 1 << 17,
                        .mulpdu = 1442,
                        .pd_len = 3};
}

static void step_to_rest(void)
{
    for (bool did = true; did;) {
        did = end_step(&ends[0]);
        did |= end_step(&ends[1]);
    }
}

/** Runs until nothing moves, then lets both programs go. */
static void play(const struct run *r)
{
    struct iwc_stream_mem *pair[2];

    assert_int_equal(iwc_stream_mem_pair(pair, r->chunk, r->window), 0);
    for (int i = 0; i < 2; i++) {
        struct end *e = &ends[i];
        memset(e, 0, offsetof(struct end, batch));
        e->s = iwc_stream_mem_stream(pair[i]);
        e->want_markers = r->markers[i];
        e->reject = r->reject;
        e->hold = r->hold;
        e->split = r->split[i];
        e->cut_off = i == 1 ? r->cut_off : 0;
        e->mulpdu = r->mulpdu;
        e->ops = r->ops[i];
        e->nops = r->nops[i];
        e->pd = pd;
        e->pd_len = r->pd_len;
    }
    if (r->corrupt)
        iwc_stream_mem_corrupt(pair[r->corrupt - 1], r->corrupt_at, r->corrupt_mask);
    end_listen(&ends[1], &r->conf[1]);
    end_connect(&ends[0], &r->conf[0]);
    step_to_rest();
    if (!ends[0].error && !ends[1].error && !r->corrupt && !r->cut_off && ends[0].data)
        assert_true(end_idle(&ends[0]) && end_idle(&ends[1]));
    end_shutdown(&ends[0]);
    end_shutdown(&ends[1]);
    step_to_rest();
    iwc_stream_mem_free(pair);
    assert_true(end_guards_intact(&ends[0]) && end_guards_intact(&ends[1]));
}

/** Whether @p e got all that the peer's @p ops sent it, and its own reads what they asked for. */
static void check_arrived(const struct end *e, const struct end_op *ops, unsigned n,
                          const struct end_op *own, unsigned nown)
{
    static uint8_t mem[END_MEM], sink[END_SINK];
    uint32_t recv = 0;
    unsigned nrecv = 0, nimm = 0, natomic = 0;

    memset(mem, 0, sizeof(mem));
    memset(sink, 0, sizeof(sink));
    for (uint32_t i = 0; i < END_READ; i++)
        mem[i] = end_pattern(i);
    for (unsigned i = 0; i < n; i++) {
        const struct end_op *op = &ops[i];
        switch (op->opcode) {
        case RDMAP_WRITE:
            for (uint32_t j = 0; j < op->len; j++)
                mem[END_READ + op->at + j] = end_pattern(j);
            break;
        case RDMAP_ATOMIC_REQUEST: {
            uint64_t v;
            memcpy(&v, mem + END_READ + op->at, 8);
            v += op->len;
            memcpy(mem + END_READ + op->at, &v, 8);
            break;
        }
        case RDMAP_IMM:
            nimm++;
            break;
        case RDMAP_READ_REQUEST:
        case RDMAP_TERMINATE:
            break;
        default:
            assert_int_equal(e->recv_opcodes[nrecv++], op->opcode);
            for (uint32_t j = 0; j < op->len; j++)
                assert_int_equal(e->recv[recv + j], end_pattern(j));
            recv += op->len;
        }
    }
    for (unsigned i = 0; i < nown; i++) {
        if (own[i].opcode == RDMAP_READ_REQUEST)
            for (uint32_t j = own[i].at; j < own[i].at + own[i].len; j++)
                sink[j] = end_pattern(j);
        natomic += own[i].opcode == RDMAP_ATOMIC_REQUEST;
    }
    assert_int_equal(e->nrecv, nrecv);
    assert_int_equal(e->recv_len, recv);
    assert_int_equal(e->nimm, nimm);
    assert_int_equal(e->natomic, natomic);
    assert_memory_equal(e->mem, mem, sizeof(mem));
    assert_memory_equal(e->sink, sink, sizeof(sink));
}

static void play_well(const struct run *r)
{
    play(r);
    for (int i = 0; i < 2; i++) {
        const struct end *e = &ends[i];
        if (e->nego.state != MPA_NEGO_AGREED || e->error)
            fail_msg("end %d: %s, nego error %d, error %s; split %llu %llu, chunk %zu", i,
                     mpa_nego_state_name(e->nego.state), e->nego.error, iw_err_info(e->error)->name,
                     (unsigned long long)r->split[0], (unsigned long long)r->split[1], r->chunk);
        check_arrived(e, r->ops[!i], r->nops[!i], r->ops[i], r->nops[i]);
        assert_int_equal(e->nego.peer.pd_len, r->pd_len);
        assert_memory_equal(e->nego.peer.pd, pd, r->pd_len);
    }
}

static const struct end_op short_a[] = {
    {RDMAP_SEND, 0, 5},     {RDMAP_WRITE, 0, 150}, {RDMAP_READ_REQUEST, 0, 140},
    {RDMAP_SEND_INV, 0, 0}, {RDMAP_IMM, 0, 0},     {RDMAP_ATOMIC_REQUEST, 200, 7},
};
static const struct end_op short_b[] = {
    {RDMAP_SEND_SE, 0, 130},
    {RDMAP_READ_REQUEST, 3, 1},
    {RDMAP_WRITE, 9, 33},
};
static const struct end_op long_a[] = {
    {RDMAP_WRITE, 1, 8000},
    {RDMAP_SEND, 0, 7000},
    {RDMAP_READ_REQUEST, 100, 4999},
    {RDMAP_READ_REQUEST, 0, 0},
    {RDMAP_READ_REQUEST, 6000, 1},
    {RDMAP_SEND_SE_INV, 0, 4097},
    {RDMAP_READ_REQUEST, 6001, 9},
    {RDMAP_READ_REQUEST, 6010, 90},
    {RDMAP_SEND, 0, 1},
    {RDMAP_READ_REQUEST, 6100, 2000},
    {RDMAP_ATOMIC_REQUEST, 8008, 5},
    {RDMAP_WRITE, 8100, 3},
};
static const struct end_op long_b[] = {
    {RDMAP_SEND, 0, 8192},  {RDMAP_READ_REQUEST, 5, 8000},
    {RDMAP_WRITE, 0, 8192}, {RDMAP_SEND, 0, 0},
    {RDMAP_IMM, 0, 0},      {RDMAP_SEND, 0, 5555},
};

#define SHORT run_new(short_a, COUNT(short_a), short_b, COUNT(short_b))
#define LONG  run_new(long_a, COUNT(long_a), long_b, COUNT(long_b))

/** Bit by bit: CRC of each side, revision 1, p2p, Read RTR, markers of each side. */
#define VARIANTS 128
static void vary(struct run *r, unsigned v)
{
    r->conf[0].crc = v & 1;
    r->conf[1].crc = v & 2;
    r->conf[0].rev = v & 4 ? 1 : 2;
    r->conf[0].p2p = !(v & 8);
    r->conf[0].rtr = v & 16 ? MPA_RTR_READ : RTR_ALL;
    r->markers[0] = v & 32;
    r->markers[1] = v & 64;
}

/* ---- tests ---- */

static void all_variants(void **ctx)
{
    static const uint32_t mulpdus[] = {128, 131, 1442, 64768};
    (void)ctx;
    for (unsigned v = 0; v < VARIANTS; v++) {
        for (size_t m = 0; m < COUNT(mulpdus); m++) {
            struct run r = LONG;
            vary(&r, v);
            r.mulpdu = mulpdus[m];
            play_well(&r);
            for (int i = 0; i < 2; i++) {
                const struct mpa_result *res = &ends[i].nego.result;
                assert_int_equal(res->crc, (v & 3) != 0);
                assert_int_equal(res->rev, v & 4 ? 1 : 2);
                assert_int_equal(res->enhanced, !(v & 4));
                assert_int_equal(res->p2p, !(v & 4) && !(v & 8));
                assert_int_equal(res->rtr, v & 12 ? 0 : v & 16 ? MPA_RTR_READ : MPA_RTR_WRITE);
                assert_int_equal(res->tx_markers, r.markers[!i]);
                assert_true(res->ext);
            }
        }
    }
}

/* What one end receives comes in two parts, cut at each of its bytes, handshake included. */
static void split_at_every_byte(void **ctx)
{
    (void)ctx;
    for (unsigned v = 0; v < VARIANTS; v++) {
        if (v & 2) /* which side asked for CRC changes nothing */
            continue;
        struct run r = SHORT;
        vary(&r, v);
        r.mulpdu = 128;
        r.hold = v & 1;
        play_well(&r);
        uint64_t total[2] = {ends[0].received, ends[1].received};
        assert_true(total[0] > 300 && total[1] > 300);
        for (int i = 0; i < 2; i++) {
            r.split[!i] = 0;
            for (r.split[i] = 1; r.split[i] <= total[i]; r.split[i]++)
                play_well(&r);
        }
    }
}

static void small_chunks_and_windows(void **ctx)
{
    static const struct {
        size_t chunk, window;
    } t[] = {{1, 1}, {1, 1 << 17}, {SIZE_MAX, 1}, {3, 2}, {7, 100}, {64, 63}, {1447, 4096}};
    (void)ctx;
    for (size_t i = 0; i < COUNT(t); i++) {
        for (unsigned v = 0; v < VARIANTS; v++) {
            bool slow = t[i].chunk < 7 || t[i].window < 7;
            struct run r = slow ? SHORT : LONG;
            vary(&r, v);
            r.chunk = t[i].chunk;
            r.window = t[i].window;
            r.mulpdu = v & 1 ? 1442 : 9000;
            r.pd_len = v & 4 ? 508 : 0;
            play_well(&r);
        }
    }
}

static void held_sends(void **ctx)
{
    (void)ctx;
    for (unsigned v = 0; v < VARIANTS; v++) {
        struct run r = LONG;
        vary(&r, v);
        r.hold = true;
        play_well(&r);
    }
}

static void rejects(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < sizeof(pd); i++)
        pd[i] = i * 5 + 1;
    for (uint16_t len = 0; len <= 508; len += len < 8 ? 1 : 100) {
        for (uint8_t rev = 1; rev <= 2; rev++) {
            struct run r = SHORT;
            r.reject = true;
            r.conf[0].rev = rev;
            r.pd_len = len;
            r.chunk = 1 + len % 7;
            play(&r);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(ends[i].nego.state, MPA_NEGO_REJECTED);
                assert_int_equal(ends[i].nego.peer.enhanced, rev == 2);
                assert_int_equal(ends[i].nego.peer.pd_len, len);
                assert_memory_equal(ends[i].nego.peer.pd, pd, len);
                assert_false(ends[i].data);
            }
            assert_int_equal(ends[0].nego.peer.ird, rev == 2 ? END_IRD : 0);
        }
    }
}

/* A Terminate of the program, with other work in front of it, behind it and on the other side. */
static void terminates(void **ctx)
{
    static const struct end_op ops[] = {
        {RDMAP_SEND, 0, 3000}, {RDMAP_TERMINATE, 0, 0}, {RDMAP_SEND, 0, 1}};
    (void)ctx;
    for (unsigned v = 0; v < VARIANTS; v++) {
        struct run r = run_new(ops, COUNT(ops), long_b, COUNT(long_b));
        vary(&r, v);
        r.chunk = 100;
        play(&r);
        assert_int_equal(ends[1].error, IW_ERR_PEER_TERMINATE);
        assert_int_equal(ends[1].nrecv, 1);
        assert_int_equal(ends[1].term.layer, TERM_RDMAP);
        assert_int_equal(ends[1].term.code, 0);
        assert_int_equal(ends[0].error, IW_OK);
    }
}

/* What one side refuses reaches the other as the Terminate of the error table. */
static void refusals(void **ctx)
{
    static const struct {
        struct end_op op;
        enum iw_err error;
    } t[] = {
        {{RDMAP_WRITE, END_WRITE - 10, 11}, IW_ERR_TAGGED_BOUNDS},
        {{RDMAP_WRITE, 0u - END_READ - 1, 5}, IW_ERR_TAGGED_BOUNDS},
        {{RDMAP_READ_REQUEST, END_MEM - 4, 5}, IW_ERR_READ_BOUNDS},
        {{RDMAP_ATOMIC_REQUEST, END_WRITE - 7, 1}, IW_ERR_READ_BOUNDS},
    };
    (void)ctx;
    for (size_t i = 0; i < COUNT(t); i++) {
        for (unsigned v = 0; v < VARIANTS; v++) {
            struct run r = run_new(&t[i].op, 1, long_b, COUNT(long_b));
            const struct iw_err_info *info = iw_err_info(t[i].error);
            vary(&r, v);
            play(&r);
            assert_int_equal(ends[1].error, t[i].error);
            assert_int_equal(ends[0].error, IW_ERR_PEER_TERMINATE);
            assert_int_equal(ends[0].term.layer, info->layer);
            assert_int_equal(ends[0].term.etype, info->etype);
            assert_int_equal(ends[0].term.code, info->code);
            assert_true(ends[0].term.has_ddp);
            assert_int_equal(ends[0].term.has_rdmap, t[i].op.opcode == RDMAP_READ_REQUEST);
        }
    }
}

/*
 * The initiator's bytes stop at each place, then its FIN comes: a clean end exactly between FPDUs,
 * LLP_CLOSED inside one, a failed handshake before.
 */
static void cut_off_at_every_byte(void **ctx)
{
    struct run r = SHORT;
    uint64_t clean = 0;
    (void)ctx;

    r.nops[1] = 0;
    play_well(&r);
    uint64_t total = ends[1].received, fpdus = ends[1].rx.fpdus;
    for (r.cut_off = 1; r.cut_off < total; r.cut_off++) {
        const struct end *e = &ends[1];
        play(&r);
        if (r.cut_off < ends[0].start_len) {
            assert_int_equal(e->nego.state, MPA_NEGO_FAILED);
            assert_int_equal(e->nego.error, IW_ERR_LLP_CLOSED);
            continue;
        }
        assert_int_equal(e->received, r.cut_off);
        assert_true(e->error == IW_OK || e->error == IW_ERR_LLP_CLOSED);
        clean += e->error == IW_OK;
    }
    assert_int_equal(clean, fpdus); /* in front of each of them */
}

/*
 * Each byte of the exchange, hit by several masks. With CRC, no bad FPDU gets past the check: what
 * was received before is right and an error ends the stream. Without, anything may arrive, but only
 * where it is allowed.
 */
static void corruption(void **ctx)
{
    static const uint8_t masks[] = {0x01, 0x02, 0x10, 0x40, 0x80, 0xff};
    (void)ctx;
    for (unsigned v = 0; v < VARIANTS; v++) {
        if (v & (2 | 8 | 16)) /* which side asked for CRC, and the kind of RTR, change nothing */
            continue;
        struct run r = SHORT;
        vary(&r, v);
        r.mulpdu = 128;
        play_well(&r);
        uint64_t total[2] = {ends[1].received, ends[0].received}; /* sent by */
        uint64_t start[2] = {ends[0].start_len, ends[1].start_len};
        for (int from = 0; from < 2; from++) {
            for (uint64_t at = 0; at < total[from]; at++) {
                for (size_t m = 0; m < (v & 1 ? COUNT(masks) : 2); m++) {
                    r.corrupt = 1 + from;
                    r.corrupt_at = at;
                    r.corrupt_mask = masks[m];
                    play(&r);
                    const struct end *to = &ends[!from];
                    if ((v & 1) && at >= start[from]) {
                        assert_int_not_equal(to->error, IW_OK);
                        for (uint32_t i = 0; i < END_READ; i++)
                            assert_int_equal(to->mem[i], end_pattern(i));
                    }
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_variants),
        cmocka_unit_test(split_at_every_byte),
        cmocka_unit_test(small_chunks_and_windows),
        cmocka_unit_test(held_sends),
        cmocka_unit_test(rejects),
        cmocka_unit_test(terminates),
        cmocka_unit_test(refusals),
        cmocka_unit_test(cut_off_at_every_byte),
        cmocka_unit_test(corruption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

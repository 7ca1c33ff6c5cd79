/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/tx.h"
#include "unmark.h"
#include "wire/opcode.h"
#include "wire/terminate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY  (4u << 20)
#define LIMIT (256 * 1024) /* of a batch */

static uint8_t source[MANY + 1]; /* what messages are made of */
static uint8_t wire[MANY * 2];   /* what the stream took */
static struct iwc_batch batch;

static int setup(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (i * 2654435761u) >> 11;
    return 0;
}

/** A stream that takes what it is told to. */
struct sink {
    struct iwc_stream base;
    size_t len;    /* bytes in wire[] */
    size_t each;   /* most bytes a call */
    size_t budget; /* bytes before -EAGAIN */
    unsigned calls;
    int error; /* instead of -EAGAIN */
};

static ssize_t sink_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct sink *k = (struct sink *)s;
    size_t room = k->each < k->budget ? k->each : k->budget, taken = 0;

    k->calls++;
    for (unsigned i = 0; i < n && taken < room; i++) {
        size_t part = iov[i].iov_len < room - taken ? iov[i].iov_len : room - taken;
        assert_true(iov[i].iov_len > 0);
        memcpy(wire + k->len, iov[i].iov_base, part);
        k->len += part;
        taken += part;
    }
    k->budget -= taken;
    return taken ? (ssize_t)taken : k->error ? k->error : -EAGAIN;
}

static const struct iwc_stream_ops sink_ops = {.send = sink_send};

static struct sink sink_new(void)
{
    return (struct sink){.base.ops = &sink_ops, .each = SIZE_MAX, .budget = SIZE_MAX};
}

static struct iwc_msg message(uint8_t opcode, const struct iovec *iov, unsigned niov)
{
    struct iwc_msg m = {
        .opcode = opcode, .stag = 0x1234, .to = 0xfffffff0, .iov = iov, .niov = niov};
    for (unsigned i = 0; i < niov; i++)
        m.len += iov[i].iov_len;
    return m;
}

/** Cuts and sends the whole message. */
static void transmit(struct iwc_tx *tx, struct iwc_msg *m, struct sink *k)
{
    bool done;
    do {
        done = iwc_tx_cut(tx, &batch, m);
        assert_int_equal(iwc_tx_send(tx, &batch, &k->base), 0);
    } while (!done);
    assert_int_equal(tx->cut_pos, k->len);
    assert_int_equal(tx->sent_pos, k->len);
}

/**
 * Reads one message off the wire at @p pos and compares it with @p hdr and @p data.
 * @return where it ends
 */
static uint64_t check_message(uint64_t pos, const struct iwc_tx *tx, const struct iwc_msg *m,
                              uint32_t msn, const uint8_t *data)
{
    static uint8_t fpdu[FPDU_MAX + 8];
    const struct rdmap_op *op = &rdmap_ops[m->opcode];
    uint64_t at = 0, total = m->hdr_len + m->len, segments = 0;
    uint32_t most = tx->mulpdu - (op->tagged ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR);
    uint32_t full = most - (tx->mulpdu + 2) % 4;
    struct ddp_seg seg;

    do {
        size_t len = 0, used = 0;
        if (tx->markers) {
            assert_int_equal(
                unmark_fpdu(wire + pos, sizeof(wire) - pos, pos, tx->crc, fpdu, &len, &used),
                UNMARK_OK);
        } else {
            len = used = fpdu_size(get_be16(wire + pos));
            memcpy(fpdu, wire + pos, len);
            uint32_t sum = crc32c_done(crc32c_add(CRC32C_INIT, fpdu, len - 4));
            assert_int_equal(get_le32(fpdu + len - 4), tx->crc ? sum : 0);
        }
        uint32_t ulpdu = get_be16(fpdu);
        unsigned pad = fpdu_pad(ulpdu);
        assert_true(ulpdu <= tx->mulpdu);
        assert_int_equal(ddp_decode(fpdu + 2, ulpdu, &seg), IW_OK);
        assert_int_equal(seg.opcode, m->opcode);
        assert_memory_equal(fpdu + 2 + ulpdu, "\0\0\0", pad);
        if (!seg.last) {
            assert_int_equal(pad, 0);
            assert_true(ulpdu + 4 > tx->mulpdu); /* full */
        }
        if (op->tagged) {
            assert_int_equal(seg.stag, m->stag);
            assert_int_equal(seg.to, m->to + at);
        } else {
            assert_int_equal(seg.msn, msn);
            assert_int_equal(seg.mo, at);
            assert_int_equal(get_be32(seg.hdr + 2), op->invalidate ? m->stag : 0);
        }
        for (uint32_t i = 0; i < seg.len; i++, at++)
            if (seg.payload[i] != (at < m->hdr_len ? m->hdr[at] : data[at - m->hdr_len]))
                fail_msg("byte %llu is wrong", (unsigned long long)at);
        pos += used;
        segments++;
    } while (!seg.last);
    assert_int_equal(at, total);
    assert_int_equal(segments, total <= most ? 1 : 1 + (total - most + full - 1) / full);
    return pos;
}

static const uint32_t mulpdus[] = {128, 129, 130, 131, 508, 1442, 1454, 8954, 16384, 64768};
static const uint32_t lengths[] = {
    0,   1,   2,   3,   4,   5,   15,   16,   17,   31,   32,    33,    64,    107,    110,     111,
    114, 115, 494, 511, 512, 513, 1424, 1425, 1428, 4096, 14000, 64750, 64754, 200000, 1u << 20};

/* Every opcode, length, MULPDU, CRC and markers; payload in one piece and in odd ones. */
static void every_shape(void **ctx)
{
    static const uint8_t opcodes[] = {RDMAP_WRITE,    RDMAP_READ_RESPONSE, RDMAP_SEND,
                                      RDMAP_SEND_INV, RDMAP_SEND_SE,       RDMAP_SEND_SE_INV,
                                      RDMAP_SEND_IMM};
    static const uint8_t imm[RDMAP_SEND_IMM_HDR] = {1, 2, 3, 4, 1, 0, 0, 0};
    (void)ctx;

    for (int mode = 0; mode < 4; mode++) {
        for (size_t i = 0; i < sizeof(mulpdus) / sizeof(*mulpdus); i++) {
            struct sink k = sink_new();
            struct iwc_tx tx;
            uint64_t pos = 0;
            uint32_t msn = 1;

            iwc_batch_init(&batch, LIMIT);
            iwc_tx_init(&tx, mode & 1, mode & 2, mulpdus[i]);
            for (size_t j = 0; j < sizeof(lengths) / sizeof(*lengths); j++) {
                uint32_t n = lengths[j];
                if (n > 400 * mulpdus[i])
                    continue;
                for (size_t o = 0; o < (n > 10000 ? 2 : sizeof(opcodes)); o++) {
                    for (int pieces = 0; pieces < 2; pieces++) {
                        struct iovec one[] = {{source + 1, n}};
                        struct iovec odd[] = {{NULL, 0},
                                              {source + 1, n / 3},
                                              {NULL, 0},
                                              {source + 1 + n / 3, n / 2},
                                              {source + 1 + n / 3 + n / 2, n - n / 3 - n / 2},
                                              {NULL, 0}};
                        struct iwc_msg m =
                            pieces ? message(opcodes[o], odd, 6) : message(opcodes[o], one, 1);
                        if (opcodes[o] == RDMAP_SEND_IMM) {
                            m.hdr = imm;
                            m.hdr_len = sizeof(imm);
                        }
                        k.len = pos = tx.cut_pos; /* the whole stream stays in wire[] */
                        if (pos > MANY) {
                            k.len = pos = tx.cut_pos = tx.sent_pos = 0;
                        }
                        transmit(&tx, &m, &k);
                        pos = check_message(pos, &tx, &m, msn, source + 1);
                        assert_int_equal(pos, tx.cut_pos);
                        msn += !rdmap_ops[opcodes[o]].tagged;
                        assert_int_equal(tx.msn[DDP_QN_SEND], msn);
                    }
                }
            }
        }
    }
}

/* Messages that are all header, and their queues' own sequence numbers. */
static void headers_only(void **ctx)
{
    static const struct {
        uint8_t opcode, len;
    } t[] = {{RDMAP_READ_REQUEST, RDMAP_READ_REQUEST_HDR},
             {RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_REQUEST_HDR},
             {RDMAP_ATOMIC_RESPONSE, RDMAP_ATOMIC_RESPONSE_HDR},
             {RDMAP_IMM, RDMAP_IMM_HDR},
             {RDMAP_IMM_SE, RDMAP_IMM_HDR},
             {RDMAP_TERMINATE, TERMINATE_MAX}};
    struct sink k = sink_new();
    struct iwc_tx tx;
    uint64_t pos = 0;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, true, false, FPDU_MULPDU_MIN);
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct iwc_msg m = {.opcode = t[i].opcode, .hdr = source, .hdr_len = t[i].len};
        uint32_t msn = tx.msn[rdmap_ops[t[i].opcode].qn];
        transmit(&tx, &m, &k);
        pos = check_message(pos, &tx, &m, msn, NULL);
    }
    assert_int_equal(tx.msn[DDP_QN_SEND], 3);
    assert_int_equal(tx.msn[DDP_QN_READ], 3);
    assert_int_equal(tx.msn[DDP_QN_ATOMIC], 2);
    assert_int_equal(tx.msn[DDP_QN_TERMINATE], 2);
}

/* The bytes of a well-known FPDU: a Send of "hello". */
static void known_bytes(void **ctx)
{
    static const uint8_t want[] = {0x00, 0x17, 0x41, 0x43, 0, 0, 0,    0,    0,    0,   0,
                                   0,    0,    0,    0,    1, 0, 0,    0,    0,    'h', 'e',
                                   'l',  'l',  'o',  0,    0, 0, 0xb9, 0x90, 0xb1, 0x0c};
    struct iovec v = {"hello", 5};
    struct iwc_msg m = message(RDMAP_SEND, &v, 1);
    struct sink k = sink_new();
    struct iwc_tx tx;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, true, false, 1442);
    transmit(&tx, &m, &k);
    assert_int_equal(k.len, sizeof(want));
    assert_memory_equal(wire, want, sizeof(want));
}

static void small_messages_share_one_iovec(void **ctx)
{
    struct sink k = sink_new();
    struct iwc_tx tx;
    (void)ctx;

    for (int crc = 0; crc < 2; crc++) {
        iwc_batch_init(&batch, LIMIT);
        iwc_tx_init(&tx, crc, false, 16384);
        for (int i = 0; i < 1000; i++) {
            struct iovec v = {source, 64};
            struct iwc_msg m = message(RDMAP_SEND, &v, 1);
            assert_true(iwc_tx_cut(&tx, &batch, &m));
        }
        assert_int_equal(batch.niov, 1);
        assert_false(batch.gathered);
        k.calls = 0;
        assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
        assert_int_equal(k.calls, 1);
    }
}

static void when_payload_is_gathered(void **ctx)
{
    static const struct {
        size_t a, b; /* two pieces */
        bool crc, markers, gathered;
    } t[] = {
        {IWC_GATHER_MIN, 0, false, false, true},
        {IWC_GATHER_MIN - 1, 0, false, false, false},
        {IWC_GATHER_MIN, 0, true, false, false},
        {IWC_GATHER_MIN, 0, false, true, false},
        {IWC_GATHER_MIN, IWC_GATHER_MIN, false, false, true},
        {IWC_GATHER_MIN, 10, false, false, false},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct iovec v[] = {{source, t[i].a}, {source + MANY / 2, t[i].b}};
        struct iwc_msg m = message(RDMAP_WRITE, v, 2);
        struct iwc_tx tx;

        iwc_batch_init(&batch, LIMIT);
        iwc_tx_init(&tx, t[i].crc, t[i].markers, 16384);
        assert_true(iwc_tx_cut(&tx, &batch, &m));
        assert_int_equal(batch.gathered, t[i].gathered);
        if (t[i].gathered) {
            assert_ptr_equal(batch.iov[1].iov_base, source);
            assert_int_equal(batch.niov, t[i].b ? 4 : 3);
        } else {
            assert_int_equal(batch.niov, 1);
        }
    }
}

/* A trailer and the next header lie side by side: one iov for both. */
static void gathered_segments_take_two_iovecs_each(void **ctx)
{
    struct iovec v = {source, 100000};
    struct iwc_msg m = message(RDMAP_WRITE, &v, 1);
    struct iwc_tx tx;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, false, false, 10014); /* ten segments */
    assert_true(iwc_tx_cut(&tx, &batch, &m));
    assert_int_equal(batch.niov, 2 * 10 + 1);
}

/* A batch stops at its limit between segments, and the message goes on in the next one. */
static void batch_limit(void **ctx)
{
    static const uint32_t sizes[] = {128, 1442, 64768};
    (void)ctx;
    for (int mode = 0; mode < 4; mode++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            struct iovec v = {source, 2 << 20};
            struct iwc_msg m = message(RDMAP_SEND, &v, 1);
            struct sink k = sink_new();
            struct iwc_tx tx;
            unsigned rounds = 0;
            bool done;

            iwc_batch_init(&batch, LIMIT);
            iwc_tx_init(&tx, mode & 1, mode & 2, sizes[i]);
            do {
                uint64_t before = tx.cut_pos, cut = m.cut;
                done = iwc_tx_cut(&tx, &batch, &m);
                assert_true(m.begun);
                assert_true(m.cut > cut);
                assert_int_equal(batch.unsent, tx.cut_pos - before);
                assert_true(done || batch.unsent >= LIMIT);
                assert_true(batch.unsent < LIMIT + FPDU_MAX);
                assert_true(batch.copied <= IWC_BATCH_COPY);
                assert_true(batch.niov <= IWC_BATCH_IOV);
                if (!done) /* full is full */
                    assert_false(iwc_tx_cut(&tx, &batch, &m));
                assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
                assert_int_equal(batch.unsent, 0);
                rounds++;
            } while (!done);
            assert_true(rounds >= 7);
            assert_int_equal(check_message(0, &tx, &m, 1, source), k.len);
        }
    }
}

/* Full is full for short messages, too: the one that finds no room is as it was. */
static void short_messages_fill_a_batch(void **ctx)
{
    struct iovec v = {source, 100};
    struct iwc_msg m = message(RDMAP_SEND, &v, 1);
    struct sink k = sink_new();
    struct iwc_tx tx;
    uint32_t n = 0;
    uint64_t pos = 0;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, false, false, 1442);
    while (iwc_tx_cut(&tx, &batch, &m)) {
        n++;
        m = message(RDMAP_SEND, &v, 1);
        assert_true(batch.unsent < LIMIT + FPDU_MAX);
    }
    assert_true(batch.unsent >= LIMIT);
    assert_int_equal(tx.cut_pos, batch.unsent);
    assert_int_equal(m.cut, 0);
    assert_false(m.begun);
    assert_int_equal(tx.msn[DDP_QN_SEND], n + 1);
    assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
    for (uint32_t i = 0; i < n; i++)
        pos = check_message(pos, &tx, &m, i + 1, source);
    assert_int_equal(pos, k.len);
}

/* Many gathered segments of the smallest kind must not overrun the iovecs. */
static void iovec_limit(void **ctx)
{
    static struct iovec v[16];
    struct sink k = sink_new();
    struct iwc_tx tx;
    uint64_t pos = 0;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, false, false, FPDU_ULPDU_MAX);
    for (int i = 0; i < 16; i++)
        v[i] = (struct iovec){source + i * 4096, 4096};
    for (int i = 0; i < 200; i++) {
        struct iwc_msg m = message(RDMAP_SEND, v, 15);
        k.len = 0;
        k.budget = 61000; /* less than a message: the batch never empties */
        while (!iwc_tx_cut(&tx, &batch, &m)) {
            k.len = 0;
            k.budget = SIZE_MAX;
            assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
        }
        assert_true(batch.niov <= IWC_BATCH_IOV && batch.copied <= IWC_BATCH_COPY);
        int r = iwc_tx_send(&tx, &batch, &k.base);
        assert_true(r == 0 || r == -EAGAIN);
        pos += k.len;
    }
    assert_true(pos > 0);
}

/* The stream takes odd amounts and says no in between. */
static void partial_sends(void **ctx)
{
    static const size_t each[] = {1, 3, 20, 1000, 70001};
    (void)ctx;
    for (int mode = 0; mode < 4; mode++) {
        for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
            struct iovec v = {source, each[i] * 30 + 9000};
            struct iwc_msg m = message(RDMAP_SEND, &v, 1);
            struct sink k = sink_new();
            struct iwc_tx tx;
            bool done = false;
            int r;

            iwc_batch_init(&batch, LIMIT);
            iwc_tx_init(&tx, mode & 1, mode & 2, 5000);
            k.each = each[i];
            do {
                if (!done) /* also onto a batch of which a part is out */
                    done = iwc_tx_cut(&tx, &batch, &m);
                k.budget = each[i] * 2 + 1;
                r = iwc_tx_send(&tx, &batch, &k.base);
                assert_true(r == 0 || r == -EAGAIN);
                assert_int_equal(tx.sent_pos, k.len);
                assert_int_equal(tx.cut_pos - tx.sent_pos, batch.unsent);
            } while (!done || r);
            assert_int_equal(check_message(0, &tx, &m, 1, source), k.len);
        }
    }
}

static void errors_come_through(void **ctx)
{
    struct iovec v = {source, 100};
    struct iwc_msg m = message(RDMAP_SEND, &v, 1);
    struct sink k = sink_new();
    struct iwc_tx tx;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, true, false, 1442);
    assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
    assert_int_equal(k.calls, 0); /* nothing to send, no call */
    assert_true(iwc_tx_cut(&tx, &batch, &m));
    k.budget = 10;
    k.error = -EPIPE;
    assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), -EPIPE);
    assert_int_equal(tx.sent_pos, 10);
}

/* A Terminate may come between the segments of a message, and MULPDU may change there. */
static void between_segments(void **ctx)
{
    struct iovec v = {source, 400000};
    struct iwc_msg m = message(RDMAP_SEND, &v, 1), rest;
    struct iwc_msg term = {.opcode = RDMAP_TERMINATE, .hdr = source, .hdr_len = 4};
    struct sink k = sink_new();
    struct iwc_tx tx;
    (void)ctx;

    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, true, false, 8000);
    assert_false(iwc_tx_cut(&tx, &batch, &m));
    assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
    rest = message(RDMAP_SEND, &v, 1); /* built anew */
    rest.cut = m.cut;
    rest.begun = true;
    tx.mulpdu = 1000;
    transmit(&tx, &rest, &k);
    assert_int_equal(tx.msn[DDP_QN_SEND], 2);

    uint64_t pos = 0, at = 0;
    struct ddp_seg seg;
    do {
        assert_int_equal(ddp_decode(wire + pos + 2, get_be16(wire + pos), &seg), IW_OK);
        assert_int_equal(seg.mo, at);
        assert_memory_equal(seg.payload, source + at, seg.len);
        at += seg.len;
        pos += fpdu_size(get_be16(wire + pos));
    } while (!seg.last);
    assert_int_equal(at, 400000);
    assert_int_equal(pos, k.len);

    iwc_tx_init(&tx, true, false, 8000);
    k = sink_new();
    m = message(RDMAP_SEND, &v, 1);
    assert_false(iwc_tx_cut(&tx, &batch, &m));
    assert_int_equal(iwc_tx_send(&tx, &batch, &k.base), 0);
    pos = k.len;
    transmit(&tx, &term, &k);
    assert_int_equal(check_message(pos, &tx, &term, 1, NULL), k.len);
}

static void end_of_the_longest_message(void **ctx)
{
    static struct iovec v[1024];
    struct iwc_tx tx;
    struct ddp_seg seg = {0};
    uint64_t at = 0;
    (void)ctx;

    for (int i = 0; i < 1024; i++)
        v[i] = (struct iovec){source, MANY};
    v[1023].iov_len = MANY - 1; /* 2^32 - 1 in all */
    struct iwc_msg m = message(RDMAP_WRITE, v, 1024);
    m.cut = 0xffffff00u - 0xffffff00u % 64752;
    m.begun = true;
    at = m.cut;
    iwc_batch_init(&batch, LIMIT);
    iwc_tx_init(&tx, false, false, FPDU_ULPDU_MAX);
    struct sink k = sink_new();
    transmit(&tx, &m, &k);
    for (uint64_t pos = 0; pos < k.len; pos += fpdu_size(get_be16(wire + pos))) {
        assert_int_equal(ddp_decode(wire + pos + 2, get_be16(wire + pos), &seg), IW_OK);
        assert_int_equal(seg.to, m.to + at);
        for (uint32_t i = 0; i < seg.len; i += 97)
            assert_int_equal(seg.payload[i], source[(at + i) % MANY]);
        at += seg.len;
    }
    assert_true(seg.last);
    assert_int_equal(at, 0xffffffffu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(headers_only),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(small_messages_share_one_iovec),
        cmocka_unit_test(when_payload_is_gathered),
        cmocka_unit_test(gathered_segments_take_two_iovecs_each),
        cmocka_unit_test(batch_limit),
        cmocka_unit_test(short_messages_fill_a_batch),
        cmocka_unit_test(iovec_limit),
        cmocka_unit_test(partial_sends),
        cmocka_unit_test(errors_come_through),
        cmocka_unit_test(between_segments),
        cmocka_unit_test(end_of_the_longest_message),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}

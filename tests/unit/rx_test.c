/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/rx.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/opcode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** What the upcalls saw, as text, and what they shall answer. */
struct log {
    char text[1024];
    int answer;
};

static int note(void *up, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int note(void *up, const char *fmt, ...)
{
    struct log *l = up;
    size_t n = strlen(l->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->text + n, sizeof(l->text) - n, fmt, ap);
    va_end(ap);
    return l->answer;
}

static int up_write(void *up, const struct ddp_seg *s)
{
    return note(up, "W %x+%llx %u%s;", s->stag, (unsigned long long)s->to, s->len,
                s->last ? " L" : "");
}

static int up_read_request(void *up, const struct rdmap_read_request *r)
{
    return note(up, "RR %x+%llx %u from %x+%llx;", r->sink_stag, (unsigned long long)r->sink_to,
                r->size, r->source_stag, (unsigned long long)r->source_to);
}

static int up_read_response(void *up, const struct ddp_seg *s)
{
    return note(up, "RS %x+%llx %u%s;", s->stag, (unsigned long long)s->to, s->len,
                s->last ? " L" : "");
}

static int up_send(void *up, const struct ddp_seg *s)
{
    return note(up, "S%x %u @%u%s;", s->opcode, s->len, s->mo, s->last ? " L" : "");
}

static int up_immediate(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited)
{
    return note(up, "I %02x%02x%s;", data[0], data[7], solicited ? " SE" : "");
}

static int up_atomic_request(void *up, const struct rdmap_atomic_request *r)
{
    return note(up, "AR %u %x;", r->aop, r->id);
}

static int up_atomic_response(void *up, const struct rdmap_atomic_response *r)
{
    return note(up, "AS %x %llx;", r->id, (unsigned long long)r->original);
}

static void up_terminate(void *up, const struct terminate *t)
{
    note(up, "T %u/%u/%02x;", t->layer, t->etype, t->code);
}

static const struct iwc_upcalls ops = {
    .write = up_write,
    .read_request = up_read_request,
    .read_response = up_read_response,
    .send = up_send,
    .immediate = up_immediate,
    .atomic_request = up_atomic_request,
    .atomic_response = up_atomic_response,
    .terminate = up_terminate,
};

/* One segment of a scenario. Tagged ones use stag and to. */
struct seg {
    uint8_t op;
    bool more; /* not the last */
    uint32_t msn, mo, inval;
    uint32_t stag;
    uint64_t to;
    int len; /* of payload; -1: exactly the RDMAP header */
};

static uint8_t bytes[128 * 1024];

static size_t put(uint8_t *p, const struct seg *s)
{
    const struct rdmap_op *op = &rdmap_ops[s->op];
    uint8_t *q = p + FPDU_LEN_FIELD;
    uint32_t len = s->len < 0 ? op->hdr_len : (uint32_t)s->len;
    uint32_t hdr = op->tagged ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR;

    memset(p, 0, fpdu_size(hdr + len));
    put_be16(p, hdr + len);
    if (op->tagged)
        ddp_encode_tagged(q, s->op, !s->more, s->stag, s->to);
    else
        ddp_encode_untagged(q, s->op, !s->more, s->inval, s->msn, s->mo);
    memset(q + hdr, 0x11, len);
    size_t covered = fpdu_size(hdr + len) - FPDU_CRC_FIELD;
    memset(p + FPDU_LEN_FIELD + hdr + len, 0, fpdu_pad(hdr + len));
    put_le32(p + covered, crc32c_done(crc32c_add(CRC32C_INIT, p, covered)));
    return covered + FPDU_CRC_FIELD;
}

#define N 6

struct scenario {
    const char *what;
    struct seg segs[N];
    const char *seen;
    enum iw_err error;
    bool ext;
};

#define SEND(msn_, mo_, len_)                                                                      \
    {                                                                                              \
        .op = RDMAP_SEND, .msn = msn_, .mo = mo_, .len = len_                                      \
    }
#define PART(msn_, mo_, len_)                                                                      \
    {                                                                                              \
        .op = RDMAP_SEND, .msn = msn_, .mo = mo_, .len = len_, .more = true                        \
    }

/* clang-format off */
static const struct scenario scenarios[] = {
    {"sends", {SEND(1, 0, 5), SEND(2, 0, 0), SEND(3, 0, 7)}, "S3 5 @0 L;S3 0 @0 L;S3 7 @0 L;",
     IW_OK, false},
    {"a send in three segments", {PART(1, 0, 8), PART(1, 8, 8), SEND(1, 16, 3), SEND(2, 0, 1)},
     "S3 8 @0;S3 8 @8;S3 3 @16 L;S3 1 @0 L;", IW_OK, false},
    {"an empty last segment", {PART(1, 0, 8), SEND(1, 8, 0), SEND(2, 0, 1)},
     "S3 8 @0;S3 0 @8 L;S3 1 @0 L;", IW_OK, false},
    {"a first MSN of 0", {SEND(0, 0, 5)}, "", IW_ERR_UNTAGGED_MSN, false},
    {"an MSN twice", {SEND(1, 0, 5), SEND(1, 0, 5)}, "S3 5 @0 L;", IW_ERR_UNTAGGED_MSN, false},
    {"an MSN left out", {SEND(1, 0, 5), SEND(3, 0, 5)}, "S3 5 @0 L;", IW_ERR_UNTAGGED_MSN, false},
    {"a next message in the middle of one", {PART(1, 0, 8), SEND(2, 0, 5)}, "S3 8 @0;",
     IW_ERR_UNTAGGED_MSN, false},
    {"a first MO that is not 0", {SEND(1, 4, 5)}, "", IW_ERR_UNTAGGED_MO, false},
    {"a gap", {PART(1, 0, 8), SEND(1, 9, 5)}, "S3 8 @0;", IW_ERR_UNTAGGED_MO, false},
    {"an overlap", {PART(1, 0, 8), SEND(1, 7, 5)}, "S3 8 @0;", IW_ERR_UNTAGGED_MO, false},
    {"a new start", {PART(1, 0, 8), SEND(1, 0, 5)}, "S3 8 @0;", IW_ERR_UNTAGGED_MO, false},
    {"a send kind that changes",
     {PART(1, 0, 8), {.op = RDMAP_SEND_SE, .msn = 1, .mo = 8, .len = 1}}, "S3 8 @0;",
     IW_ERR_OPCODE, false},
    {"a send kind that changes after an empty segment",
     {PART(1, 0, 0), {.op = RDMAP_SEND_SE, .msn = 1, .mo = 0, .len = 1}}, "S3 0 @0;",
     IW_ERR_OPCODE, false},
    {"an STag to invalidate that changes",
     {{.op = RDMAP_SEND_INV, .msn = 1, .len = 4, .more = true, .inval = 7},
     {.op = RDMAP_SEND_INV, .msn = 1, .mo = 4, .len = 4, .inval = 8}}, "S4 4 @0;", IW_ERR_OPCODE,
     false},
    {"the same STag again",
     {{.op = RDMAP_SEND_SE_INV, .msn = 1, .len = 4, .more = true, .inval = 7},
     {.op = RDMAP_SEND_SE_INV, .msn = 1, .mo = 4, .len = 4, .inval = 7}}, "S6 4 @0;S6 4 @4 L;",
     IW_OK, false},
    {"writes, also between the segments of a send", {PART(1, 0, 4),
     {.op = RDMAP_WRITE, .stag = 9, .to = 0x1000, .len = 4, .more = true}, SEND(1, 4, 4),
     {.op = RDMAP_WRITE, .stag = 9, .to = 0x1004, .len = 2}},
     "S3 4 @0;W 9+1000 4;S3 4 @4 L;W 9+1004 2 L;", IW_OK, false},
    {"empty writes: only their end counts", {{.op = RDMAP_WRITE, .stag = 0},
     {.op = RDMAP_WRITE, .stag = 1, .more = true}, SEND(1, 0, 0)}, "W 0+0 0 L;S3 0 @0 L;", IW_OK,
     false},
    {"read responses", {{.op = RDMAP_READ_RESPONSE, .stag = 5, .to = 16, .len = 8, .more = true},
     {.op = RDMAP_READ_RESPONSE, .stag = 5, .to = 24, .len = 0, .more = true},
     {.op = RDMAP_READ_RESPONSE, .stag = 5, .to = 24, .len = 0}}, "RS 5+10 8;RS 5+18 0 L;", IW_OK,
     false},
    {"read requests count on their own queue", {SEND(1, 0, 1),
     {.op = RDMAP_READ_REQUEST, .msn = 1, .len = -1},
     {.op = RDMAP_ATOMIC_REQUEST, .msn = 2, .len = -1},
     {.op = RDMAP_ATOMIC_RESPONSE, .msn = 1, .len = -1}, SEND(2, 0, 1)},
     "S3 1 @0 L;RR 11111111+1111111111111111 286331153 from 11111111+1111111111111111;"
     "AR 1 11111111;AS 11111111 1111111111111111;S3 1 @0 L;", IW_OK, false},
    {"a read request out of turn", {{.op = RDMAP_READ_REQUEST, .msn = 2, .len = -1}}, "",
     IW_ERR_UNTAGGED_MSN, false},
    {"a read request with an MO", {{.op = RDMAP_READ_REQUEST, .msn = 1, .mo = 28, .len = -1}}, "",
     IW_ERR_UNTAGGED_MO, false},
    {"a read request that goes on",
     {{.op = RDMAP_READ_REQUEST, .msn = 1, .len = -1, .more = true}}, "", IW_ERR_UNTAGGED_MO,
     false},
    {"a read request with a tail", {{.op = RDMAP_READ_REQUEST, .msn = 1, .len = 29}}, "",
     IW_ERR_UNTAGGED_TOO_LONG, false},
    {"a short read request", {{.op = RDMAP_READ_REQUEST, .msn = 1, .len = 27}}, "",
     IW_ERR_FRAMING, false},
    {"an atomic request that goes on",
     {{.op = RDMAP_ATOMIC_REQUEST, .msn = 1, .len = -1, .more = true}}, "", IW_ERR_UNTAGGED_MO,
     false},
    {"an atomic response out of turn", {{.op = RDMAP_ATOMIC_RESPONSE, .msn = 2, .len = -1}}, "",
     IW_ERR_UNTAGGED_MSN, false},
    {"immediates share the MSN of sends", {{.op = RDMAP_IMM, .msn = 1, .len = -1}, SEND(2, 0, 1),
     {.op = RDMAP_IMM_SE, .msn = 3, .len = -1}}, "I 1111;S3 1 @0 L;I 1111 SE;", IW_OK, false},
    {"a long immediate", {{.op = RDMAP_IMM, .msn = 1, .len = 9}}, "", IW_ERR_UNTAGGED_TOO_LONG,
     false},
    {"an immediate in the middle of a send",
     {PART(1, 0, 8), {.op = RDMAP_IMM, .msn = 1, .len = -1}}, "S3 8 @0;", IW_ERR_OPCODE, false},
    {"a send with immediate", {{.op = RDMAP_SEND_IMM, .msn = 1, .len = 12, .more = true},
     {.op = RDMAP_SEND_IMM, .msn = 1, .mo = 12, .len = 1}}, "Sf 12 @0;Sf 1 @12 L;", IW_OK, true},
    {"the same from a peer that is not anywarp", {{.op = RDMAP_SEND_IMM, .msn = 1, .len = 12}},
     "", IW_ERR_OPCODE, false},
    {"a Terminate ends it",
     {SEND(1, 0, 1), {.op = RDMAP_TERMINATE, .msn = 1, .len = -1}, SEND(2, 0, 1)},
     "S3 1 @0 L;T 1/1/11;", IW_ERR_PEER_TERMINATE, false},
    {"a Terminate out of turn", {{.op = RDMAP_TERMINATE, .msn = 2, .len = -1}}, "",
     IW_ERR_UNTAGGED_MSN, false},
    {"a Terminate in pieces", {{.op = RDMAP_TERMINATE, .msn = 1, .len = -1, .more = true}}, "",
     IW_ERR_UNTAGGED_MO, false},
};
/* clang-format on */

/** Runs a scenario with pieces of at most @p step bytes; what is left is offered again. */
static void run(const struct scenario *s, bool crc, size_t step)
{
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    enum iwc_rx_status status = IWC_RX_MORE;
    enum iw_err err = IW_OK;
    size_t total = 0, start = 0, end = 0, used;

    for (int i = 0; i < N && (s->segs[i].op || s->segs[i].msn || s->segs[i].stag || i == 0); i++)
        total += put(bytes + total, &s->segs[i]);
    iwc_rx_init(&rx, &ops, &log, crc, s->ext);
    while (end < total && status == IWC_RX_MORE) {
        end = end + step < total ? end + step : total;
        uint8_t *copy = malloc(end - start); /* so that ASan knows the bounds */
        memcpy(copy, bytes + start, end - start);
        status = iwc_rx_input(&rx, copy, end - start, &used, &err);
        free(copy);
        start += used;
    }
    if (s->error == IW_ERR_PEER_TERMINATE) {
        assert_int_equal(status, IWC_RX_TERMINATED);
        assert_true(rx.terminated);
        assert_true(start < total);
    } else if (s->error) {
        if (status != IWC_RX_ERROR || err != s->error)
            fail_msg("%s: status %d error %d", s->what, status, err);
        assert_int_equal(rx.bad_ulpdu_len, get_be16(bytes + start));
    } else {
        if (status != IWC_RX_MORE || start != total)
            fail_msg("%s: status %d error %d at %zu of %zu", s->what, status, err, start, total);
    }
    assert_string_equal(log.text, s->seen);
}

static void every_scenario(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
        for (size_t step = 1; step < 80; step++)
            run(&scenarios[i], step & 1, step);
}

/* ---- single FPDUs ---- */

static enum iwc_rx_status feed(struct iwc_rx *rx, size_t len, size_t *used, enum iw_err *err)
{
    *err = IW_OK;
    return iwc_rx_input(rx, bytes, len, used, err);
}

static void lengths(void **ctx)
{
    static const struct {
        uint16_t len;
        bool legal;
    } t[] = {{0, false},    {13, false},    {14, true},    {18, true},
             {64768, true}, {64769, false}, {65535, false}};
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct iwc_rx rx;
        struct log log = {.answer = IW_OK};
        enum iw_err err;
        size_t used;

        iwc_rx_init(&rx, &ops, &log, false, false);
        put_be16(bytes, t[i].len);
        enum iwc_rx_status s = feed(&rx, 2, &used, &err);
        assert_int_equal(s, t[i].legal ? IWC_RX_MORE : IWC_RX_ERROR);
        assert_int_equal(err, t[i].legal ? IW_OK : IW_ERR_FRAMING);
        assert_int_equal(used, 0);
        assert_null(rx.bad.hdr);
    }
}

static void largest_fpdu(void **ctx)
{
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    struct seg s = {.op = RDMAP_SEND, .msn = 1, .len = FPDU_ULPDU_MAX - DDP_UNTAGGED_HDR};
    enum iw_err err;
    size_t used, len = put(bytes, &s);
    (void)ctx;

    assert_int_equal(len, FPDU_MAX);
    iwc_rx_init(&rx, &ops, &log, true, false);
    assert_int_equal(feed(&rx, len - 1, &used, &err), IWC_RX_MORE);
    assert_int_equal(used, 0);
    assert_int_equal(iwc_rx_need(bytes, len - 1), FPDU_MAX);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    assert_int_equal(used, len);
    assert_string_equal(log.text, "S3 64750 @0 L;");
}

static void needs(void **ctx)
{
    static const uint8_t p[] = {0x00, 0x17};
    (void)ctx;
    assert_int_equal(iwc_rx_need(p, 0), 0);
    assert_int_equal(iwc_rx_need(p, 1), 0);
    assert_int_equal(iwc_rx_need(p, 2), 32);
}

/* Every single-bit error is found before an upcall sees anything; without CRC none is
 * looked for.
 */
static void crc_comes_first(void **ctx)
{
    struct seg s = SEND(1, 0, 9);
    size_t len = put(bytes, &s), used;
    (void)ctx;

    for (size_t bit = 0; bit < len * 8; bit++) {
        struct iwc_rx rx;
        struct log log = {.answer = IW_OK};
        enum iw_err err;

        put(bytes, &s);
        bytes[bit / 8] ^= 1 << bit % 8;
        iwc_rx_init(&rx, &ops, &log, true, false);
        enum iwc_rx_status r = feed(&rx, len, &used, &err);
        assert_int_equal(used, 0);
        assert_string_equal(log.text, "");
        assert_int_equal(rx.fpdus, 0);
        assert_null(rx.bad.hdr);
        if (bit >= 16)
            assert_int_equal(err, IW_ERR_CRC);
        else
            assert_true(r == IWC_RX_MORE || err == IW_ERR_CRC || err == IW_ERR_FRAMING);
    }
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    enum iw_err err;
    put(bytes, &s);
    bytes[len - 1] ^= 1;
    iwc_rx_init(&rx, &ops, &log, false, false);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    assert_string_equal(log.text, "S3 9 @0 L;");
}

static void decode_errors_name_the_segment(void **ctx)
{
    struct seg s = SEND(1, 0, 5);
    size_t len = put(bytes, &s), used;
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    enum iw_err err;
    (void)ctx;

    bytes[2] = 0x42; /* DDP version 2 */
    iwc_rx_init(&rx, &ops, &log, false, false);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_ERROR);
    assert_int_equal(err, IW_ERR_UNTAGGED_VERSION);
    assert_ptr_equal(rx.bad.hdr, bytes + 2);
    assert_int_equal(rx.bad.hdr_len, DDP_UNTAGGED_HDR);
    assert_int_equal(rx.bad_ulpdu_len, 23);
}

/* Each opcode's upcall can end the stream; nothing is counted then. */
static void upcalls_can_fail(void **ctx)
{
    static const uint8_t t[] = {
        RDMAP_WRITE,    RDMAP_READ_REQUEST,   RDMAP_READ_RESPONSE,   RDMAP_SEND,
        RDMAP_SEND_INV, RDMAP_SEND_SE,        RDMAP_SEND_SE_INV,     RDMAP_IMM,
        RDMAP_IMM_SE,   RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_RESPONSE, RDMAP_SEND_IMM};
    (void)ctx;
    for (size_t i = 0; i < sizeof(t); i++) {
        struct seg s = {.op = t[i], .msn = 1, .len = rdmap_ops[t[i]].exact ? -1 : 20};
        size_t len = put(bytes, &s), used;
        struct iwc_rx rx;
        struct log log = {.answer = IW_ERR_TAGGED_BOUNDS};
        enum iw_err err;

        iwc_rx_init(&rx, &ops, &log, true, true);
        assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_ERROR);
        assert_int_equal(err, IW_ERR_TAGGED_BOUNDS);
        assert_int_equal(used, 0);
        assert_int_equal(rx.bad.opcode, t[i]);
        for (int q = 0; q < DDP_QN_COUNT; q++)
            assert_int_equal(rx.msn[q], 1);
        assert_int_equal(rx.fpdus, 0);
    }
}

static void hold(void **ctx)
{
    static const struct seg t[] = {
        SEND(1, 0, 5), {.op = RDMAP_IMM, .msn = 1, .len = -1}, PART(1, 0, 5)};
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct seg write = {.op = RDMAP_WRITE, .stag = 1, .len = 1};
        struct iwc_rx rx;
        struct log log = {.answer = IWC_HOLD};
        enum iw_err err;
        size_t used, len = put(bytes, &t[i]);
        size_t all = len + put(bytes + len, &write);

        iwc_rx_init(&rx, &ops, &log, true, false);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(feed(&rx, all, &used, &err), IWC_RX_HELD);
            assert_int_equal(used, 0);
            assert_int_equal(rx.fpdus, 1); /* it is valid: a responder may send now */
            assert_int_equal(rx.msn[DDP_QN_SEND], 1);
            assert_false(rx.open);
        }
        log.answer = IW_OK;
        assert_int_equal(feed(&rx, all, &used, &err), IWC_RX_MORE);
        assert_int_equal(used, all);
        assert_int_equal(rx.fpdus, 2);
        assert_int_equal(rx.msn[DDP_QN_SEND], t[i].more ? 1 : 2);
        assert_int_equal(rx.open, t[i].more);
    }
}

static void message_longer_than_32_bits(void **ctx)
{
    struct seg s = PART(1, 0xffffff00, 200);
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    enum iw_err err;
    size_t used, len = put(bytes, &s);
    (void)ctx;

    iwc_rx_init(&rx, &ops, &log, true, false);
    rx.open = true;
    rx.open_opcode = RDMAP_SEND;
    rx.open_mo = 0xffffff00;
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    s.mo += 200;
    s.len = 56; /* one byte too many */
    len = put(bytes, &s);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_ERROR);
    assert_int_equal(err, IW_ERR_UNTAGGED_TOO_LONG);
    s.len = 55;
    len = put(bytes, &s);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    s.mo += 55;
    s.len = 0;
    s.more = false;
    len = put(bytes, &s);
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    assert_false(rx.open);
}

static void msn_wraps(void **ctx)
{
    struct seg s = SEND(0xffffffff, 0, 1), next = SEND(0, 0, 1);
    struct iwc_rx rx;
    struct log log = {.answer = IW_OK};
    enum iw_err err;
    size_t used, len = put(bytes, &s);
    (void)ctx;

    len += put(bytes + len, &next);
    iwc_rx_init(&rx, &ops, &log, true, false);
    rx.msn[DDP_QN_SEND] = 0xffffffff;
    assert_int_equal(feed(&rx, len, &used, &err), IWC_RX_MORE);
    assert_int_equal(used, len);
    assert_int_equal(rx.msn[DDP_QN_SEND], 1);
}

/* Random bytes behind a good length, without CRC: some error or some upcall, never a crash.
 */
static void noise(void **ctx)
{
    uint32_t seed = 1;
    (void)ctx;
    for (int round = 0; round < 200000; round++) {
        struct iwc_rx rx;
        struct log log = {.answer = IW_OK};
        enum iw_err err;
        uint8_t *p;
        size_t used, len = 2;

        for (size_t i = 0; i < 96; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = seed >> 24;
        }
        put_be16(bytes, 14 + seed % 60);
        bytes[2] = (bytes[2] & 0xc0) | 1;
        bytes[3] = (bytes[3] & 0x0f) | 0x40;
        len = fpdu_size(get_be16(bytes));
        p = malloc(len);
        memcpy(p, bytes, len);
        iwc_rx_init(&rx, &ops, &log, false, true);
        enum iwc_rx_status r = iwc_rx_input(&rx, p, len, &used, &err);
        assert_true(r == IWC_RX_ERROR ? used == 0 : used == len);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scenario),
        cmocka_unit_test(lengths),
        cmocka_unit_test(largest_fpdu),
        cmocka_unit_test(needs),
        cmocka_unit_test(crc_comes_first),
        cmocka_unit_test(decode_errors_name_the_segment),
        cmocka_unit_test(upcalls_can_fail),
        cmocka_unit_test(hold),
        cmocka_unit_test(message_longer_than_32_bits),
        cmocka_unit_test(msn_wraps),
        cmocka_unit_test(noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

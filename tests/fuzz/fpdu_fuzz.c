/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive half: FPDUs out of bytes, message state, dispatch. The same bytes are given at once
 * and in pieces; both must come to the same upcalls and the same end. A third way puts markers into
 * the bytes and takes them out.
 */
#include "fuzz/fuzz.h"

#include "conn/rx.h"
#include "conn/rx_text.h"
#include "unmark.h"

#define BYTES_MAX (4 * FPDU_MAX)
#define SLACK     4096 /* markers in BYTES_MAX */

enum way {
    RAW,    /* the bytes are the stream */
    FRAMED, /* a length and a ULPDU each: framed here, with good lengths and CRCs */
    MARKED, /* one FPDU, behind its place in the stream */
};

/** What came up, as a running sum. */
struct seen {
    uint32_t sum;
    unsigned calls;
    bool hold, offered; /* every second offer of a Send is held */
};

static int note(struct seen *s, uint8_t opcode, const void *p, size_t len)
{
    s->sum = crc32c_add(s->sum, &opcode, 1);
    s->sum = crc32c_add(s->sum, p, len);
    s->calls++;
    return IW_OK;
}

static int note_segment(struct seen *s, const struct ddp_seg *seg)
{
    FUZZ_CHECK(seg->len || seg->last || !seg->tagged);
    note(s, seg->opcode, seg->hdr, seg->hdr_len);
    return note(s, seg->last, seg->payload, seg->len);
}

static int up_tagged(void *up, const struct ddp_seg *seg)
{
    return note_segment(up, seg);
}

static int up_send(void *up, const struct ddp_seg *seg)
{
    struct seen *s = up;
    s->offered = s->hold && !s->offered;
    return s->offered ? IWC_HOLD : note_segment(s, seg);
}

static int up_immediate(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited)
{
    return note(up, solicited ? RDMAP_IMM_SE : RDMAP_IMM, data, RDMAP_IMM_HDR);
}

static int up_read_request(void *up, const struct rdmap_read_request *r)
{
    uint8_t p[RDMAP_READ_REQUEST_HDR];
    rdmap_read_request_encode(p, r);
    note(up, RDMAP_READ_REQUEST, p, sizeof(p));
    return r->source_stag == 0xbad ? IW_ERR_READ_STAG : IW_OK;
}

static int up_atomic_request(void *up, const struct rdmap_atomic_request *r)
{
    uint8_t p[RDMAP_ATOMIC_REQUEST_HDR];
    rdmap_atomic_request_encode(p, r);
    return note(up, RDMAP_ATOMIC_REQUEST, p, sizeof(p));
}

static int up_atomic_response(void *up, const struct rdmap_atomic_response *r)
{
    uint8_t p[RDMAP_ATOMIC_RESPONSE_HDR];
    rdmap_atomic_response_encode(p, r);
    return note(up, RDMAP_ATOMIC_RESPONSE, p, sizeof(p));
}

static void up_terminate(void *up, const struct terminate *t)
{
    note(up, RDMAP_TERMINATE, &t->code, 1);
}

static const struct iwc_upcalls upcalls = {
    .write = up_tagged,
    .read_request = up_read_request,
    .read_response = up_tagged,
    .send = up_send,
    .immediate = up_immediate,
    .atomic_request = up_atomic_request,
    .atomic_response = up_atomic_response,
    .terminate = up_terminate,
};

struct end {
    struct iwc_rx rx;
    struct seen seen;
    enum iwc_rx_status status;
    enum iw_err err;
    size_t used;
};

/** Gives the bytes, @p piece at a time, until the end or an end of the stream. */
static void feed(struct end *e, const uint8_t *bytes, size_t len, size_t piece)
{
    size_t have = 0;
    e->status = IWC_RX_MORE;
    while (have < len && e->status == IWC_RX_MORE) {
        have += piece < len - have ? piece : len - have;
        do {
            size_t used = 0;
            uint8_t *p = fuzz_exact(bytes + e->used, have - e->used);
            e->status = iwc_rx_input(&e->rx, p, have - e->used, &used, &e->err);
            FUZZ_CHECK(used <= have - e->used);
            e->used += used;
            if (e->status == IWC_RX_ERROR) {
                char text[64];
                struct terminate t;
                FUZZ_CHECK(e->err > IW_OK && e->err < IW_ERR_COUNT);
                iwc_rx_describe(&e->rx, e->err, text, sizeof(text));
                terminate_from_error(&t, e->err, e->rx.bad.hdr ? &e->rx.bad : NULL,
                                     e->rx.bad_ulpdu_len);
            }
            free(p);
        } while (e->status == IWC_RX_HELD);
    }
    size_t rest = len - e->used;
    FUZZ_CHECK(e->status != IWC_RX_MORE || rest < FPDU_LEN_FIELD ||
               iwc_rx_need(bytes + e->used, rest) > rest);
}

static void receive(const uint8_t *bytes, size_t len, bool crc, bool ext, bool hold, size_t piece)
{
    static struct end at_once, in_pieces;
    struct end *both[] = {&at_once, &in_pieces};
    for (int i = 0; i < 2; i++) {
        memset(both[i], 0, sizeof(*both[i]));
        both[i]->seen.hold = hold && i;
        iwc_rx_init(&both[i]->rx, &upcalls, &both[i]->seen, crc, ext);
        feed(both[i], bytes, len, i ? piece : len);
    }
    FUZZ_CHECK(at_once.status == in_pieces.status && at_once.used == in_pieces.used);
    FUZZ_CHECK(at_once.err == in_pieces.err && at_once.seen.calls == in_pieces.seen.calls);
    FUZZ_CHECK(at_once.seen.sum == in_pieces.seen.sum && at_once.rx.fpdus == in_pieces.rx.fpdus);
}

/** @return size of the FPDU made at @p out */
static size_t frame(uint8_t *out, const uint8_t *ulpdu, size_t len)
{
    size_t at = FPDU_LEN_FIELD + len, pad = fpdu_pad((uint32_t)len);
    put_be16(out, (uint16_t)len);
    if (len)
        memcpy(out + FPDU_LEN_FIELD, ulpdu, len);
    memset(out + at, 0, pad);
    at += pad;
    put_le32(out + at, crc32c_done(crc32c_add(CRC32C_INIT, out, at)));
    return at + FPDU_CRC_FIELD;
}

static size_t frame_all(uint8_t *out, struct fuzz_in *in)
{
    size_t at = 0, len;
    while (in->left && BYTES_MAX - at >= FPDU_MAX) {
        const uint8_t *ulpdu = fuzz_bytes(in, fuzz_u8(in), &len);
        at += frame(out + at, ulpdu, len);
    }
    return at;
}

static void mark(uint8_t *fpdu, struct fuzz_in *in)
{
    static uint8_t marked[FPDU_MAX + SLACK], back[FPDU_MAX];
    uint64_t pos = (uint64_t)fuzz_u16(in) * 4;
    size_t want = fuzz_u16(in), ulpdu, len, used, n;
    const uint8_t *bytes = fuzz_bytes(in, want, &ulpdu);
    if (ulpdu > FPDU_ULPDU_MAX)
        return;
    size_t size = frame(fpdu, bytes, ulpdu), covered = size - FPDU_CRC_FIELD;
    uint64_t field = pos % FPDU_MARKER_PERIOD ? pos : pos + FPDU_MARKER;
    uint32_t crc = CRC32C_INIT;
    n = fpdu_mark(marked, fpdu, covered, pos, pos, &crc);
    FUZZ_CHECK(n <= fpdu_marked_max(covered));
    /* The CRC's field may have a marker in front of it, which it covers, and none inside. */
    size_t last = fpdu_mark(marked + n, fpdu + covered, FPDU_CRC_FIELD, pos + n, field, NULL);
    crc = crc32c_add(crc, marked + n, last - FPDU_CRC_FIELD);
    n += last;
    put_le32(marked + n - FPDU_CRC_FIELD, crc32c_done(crc));
    for (size_t cut = 0; cut < n; cut += 1 + n / 16)
        FUZZ_CHECK(unmark_fpdu(marked, cut, pos, true, back, &len, &used) == UNMARK_MORE);
    FUZZ_CHECK(unmark_fpdu(marked, n, pos, true, back, &len, &used) == UNMARK_OK);
    FUZZ_CHECK(used == n && len == size && memcmp(back, fpdu, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t stream[BYTES_MAX];
    struct fuzz_in in = {data, size};
    uint8_t flags = fuzz_u8(&in);
    size_t piece = 1 + fuzz_u8(&in), len = 0;
    bool crc = flags & 4, ext = flags & 8, hold = flags & 16;

    switch ((enum way)(flags % 4)) {
    case FRAMED:
        len = frame_all(stream, &in);
        break;
    case MARKED:
        mark(stream, &in);
        return 0;
    default:
        len = in.left < BYTES_MAX ? in.left : BYTES_MAX;
        if (len)
            memcpy(stream, in.p, len);
    }
    receive(stream, len, crc, ext, hold, piece);
    return 0;
}

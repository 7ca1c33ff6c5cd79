/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmit half of an iWARP stream: messages become FPDUs in a batch. */
#include "conn/tx.h"

#include "conn/note.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/opcode.h"
#include "wire/terminate.h"

#include <string.h>

/* Everything of an FPDU in front of its data, for the longest headers. */
#define HEAD_MAX (FPDU_LEN_FIELD + DDP_UNTAGGED_HDR + TERMINATE_MAX)

#define SHORT 512 /* bytes of a message for which the steps cost more than the copy does */

/** A place in the scattered payload. */
struct cursor {
    const struct iovec *v;
    size_t off;
};

/** One segment to build. */
struct segment {
    const struct iwc_msg *m;
    uint32_t ddp_hdr;   /* bytes of DDP header */
    uint32_t rdmap_hdr; /* bytes of m->hdr that go with it */
    uint32_t data;      /* bytes behind that */
    bool last;
};

void iwc_tx_init(struct iwc_tx *tx, bool crc, bool markers, uint32_t mulpdu)
{
    *tx = (struct iwc_tx){.crc = crc, .markers = markers, .mulpdu = mulpdu};
    for (unsigned qn = 0; qn < DDP_QN_COUNT; qn++)
        tx->msn[qn] = 1;
}

static struct cursor cursor_at(const struct iovec *iov, uint64_t at)
{
    struct cursor c = {.v = iov};
    while (at > 0 && at >= c.v->iov_len)
        at -= c.v++->iov_len;
    c.off = at;
    return c;
}

/** The contiguous bytes at @p c, at most @p want > 0 of them; moves behind them. */
static struct iovec cursor_next(struct cursor *c, size_t want)
{
    while (c->off == c->v->iov_len) {
        c->v++;
        c->off = 0;
    }
    size_t have = c->v->iov_len - c->off;
    struct iovec piece = {.iov_base = (char *)c->v->iov_base + c->off,
                          .iov_len = have < want ? have : want};
    c->off += piece.iov_len;
    return piece;
}

static unsigned count_pieces(struct cursor c, uint32_t len)
{
    unsigned n = 0;
    for (; len > 0; n++)
        len -= cursor_next(&c, len).iov_len;
    return n;
}

/** Writes length field, DDP header and RDMAP header; returns their size. */
static inline uint32_t put_head(uint8_t *p, const struct iwc_tx *tx, const struct segment *s)
{
    const struct iwc_msg *m = s->m;
    const struct rdmap_op *op = &rdmap_ops[m->opcode];

    put_be16(p, s->ddp_hdr + s->rdmap_hdr + s->data);
    p += FPDU_LEN_FIELD;
    if (op->tagged)
        ddp_encode_tagged(p, m->opcode, s->last, m->stag, m->to + m->cut);
    else
        ddp_encode_untagged(p, m->opcode, s->last, op->invalidate ? m->stag : 0, tx->msn[op->qn],
                            m->cut);
    if (s->rdmap_hdr)
        memcpy(p + s->ddp_hdr, m->hdr, s->rdmap_hdr);
    return FPDU_LEN_FIELD + s->ddp_hdr + s->rdmap_hdr;
}

/** Builds the FPDU at @p dst, all of it or, with @p gather, all but the data. Returns its end. */
static uint8_t *put_plain(uint8_t *dst, struct iwc_tx *tx, struct iwc_batch *b,
                          const struct segment *s, struct cursor *c, bool gather)
{
    uint8_t *run = dst, *p = dst + put_head(dst, tx, s);
    unsigned pad = fpdu_pad(s->ddp_hdr + s->rdmap_hdr + s->data);
    uint32_t crc = tx->crc ? crc32c_add(CRC32C_INIT, dst, p - dst) : 0;

    if (gather) {
        iwc_batch_push(b, run, p - run);
        run = p;
        b->gathered = true;
    }
    for (uint32_t left = s->data; left > 0;) {
        struct iovec piece = cursor_next(c, left);
        left -= piece.iov_len;
        if (gather) {
            iwc_batch_push(b, piece.iov_base, piece.iov_len);
            continue;
        }
        if (tx->crc)
            crc = crc32c_copy(crc, p, piece.iov_base, piece.iov_len);
        else
            memcpy(p, piece.iov_base, piece.iov_len);
        p += piece.iov_len;
    }
    memset(p, 0, pad + FPDU_CRC_FIELD);
    if (tx->crc)
        put_le32(p + pad, crc32c_done(crc32c_add(crc, p, pad)));
    p += pad + FPDU_CRC_FIELD;
    iwc_batch_push(b, run, p - run);
    return p;
}

/** As put_plain() without gather, with markers. */
static uint8_t *put_marked(uint8_t *dst, struct iwc_tx *tx, struct iwc_batch *b,
                           const struct segment *s, struct cursor *c)
{
    static const uint8_t zeros[3 + FPDU_CRC_FIELD];
    uint8_t head[HEAD_MAX];
    uint32_t head_len = put_head(head, tx, s);
    unsigned pad = fpdu_pad(s->ddp_hdr + s->rdmap_hdr + s->data);
    uint64_t start = tx->cut_pos;
    uint64_t fpdu_pos = start % FPDU_MARKER_PERIOD ? start : start + FPDU_MARKER;
    uint8_t *p = dst + fpdu_mark(dst, head, head_len, start, start, NULL);

    for (uint32_t left = s->data; left > 0;) {
        struct iovec piece = cursor_next(c, left);
        left -= piece.iov_len;
        p += fpdu_mark(p, piece.iov_base, piece.iov_len, start + (p - dst), fpdu_pos, NULL);
    }
    /* A marker between pad and CRC counts for the CRC, whose field never holds one. */
    p += fpdu_mark(p, zeros, pad + FPDU_CRC_FIELD, start + (p - dst), fpdu_pos, NULL);
    if (tx->crc) {
        uint8_t *field = p - FPDU_CRC_FIELD;
        put_le32(field, crc32c_done(crc32c_add(CRC32C_INIT, dst, field - dst)));
    }
    iwc_batch_push(b, dst, p - dst);
    return p;
}

/** Puts the whole FPDU into the batch; false if there is no room for it. */
static bool put_segment(struct iwc_tx *tx, struct iwc_batch *b, const struct segment *s,
                        struct cursor *c)
{
    uint32_t size = fpdu_size(s->ddp_hdr + s->rdmap_hdr + s->data);
    uint32_t copy = size;
    unsigned niov = 1;
    bool gather = false;

    if (b->unsent >= b->limit)
        return false;
    if (tx->markers) {
        copy = fpdu_marked_max(size);
    } else if (!tx->crc && s->data >= IWC_GATHER_MIN) {
        unsigned pieces = count_pieces(*c, s->data);
        gather = s->data / pieces >= IWC_GATHER_MIN;
        if (gather) {
            copy = size - s->data;
            niov = pieces + 2;
        }
    }
    if (b->copied + copy > IWC_BATCH_COPY || b->niov + niov > IWC_BATCH_IOV)
        return false;

    uint8_t *dst = b->copy + b->copied;
    size_t before = b->unsent;
    uint8_t *end = tx->markers ? put_marked(dst, tx, b, s, c) : put_plain(dst, tx, b, s, c, gather);
    b->copied += end - dst;
    tx->cut_pos += b->unsent - before;
    return true;
}

/** The segment is in the batch, with @p payload bytes of the message. */
static inline void passed(struct iwc_tx *tx, struct iwc_msg *m, const struct segment *s,
                          uint32_t payload)
{
    if (tx->flow && iwc_is_counted(m->opcode, m->stag, m->len))
        iwc_flow_segment(tx->flow, m->opcode, s->last, s->data);
    m->cut += payload;
    m->begun = true;
}

/** Whether @p m is one short piece, to be copied into one plain FPDU that there is room for. */
static inline bool is_short(const struct iwc_tx *tx, const struct iwc_batch *b,
                            const struct iwc_msg *m, uint32_t most)
{
    return m->niov == 1 && m->cut == 0 && m->hdr_len == 0 && m->len > 0 && m->len <= SHORT &&
           m->len <= most && !tx->crc && !tx->markers && b->unsent < b->limit &&
           b->niov < IWC_BATCH_IOV && b->copied + HEAD_MAX + SHORT + FPDU_TAIL <= IWC_BATCH_COPY;
}

/** memcpy() without the call, from 16 bytes on. */
static inline void copy_short(uint8_t *dst, const uint8_t *src, size_t len)
{
    if (len < 16) {
        memcpy(dst, src, len);
        return;
    }
    for (size_t at = 0; at + 16 < len; at += 16)
        memcpy(dst + at, src + at, 16);
    memcpy(dst + len - 16, src + len - 16, 16);
}

/** As put_segment(), of a message that is_short(). */
static inline void put_short(struct iwc_tx *tx, struct iwc_batch *b, const struct segment *s)
{
    uint8_t *dst = b->copy + b->copied, *p = dst + put_head(dst, tx, s);
    uint32_t size = fpdu_size(s->ddp_hdr + s->data);
    copy_short(p, s->m->iov->iov_base, s->data);
    memset(p + s->data, 0, FPDU_TAIL);
    iwc_batch_push(b, dst, size);
    b->copied += size;
    tx->cut_pos += size;
}

/** Cuts what is left of a message. @return false if the batch is full before */
static bool cut_segments(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_msg *m,
                         struct segment *s, uint32_t most)
{
    uint64_t total = m->hdr_len + m->len;
    uint32_t full = most - ((FPDU_LEN_FIELD + tx->mulpdu) & 3); /* needs no pad */
    struct cursor c = cursor_at(m->iov, m->cut > m->hdr_len ? m->cut - m->hdr_len : 0);

    do {
        s->last = total - m->cut <= most;
        uint32_t payload = s->last ? total - m->cut : full;
        s->rdmap_hdr = m->cut == 0 ? m->hdr_len : 0;
        s->data = payload - s->rdmap_hdr;
        if (!put_segment(tx, b, s, &c))
            return false;
        passed(tx, m, s, payload);
    } while (!s->last);
    return true;
}

bool iwc_tx_cut(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_msg *m)
{
    const struct rdmap_op *op = &rdmap_ops[m->opcode];
    struct segment s = {.m = m, .ddp_hdr = op->tagged ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR};
    uint32_t most = tx->mulpdu - s.ddp_hdr;

    if (is_short(tx, b, m, most)) {
        s.last = true;
        s.data = (uint32_t)m->len;
        put_short(tx, b, &s);
        passed(tx, m, &s, s.data);
    } else if (!cut_segments(tx, b, m, &s, most)) {
        return false;
    }
    if (!op->tagged)
        tx->msn[op->qn]++;
    return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz/wire.h"

#include "common/list.h"
#include "unmark.h"

#include <errno.h>

/* ---- the stream ---- */

static struct wire *wire_of(struct iwc_stream *s)
{
    return container_of(s, struct wire, base);
}

bool wire_readable(const struct wire *w)
{
    return w->in_at < w->in_len || w->fin || w->reset;
}

static ssize_t wire_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct wire *w = wire_of(s);
    size_t n = w->in_len - w->in_at;
    if (w->reset)
        return -ECONNRESET;
    if (n == 0)
        return w->fin ? 0 : -EAGAIN;
    n = n < len ? n : len;
    n = n < w->in_chunk ? n : w->in_chunk;
    memcpy(buf, w->in + w->in_at, n);
    w->in_at += n;
    return (ssize_t)n;
}

static ssize_t wire_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct wire *w = wire_of(s);
    size_t taken = 0;
    FUZZ_CHECK(!w->shut && !w->closed);
    if (w->reset)
        return -ECONNRESET;
    for (unsigned i = 0; i < n && !w->stuck; i++) {
        size_t room = sizeof(w->out) - w->out_len, most = w->out_chunk - taken;
        size_t len = iov[i].iov_len;
        len = len < room ? len : room;
        len = len < most ? len : most;
        if (len)
            memcpy(w->out + w->out_len, iov[i].iov_base, len);
        w->out_len += len;
        taken += len;
        if (len < iov[i].iov_len)
            break;
    }
    return taken ? (ssize_t)taken : -EAGAIN;
}

static void wire_shutdown(struct iwc_stream *s)
{
    wire_of(s)->shut = true;
}

static void wire_close(struct iwc_stream *s, int reset)
{
    (void)reset;
    wire_of(s)->closed = true;
}

static int wire_error(struct iwc_stream *s)
{
    (void)s;
    return 0;
}

static uint32_t wire_emss(struct iwc_stream *s)
{
    (void)s;
    return 536; /* small: messages of many segments in small inputs */
}

static const struct iwc_stream_ops ops = {
    .recv = wire_recv,
    .send = wire_send,
    .shutdown = wire_shutdown,
    .close = wire_close,
    .error = wire_error,
    .emss = wire_emss,
};

/* ---- to the victim ---- */

void wire_raw(struct wire *w, const uint8_t *p, size_t len)
{
    if (len > sizeof(w->in) - w->in_len || w->fin)
        return;
    if (len)
        memcpy(w->in + w->in_len, p, len);
    w->in_len += len;
}

void wire_ulpdu(struct wire *w, const uint8_t *p, size_t len)
{
    uint8_t field[FPDU_LEN_FIELD], tail[4 + FPDU_CRC_FIELD] = {0};
    unsigned pad = fpdu_pad((uint32_t)len);
    size_t start = w->in_len;
    put_be16(field, (uint16_t)len);
    if (sizeof(w->in) - w->in_len < FPDU_MAX)
        return;
    wire_raw(w, field, sizeof(field));
    wire_raw(w, p, len);
    wire_raw(w, tail, pad + FPDU_CRC_FIELD);
    if (w->rx.crc && w->in_len > start) {
        uint8_t *crc = w->in + w->in_len - FPDU_CRC_FIELD;
        put_le32(crc, crc32c_done(
                          crc32c_add(CRC32C_INIT, w->in + start, (size_t)(crc - w->in) - start)));
    }
}

/* ---- from the victim ---- */

static int up_write(void *up, const struct ddp_seg *seg)
{
    (void)up, (void)seg;
    return IW_OK;
}

static void add_request(struct wire *w, const struct wire_request *r)
{
    FUZZ_CHECK(w->nrequests < WIRE_REQUESTS);
    w->requests[(w->first + w->nrequests++) % WIRE_REQUESTS] = *r;
}

static int up_read_request(void *up, const struct rdmap_read_request *r)
{
    add_request(up,
                &(struct wire_request){.stag = r->sink_stag, .to = r->sink_to, .size = r->size});
    return IW_OK;
}

static int up_atomic_request(void *up, const struct rdmap_atomic_request *r)
{
    add_request(up, &(struct wire_request){.atomic = true, .id = r->id});
    return IW_OK;
}

static int up_read_response(void *up, const struct ddp_seg *seg)
{
    const struct wire *w = up;
    FUZZ_CHECK(w->forbidden < 0 || !seg->len || !memchr(seg->payload, w->forbidden, seg->len));
    return IW_OK;
}

static int up_immediate(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited)
{
    (void)up, (void)data, (void)solicited;
    return IW_OK;
}

static int up_atomic_response(void *up, const struct rdmap_atomic_response *r)
{
    (void)up, (void)r;
    return IW_OK;
}

static void up_terminate(void *up, const struct terminate *t)
{
    struct wire *w = up;
    FUZZ_CHECK(!t->swapped && t->layer <= TERM_MPA);
    w->terminated = true;
}

static const struct iwc_upcalls upcalls = {
    .write = up_write,
    .read_request = up_read_request,
    .read_response = up_read_response,
    .send = up_write,
    .immediate = up_immediate,
    .atomic_request = up_atomic_request,
    .atomic_response = up_atomic_response,
    .terminate = up_terminate,
};

void wire_init(struct wire *w, const struct mpa_result *agreed, int forbidden)
{
    memset(&w->base, 0, sizeof(w->base));
    w->base.ops = &ops;
    w->in_len = w->in_at = w->out_len = 0;
    w->fin = w->reset = w->stuck = w->shut = w->closed = w->terminated = false;
    w->in_chunk = w->out_chunk = SIZE_MAX;
    w->markers = agreed->tx_markers;
    w->unmarked = 0;
    w->first = w->nrequests = 0;
    w->forbidden = forbidden;
    for (int qn = 0; qn < DDP_QN_COUNT; qn++)
        w->msn[qn] = 1;
    iwc_rx_init(&w->rx, &upcalls, w, agreed->crc, agreed->ext);
}

static void take(struct wire *w, size_t n)
{
    w->out_len -= n;
    memmove(w->out, w->out + n, w->out_len);
}

static void give(struct wire *w, const uint8_t *p, size_t len, size_t *used)
{
    enum iw_err err = IW_OK;
    enum iwc_rx_status s = iwc_rx_input(&w->rx, p, len, used, &err);
    FUZZ_CHECK(s == IWC_RX_MORE || s == IWC_RX_TERMINATED);
}

/** @return whether it read an FPDU */
static bool read_marked(struct wire *w)
{
    uint8_t fpdu[FPDU_MAX];
    size_t len, used, same;
    enum unmark r = unmark_fpdu(w->out, w->out_len, w->unmarked, w->rx.crc, fpdu, &len, &used);
    FUZZ_CHECK(r == UNMARK_OK || r == UNMARK_MORE);
    if (r == UNMARK_MORE)
        return false;
    give(w, fpdu, len, &same);
    FUZZ_CHECK(same == len);
    w->unmarked += used;
    take(w, used);
    return true;
}

void wire_read(struct wire *w)
{
    size_t used;
    while (w->markers && !w->terminated && read_marked(w))
        ;
    if (!w->markers && !w->terminated) {
        give(w, w->out, w->out_len, &used);
        take(w, used);
    }
    FUZZ_CHECK(!w->terminated || w->out_len == 0);
}

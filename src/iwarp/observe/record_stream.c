/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/record_stream.h"

#include "common/addr.h"
#include "common/sys.h"
#include "conn/frames.h"
#include "observe/record.h"
#include "observe/sent.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum direction { IN, OUT };

/* What comes in is under the lock of who receives, what goes out under that of who sends. */
struct way {
    struct iwc_frames frames;
    uint8_t buf[RECORD_BYTES];
    uint32_t position;        /* of the frame in progress */
    uint64_t ns;              /* of the operation that brought its end */
    atomic_bool asks_markers; /* in the other direction */
    bool ended;
};

struct tap {
    const struct iwc_stream_ops *under;
    struct record_page *page; /* a forked child has another */
    struct record_conn *conn; /* NULL: it has no row */
    uint32_t id;
    _Atomic uint32_t qp_num;
    bool broken; /* what was sent is gone before it was looked at */
    struct way way[2];
};

static struct tap *tap_of(const struct iwc_stream *s)
{
    return s->record;
}

static void put(struct tap *t, enum direction d, unsigned flags, const uint8_t *p, size_t kept,
                size_t len)
{
    struct way *w = &t->way[d];
    struct record_frame f = {.conn = t->id,
                             .qp_num = atomic_load_explicit(&t->qp_num, memory_order_relaxed),
                             .position = w->position,
                             .len = (uint32_t)len};
    w->position += (uint32_t)len;
    if (iw_record_is(t->page))
        iw_record_frame(t->page, w->ns, flags | (d == OUT ? RECORD_OUT : 0), &f, p, kept);
}

/** The whole start-up frame, from the part of it that came now: it may have come in several. */
static void keep_start(struct tap *t, enum direction d, const uint8_t *p, size_t len)
{
    struct way *w = &t->way[d];
    struct record_start *s = t->conn ? &t->conn->start[d] : NULL;
    size_t at = w->frames.seen;
    if (!s || w->frames.stage != IWC_FRAMES_START || !iw_record_is(t->page))
        return;
    for (size_t i = 0; i < len && at + i < sizeof(s->bytes); i++)
        s->bytes[at + i] = p[i];
}

static void frame(struct tap *t, enum direction d, const uint8_t *p, size_t kept, size_t len)
{
    struct way *w = &t->way[d];
    unsigned flags = w->frames.stage == IWC_FRAMES_START   ? RECORD_START
                     : w->frames.stage == IWC_FRAMES_OTHER ? RECORD_OTHER
                                                           : 0;
    if (flags == RECORD_START && t->conn && iw_record_is(t->page)) {
        t->conn->start[d].ns = w->ns;
        __atomic_store_n(&t->conn->start[d].len, (uint32_t)len, __ATOMIC_RELEASE);
    }
    put(t, d, flags, p, kept, len);
}

static void frame_in(void *arg, const uint8_t *p, size_t kept, size_t len)
{
    frame(arg, IN, p, kept, len);
}

static void frame_out(void *arg, const uint8_t *p, size_t kept, size_t len)
{
    frame(arg, OUT, p, kept, len);
}

static void bytes(struct tap *t, enum direction d, const uint8_t *p, size_t len)
{
    struct way *w = &t->way[d];
    keep_start(t, d, p, len);
    w->frames.markers = atomic_load_explicit(&t->way[!d].asks_markers, memory_order_relaxed);
    iwc_frames_add(&w->frames, p, len, d == OUT ? frame_out : frame_in, t);
    if (w->frames.asks_markers)
        atomic_store_explicit(&w->asks_markers, true, memory_order_relaxed);
}

static void end(struct tap *t, enum direction d, unsigned flag)
{
    struct way *w = &t->way[d];
    if (w->ended)
        return;
    w->ended = true;
    w->ns = iw_record_now();
    iwc_frames_end(&w->frames, d == OUT ? frame_out : frame_in, t);
    put(t, d, flag, NULL, 0, 0);
}

/* ---- the operations in place of the stream's own ---- */

static ssize_t tap_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct tap *t = tap_of(s);
    ssize_t n = t->under->recv(s, buf, len);
    if (n > 0) {
        t->way[IN].ns = iw_record_now();
        bytes(t, IN, buf, (size_t)n);
    } else if (n != -EAGAIN) {
        end(t, IN, n ? RECORD_RESET : RECORD_FIN);
    }
    return n;
}

static void look_at_sent(void *arg, const uint8_t *p, size_t len)
{
    bytes(arg, OUT, p, len);
}

static ssize_t tap_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct tap *t = tap_of(s);
    t->way[OUT].ns = iw_record_now();
    ssize_t sent = t->under->send(s, iov, n);
    if (sent > 0 && !t->broken)
        t->broken = !iw_sent_show(iov, n, (size_t)sent, look_at_sent, t);
    return sent;
}

static void tap_shutdown(struct iwc_stream *s)
{
    struct tap *t = tap_of(s);
    t->under->shutdown(s);
    end(t, OUT, RECORD_FIN);
}

static void tap_close(struct iwc_stream *s, int reset)
{
    iw_record_detach(s, reset);
    s->ops->close(s, reset);
}

static int tap_error(struct iwc_stream *s)
{
    struct tap *t = tap_of(s);
    int error = t->under->error(s);
    if (error)
        end(t, IN, RECORD_RESET);
    return error;
}

static uint32_t tap_emss(struct iwc_stream *s)
{
    return tap_of(s)->under->emss(s);
}

static const struct iwc_stream_ops tap_ops = {
    .recv = tap_recv,
    .send = tap_send,
    .shutdown = tap_shutdown,
    .close = tap_close,
    .error = tap_error,
    .emss = tap_emss,
};

/* ---- attach and detach ---- */

static struct record_conn *new_row(struct record_page *page, int fd, bool active)
{
    struct sockaddr_storage local, peer;
    socklen_t llen = sizeof(local), plen = sizeof(peer);
    const struct sockaddr *l = (struct sockaddr *)&local, *p = (struct sockaddr *)&peer;
    struct record_conn c = {.active = active};
    if (sys_getsockname(fd, (struct sockaddr *)&local, &llen) ||
        sys_getpeername(fd, (struct sockaddr *)&peer, &plen))
        return NULL;
    c.ipv6 = l->sa_family == AF_INET6;
    c.local_port = addr_port(l);
    c.peer_port = addr_port(p);
    addr_ip(l, c.local);
    addr_ip(p, c.peer);
    return iw_record_conn_new(page, &c);
}

void iw_record_attach(struct iwc_stream *s, int fd, bool active)
{
    struct record_page *page = iw_record_on() ? iw_record_page() : NULL;
    struct tap *t = page ? calloc(1, sizeof(*t)) : NULL;
    if (!t)
        return;
    t->page = page;
    t->conn = new_row(page, fd, active);
    t->id = t->conn ? t->conn->id : 0;
    t->under = s->ops;
    for (enum direction d = IN; d <= OUT; d++) {
        t->way[d].frames.keep = RECORD_BYTES;
        t->way[d].frames.buf = t->way[d].buf;
    }
    s->record = t;
    s->ops = &tap_ops;
}

void iw_record_link(struct iwc_stream *s, uint32_t qp_num)
{
    struct tap *t = tap_of(s);
    if (!t)
        return;
    atomic_store_explicit(&t->qp_num, qp_num, memory_order_relaxed);
    if (t->conn && iw_record_is(t->page))
        __atomic_store_n(&t->conn->qp_num, qp_num, __ATOMIC_RELAXED);
    iw_record_note(LINK, qp_num, t->id);
}

void iw_record_detach(struct iwc_stream *s, bool reset)
{
    struct tap *t = tap_of(s);
    if (!t)
        return;
    end(t, OUT, reset ? RECORD_RESET : RECORD_FIN);
    if (t->conn && iw_record_is(t->page))
        __atomic_store_n(&t->conn->ended, iw_record_now(), __ATOMIC_RELAXED);
    s->ops = t->under;
    s->record = NULL;
    free(t);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/stream.h"

#include "faults/chaos.h"

#include <errno.h>
#include <stdlib.h>

#define NEVER       UINT64_MAX
#define CUT_MAX     (1u << 18) /* bytes after which a connection ends at the latest */
#define CORRUPT_MIN 64         /* behind the MPA frame of a program without private data */
#define CORRUPT_MAX (1u << 14)
#define PIECE_MAX   1021 /* an odd size at most */
#define SLOW_BYTES  64
#define PARTS       64

/* What comes in is under rx.lock, what goes out under tx.lock. */
struct way {
    uint64_t at;    /* bytes so far */
    uint64_t cut;   /* after so many it ends */
    uint64_t mute;  /* after so many nothing goes through */
    uint32_t piece; /* no operation goes beyond a multiple of it; 0: any may */
    bool slow, rests;
};

struct faulty {
    const struct iwc_stream_ops *under;
    struct way in, out;
    int cut_status;   /* of what is received then: 0 is FIN */
    uint64_t corrupt; /* the byte whose bits change */
    uint8_t bits;
};

static struct faulty *faulty(const struct iwc_stream *s)
{
    return s->faults;
}

static size_t least(size_t a, uint64_t b)
{
    return b < a ? (size_t)b : a;
}

/** How much of @p len one operation may move now. */
static size_t allowed(const struct way *w, size_t len)
{
    len = least(len, w->cut - w->at);
    len = least(len, w->mute - w->at);
    if (w->piece)
        len = least(len, w->piece - w->at % w->piece);
    return w->slow ? least(len, SLOW_BYTES) : len;
}

/** A slow one has nothing every other time. */
static bool rests(struct way *w)
{
    w->rests = w->slow && !w->rests;
    return w->rests;
}

/** Takes what comes, so that nobody looks again and again, and shows nothing of it. */
static ssize_t swallow(struct iwc_stream *s, void *buf, size_t len)
{
    ssize_t n = faulty(s)->under->recv(s, buf, len);
    return n > 0 ? -EAGAIN : n;
}

static ssize_t faulty_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct faulty *f = faulty(s);
    struct way *w = &f->in;
    if (w->at == w->mute)
        return swallow(s, buf, len);
    if (w->at == w->cut)
        return f->cut_status;
    if (rests(w))
        return -EAGAIN;
    ssize_t n = f->under->recv(s, buf, allowed(w, len));
    if (n <= 0)
        return n;
    if (f->corrupt - w->at < (uint64_t)n)
        ((uint8_t *)buf)[f->corrupt - w->at] ^= f->bits;
    w->at += (uint64_t)n;
    return n;
}

/** The first @p len bytes of @p iov. @return how many entries */
static unsigned head(struct iovec out[PARTS], const struct iovec *iov, unsigned n, size_t len)
{
    unsigned i = 0;
    for (; i < n && i < PARTS && len; i++) {
        out[i] = iov[i];
        out[i].iov_len = least(iov[i].iov_len, len);
        len -= out[i].iov_len;
    }
    return i;
}

static ssize_t faulty_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct faulty *f = faulty(s);
    struct way *w = &f->out;
    struct iovec some[PARTS];
    size_t len = 0;
    for (unsigned i = 0; i < n; i++)
        len += iov[i].iov_len;
    if (w->at == w->mute)
        return (ssize_t)len;
    if (w->at == w->cut)
        return -EPIPE;
    n = head(some, iov, n, allowed(w, len));
    ssize_t sent = f->under->send(s, some, n);
    if (sent > 0)
        w->at += (uint64_t)sent;
    return sent;
}

static void faulty_shutdown(struct iwc_stream *s)
{
    faulty(s)->under->shutdown(s);
}

static void faulty_close(struct iwc_stream *s, int reset)
{
    iw_chaos_detach(s);
    s->ops->close(s, reset);
}

static int faulty_error(struct iwc_stream *s)
{
    struct faulty *f = faulty(s);
    bool cut = f->in.at == f->in.cut || f->out.at == f->out.cut;
    int error = f->under->error(s);
    return error || !cut ? error : f->cut_status;
}

static uint32_t faulty_emss(struct iwc_stream *s)
{
    return faulty(s)->under->emss(s);
}

static const struct iwc_stream_ops faulty_ops = {
    .recv = faulty_recv,
    .send = faulty_send,
    .shutdown = faulty_shutdown,
    .close = faulty_close,
    .error = faulty_error,
    .emss = faulty_emss,
};

/* ---- what is going to happen ---- */

static struct way *one_way(struct faulty *f, uint64_t hit)
{
    return hit >> 63 ? &f->in : &f->out;
}

/* Small ones as often as large ones: a connection has few bytes more often than many. */
static uint64_t position(uint64_t hit, uint32_t max)
{
    uint32_t range = max >> (hit >> 8) % 16;
    return 1 + (hit >> 16) % (range ? range : 1);
}

static void plan_cut(struct faulty *f, const struct iwc_stream *s, enum iw_fault fault, int status)
{
    uint64_t hit = iw_chaos(fault, s);
    if (!hit)
        return;
    one_way(f, hit)->cut = position(hit, CUT_MAX);
    f->cut_status = status;
}

static void plan(struct faulty *f, const struct iwc_stream *s)
{
    uint64_t hit;
    plan_cut(f, s, IW_FAULT_CUT_FIN, 0);
    plan_cut(f, s, IW_FAULT_CUT_RST, -ECONNRESET);
    if ((hit = iw_chaos(IW_FAULT_SILENCE, s))) {
        f->in.mute = position(hit, CUT_MAX);
        f->out.mute = position(hit >> 8, CUT_MAX);
    }
    if ((hit = iw_chaos(IW_FAULT_CORRUPT, s))) {
        f->corrupt = CORRUPT_MIN + position(hit, CORRUPT_MAX);
        f->bits = (uint8_t)(1u << hit % 8);
    }
    if ((hit = iw_chaos(IW_FAULT_SHORT_READ, s)))
        f->in.piece = 1 + (uint32_t)(hit >> 16) % PIECE_MAX;
    if ((hit = iw_chaos(IW_FAULT_SHORT_WRITE, s)))
        f->out.piece = 1 + (uint32_t)(hit >> 16) % PIECE_MAX;
    f->in.slow = f->out.slow = iw_chaos(IW_FAULT_SLOW_PEER, s) != 0;
}

void iw_chaos_attach(struct iwc_stream *s)
{
    if (!iw_chaos_on())
        return;
    free(s->faults);
    struct faulty *f = s->faults = calloc(1, sizeof(*f));
    if (!f)
        return;
    iw_chaos_born(s, "connection");
    f->under = s->ops;
    f->in.cut = f->in.mute = f->out.cut = f->out.mute = f->corrupt = NEVER;
    plan(f, s);
    s->ops = &faulty_ops;
}

void iw_chaos_cut(struct iwc_stream *s, enum iw_chaos_cut how)
{
    struct faulty *f = s->faults;
    if (!f)
        return;
    if (how == IW_CUT_SILENCE) {
        f->in.mute = f->in.at;
        f->out.mute = f->out.at;
    } else {
        f->in.cut = f->in.at;
        f->out.cut = f->out.at;
        f->cut_status = how == IW_CUT_FIN ? 0 : -ECONNRESET;
    }
}

void iw_chaos_detach(struct iwc_stream *s)
{
    struct faulty *f = s->faults;
    if (!f)
        return;
    s->ops = f->under;
    s->faults = NULL;
    free(f);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/pcap.h"

#include "common/addr.h"
#include "common/sys.h"
#include "conn/frames.h"
#include "env/conf.h"
#include "observe/pcap_file.h"
#include "observe/sent.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum direction { IN, OUT };

struct way {
    struct iwc_frames frames;
    uint32_t seq; /* next */
    bool ended;   /* FIN or RST is captured */
};

/** A stream that is captured. */
struct tap {
    struct list link;
    const struct iwc_stream_ops *under;
    struct sockaddr_storage local, peer;
    struct way way[2];
    unsigned forks;  /* at the time of the attachment: only this process captures it */
    bool sends_only; /* the peer is in this process */
    bool broken;     /* no memory, or what was sent is gone before it was captured */
};

static struct {
    struct lock lock;
    struct list taps;
    unsigned forks;
} pcap = {.lock = LOCK(LOCK_PCAP), .taps = {&pcap.taps, &pcap.taps}};

/* ---- packets ---- */

static void add_locked(struct tap *t, enum direction d, uint8_t flags, const uint8_t *p, size_t len)
{
    struct tcp_ip h = {.ipv6 = t->local.ss_family == AF_INET6,
                       .seq = t->way[d].seq,
                       .ack = t->way[!d].seq,
                       .flags = flags};
    assert_held(&pcap.lock);
    const struct sockaddr *from = (const struct sockaddr *)(d == OUT ? &t->local : &t->peer);
    const struct sockaddr *to = (const struct sockaddr *)(d == OUT ? &t->peer : &t->local);
    addr_ip(from, h.src);
    addr_ip(to, h.dst);
    h.sport = addr_port(from);
    h.dport = addr_port(to);
    t->way[d].seq += (uint32_t)len + !!(flags & (TCP_FLAG_SYN | TCP_FLAG_FIN));
    if (t->forks == pcap.forks && !(t->sends_only && d == IN))
        iw_pcap_file_add(&h, p, (uint32_t)len, d == OUT);
}

static void handshake_locked(struct tap *t, bool active)
{
    enum direction d = active ? OUT : IN;
    add_locked(t, d, TCP_FLAG_SYN, NULL, 0);
    add_locked(t, !d, TCP_FLAG_SYN | TCP_FLAG_ACK, NULL, 0);
    add_locked(t, d, TCP_FLAG_ACK, NULL, 0);
}

static void frame_in(void *arg, const uint8_t *p, size_t kept, size_t len)
{
    (void)kept;
    add_locked(arg, IN, TCP_FLAG_ACK, p, len);
}

static void frame_out(void *arg, const uint8_t *p, size_t kept, size_t len)
{
    (void)kept;
    add_locked(arg, OUT, TCP_FLAG_ACK, p, len);
}

static void bytes_locked(struct tap *t, enum direction d, const uint8_t *p, size_t len)
{
    struct iwc_frames *f = &t->way[d].frames;
    f->markers = t->way[!d].frames.asks_markers;
    if (!t->broken && !iwc_frames_add(f, p, len, d == OUT ? frame_out : frame_in, t))
        t->broken = true;
}

static void end_locked(struct tap *t, enum direction d, uint8_t flag)
{
    struct way *w = &t->way[d];
    if (w->ended)
        return;
    iwc_frames_end(&w->frames, d == OUT ? frame_out : frame_in, t);
    add_locked(t, d, flag | TCP_FLAG_ACK, NULL, 0);
    w->ended = true;
}

/* ---- the operations in place of the stream's own ---- */

static struct tap *tap_of(struct iwc_stream *s)
{
    return s->tap;
}

static ssize_t tap_recv(struct iwc_stream *s, void *buf, size_t len)
{
    lock_get(&pcap.lock);
    struct tap *t = tap_of(s);
    ssize_t n = (t ? t->under : s->ops)->recv(s, buf, len);
    if (t && n > 0)
        bytes_locked(t, IN, buf, (size_t)n);
    else if (t && n != -EAGAIN)
        end_locked(t, IN, n ? TCP_FLAG_RST : TCP_FLAG_FIN);
    lock_put(&pcap.lock);
    return n;
}

static void capture_sent(void *arg, const uint8_t *p, size_t len)
{
    bytes_locked(arg, OUT, p, len);
}

static ssize_t tap_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    lock_get_leaf(&pcap.lock);
    struct tap *t = tap_of(s);
    ssize_t sent = (t ? t->under : s->ops)->send(s, iov, n);
    if (t && sent > 0)
        t->broken |= !iw_sent_show(iov, n, (size_t)sent, capture_sent, t);
    lock_put(&pcap.lock);
    return sent;
}

static void tap_shutdown(struct iwc_stream *s)
{
    lock_get(&pcap.lock);
    struct tap *t = tap_of(s);
    (t ? t->under : s->ops)->shutdown(s);
    if (t)
        end_locked(t, OUT, TCP_FLAG_FIN);
    lock_put(&pcap.lock);
}

static void tap_close(struct iwc_stream *s, int reset)
{
    iw_pcap_detach(s, reset);
    s->ops->close(s, reset);
}

static int tap_error(struct iwc_stream *s)
{
    lock_get(&pcap.lock);
    struct tap *t = tap_of(s);
    int error = (t ? t->under : s->ops)->error(s);
    if (t && error)
        end_locked(t, IN, TCP_FLAG_RST);
    lock_put(&pcap.lock);
    return error;
}

static uint32_t tap_emss(struct iwc_stream *s)
{
    lock_get(&pcap.lock);
    struct tap *t = tap_of(s);
    uint32_t n = (t ? t->under : s->ops)->emss(s);
    lock_put(&pcap.lock);
    return n;
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

static bool same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr *p = (const struct sockaddr *)a, *q = (const struct sockaddr *)b;
    uint8_t x[16] = {0}, y[16] = {0};
    addr_ip(p, x);
    addr_ip(q, y);
    return p->sa_family == q->sa_family && addr_port(p) == addr_port(q) && !memcmp(x, y, sizeof(x));
}

static struct tap *other_end_locked(const struct tap *t)
{
    list_for_each (l, &pcap.taps) {
        struct tap *u = container_of(l, struct tap, link);
        if (u->forks == pcap.forks && same(&t->local, &u->peer) && same(&t->peer, &u->local))
            return u;
    }
    return NULL;
}

static bool find_addresses(struct tap *t, int fd)
{
    socklen_t local = sizeof(t->local), peer = sizeof(t->peer);
    return sys_getsockname(fd, (struct sockaddr *)&t->local, &local) == 0 &&
           sys_getpeername(fd, (struct sockaddr *)&t->peer, &peer) == 0;
}

void iw_pcap_attach(struct iwc_stream *s, int fd, bool active)
{
    if (!iw_conf()->pcap[0])
        return;
    struct tap *t = calloc(1, sizeof(*t));
    lock_get(&pcap.lock);
    if (!t || !find_addresses(t, fd) || !iw_pcap_file_open()) {
        free(t);
    } else {
        struct tap *twin = other_end_locked(t);
        t->forks = pcap.forks;
        t->under = s->ops;
        if (twin)
            t->sends_only = twin->sends_only = true;
        if (twin) /* its handshake is this one's */
            t->way[IN].seq = t->way[OUT].seq = 1;
        else
            handshake_locked(t, active);
        s->tap = t;
        s->ops = &tap_ops;
        list_add_tail(&pcap.taps, &t->link);
    }
    lock_put(&pcap.lock);
}

void iw_pcap_detach(struct iwc_stream *s, bool reset)
{
    if (!iw_conf()->pcap[0])
        return;
    lock_get(&pcap.lock);
    struct tap *t = tap_of(s);
    if (t) {
        end_locked(t, OUT, reset ? TCP_FLAG_RST : TCP_FLAG_FIN);
        free(t->way[IN].frames.buf);
        list_del(&t->link);
        s->ops = t->under;
        s->tap = NULL;
    }
    lock_put(&pcap.lock);
    free(t);
}

void iw_pcap_fork(enum fork_step step)
{
    if (step == FORK_CHILD) {
        pcap.forks++;
        iw_pcap_file_leave();
    }
    lock_fork(&pcap.lock, step);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A byte stream that goes on in rings in shared memory, over TCP. */
#include "conn/stream_shm.h"

#include "common/list.h"
#include "common/sys.h"
#include "common/tsan.h"
#include "conn/stream_tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define DUE_PARTS 64     /* sends and recvs over TCP, or... */
#define DUE_BYTES 65536  /* ...bytes, from which on a connection is worth rings */
#define PART      32768  /* copied before it is published: the other side copies meanwhile */
#define PART_MAX  131072 /* of what is sent at once, as each handover costs */
#define FIRST     4096   /* received before it is known where to: the rest is copied once */
#define HEAR      16     /* rings before they are read: a socket holds some hundred */
#define HEARD     512    /* as many as it holds, and more */
#define NOT_YET   UINT64_MAX

static struct iwc_stream_shm *shm_of(struct iwc_stream *s)
{
    return container_of(s, struct iwc_stream_shm, base);
}

void iwc_stream_shm_ring(const struct iwc_stream_shm *s)
{
    /* With no room for one more there are many that were not heard yet. */
    sys_send(s->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/** Counts what went over TCP. */
static void count(struct iwc_stream_shm *s, size_t n)
{
    if (!atomic_load_explicit(&s->counts, memory_order_relaxed))
        return;
    unsigned parts = atomic_fetch_add_explicit(&s->parts, 1, memory_order_relaxed) + 1;
    unsigned long bytes = atomic_fetch_add_explicit(&s->bytes, n, memory_order_relaxed) + n;
    if ((parts >= DUE_PARTS || bytes >= DUE_BYTES) && atomic_exchange(&s->counts, false))
        atomic_store_explicit(&s->due, true, memory_order_relaxed);
}

bool iwc_stream_shm_due(struct iwc_stream_shm *s)
{
    return atomic_load_explicit(&s->due, memory_order_relaxed) && atomic_exchange(&s->due, false);
}

/* ---- receiving ---- */

typedef bool (*place_fn)(uint8_t *to, const uint8_t *from, size_t len);

/** Into memory of our own. */
static bool place_own(uint8_t *to, const uint8_t *from, size_t len)
{
    memcpy(to, from, len);
    return true;
}

/** Moves @p n bytes out of the ring, which are there. @return false if they cannot be written */
static bool take_piece(struct iwc_stream_shm *s, place_fn place, const uint8_t *p, uint8_t *to,
                       size_t n)
{
    size_t part;
    for (size_t at = 0; at < n; at += part) {
        part = n - at < PART ? n - at : PART;
        if (!place(to + at, p + at, part))
            return false;
        iwc_ring_use(&s->in, part);
    }
    return true;
}

/**
 * Also what is published meanwhile, as long as there is a place for it.
 * @return as recvv, but 0 if the ring is empty
 */
static ssize_t take(struct iwc_stream_shm *s, const struct iovec *iov, unsigned n)
{
    const uint8_t *p;
    place_fn place = n == 1 ? place_own : s->user->place;
    ssize_t there = 0, taken = 0;
    size_t at = 0;
    while (n > 0 && (there = iwc_ring_look(&s->in, &p)) > 0) {
        size_t left = iov->iov_len - at, len = left < (size_t)there ? left : (size_t)there;
        tsan_acquire(&iwc_stream_order);
        if (!take_piece(s, place, p, (uint8_t *)iov->iov_base + at, len))
            return -EFAULT;
        taken += (ssize_t)len;
        at = len < left ? at + len : 0;
        iov += !at;
        n -= !at;
    }
    if (!taken)
        return there;
    if (iwc_ring_relieves(&s->in))
        iwc_stream_shm_ring(s);
    return taken;
}

/** Nothing comes by TCP behind the switch, but its end. */
static void look_at_tcp(struct iwc_stream_shm *s)
{
    uint8_t byte;
    ssize_t n = s->under->ops->recv(s->under, &byte, 1);
    s->ended = n != -EAGAIN;
    s->end = n > 0 ? -EPROTO : (int)n;
}

static ssize_t recv_ring(struct iwc_stream_shm *s, const struct iovec *iov, unsigned pieces)
{
    ssize_t n = take(s, iov, pieces);
    if (n)
        return n;
    if (!s->ended) {
        if (!atomic_load_explicit(&s->look, memory_order_relaxed))
            return -EAGAIN;
        atomic_store(&s->look, false);
        look_at_tcp(s);
        n = take(s, iov, pieces); /* what was published before the end */
        if (n)
            return n;
    }
    return s->ended ? s->end : -EAGAIN;
}

static ssize_t recv_tcp(struct iwc_stream_shm *s, const struct iovec *iov, unsigned pieces)
{
    const uint8_t *p;
    ssize_t n = pieces == 1 ? s->under->ops->recv(s->under, iov->iov_base, iov->iov_len)
                            : s->under->ops->recvv(s->under, iov, pieces);
    if (n > 0) {
        s->received += (size_t)n;
        count(s, (size_t)n);
    }
    /* The switch is among what was received and not used yet: the end is not here. */
    if (n == 0 && atomic_load(&s->attached) && iwc_ring_look(&s->in, &p) != 0) {
        s->ended = true;
        return -EAGAIN;
    }
    return n;
}

static ssize_t shm_recvv(struct iwc_stream *base, const struct iovec *iov, unsigned pieces)
{
    struct iwc_stream_shm *s = shm_of(base);
    if (atomic_load_explicit(&s->dead, memory_order_relaxed))
        return -ECONNRESET;
    ssize_t n = iwc_stream_shm_receives(s) ? recv_ring(s, iov, pieces) : recv_tcp(s, iov, pieces);
    if (n <= 0 && n != -EAGAIN && n != -EFAULT)
        atomic_store(&s->told_end, true);
    return n;
}

static ssize_t shm_recv(struct iwc_stream *base, void *buf, size_t len)
{
    return shm_recvv(base, &(struct iovec){.iov_base = buf, .iov_len = len}, 1);
}

/* ---- sending ---- */

static size_t length(const struct iovec *iov, unsigned n)
{
    size_t len = 0;
    for (unsigned i = 0; i < n; i++)
        len += iov[i].iov_len;
    return len;
}

/** Copies as much as there is room for. @return as send */
static ssize_t put(struct iwc_stream_shm *s, const struct iovec *iov, unsigned n)
{
    size_t len = length(iov, n), sent = 0, most = PART, part;
    for (; sent < len; sent += part, most = most < PART_MAX ? most * 2 : PART_MAX) {
        part = len - sent < most ? len - sent : most;
        ssize_t room = iwc_ring_room(&s->out, part);
        if (room < 0)
            return room;
        if ((size_t)room < part)
            part = (size_t)room;
        if (!part)
            return sent ? (ssize_t)sent : -EAGAIN;
        if (!s->user->gather(iwc_ring_place(&s->out), sent, part, iov, n))
            return sent ? (ssize_t)sent : -EFAULT;
        iwc_ring_publish(&s->out, part);
    }
    return (ssize_t)sent;
}

static ssize_t send_ring(struct iwc_stream_shm *s, const struct iovec *iov, unsigned n)
{
    tsan_release(&iwc_stream_order);
    ssize_t sent = put(s, iov, n);
    if (sent > 0 && iwc_ring_rouses(&s->out))
        iwc_stream_shm_ring(s);
    if (s->lean && sent > 0) {
        s->lean = false;
        atomic_store_explicit(&s->due, true, memory_order_relaxed);
    }
    return sent;
}

/** Gives TCP what goes there, and not what is behind that. */
static ssize_t send_tcp(struct iwc_stream_shm *s, const struct iovec *iov, unsigned n)
{
    struct iovec part = {.iov_base = iov->iov_base, .iov_len = (size_t)s->left};
    unsigned whole = 0;
    uint64_t left = s->left;
    for (; whole < n && iov[whole].iov_len <= left; whole++)
        left -= iov[whole].iov_len;
    ssize_t r =
        whole ? s->under->ops->send(s->under, iov, whole) : s->under->ops->send(s->under, &part, 1);
    if (r > 0 && s->left != NOT_YET)
        s->left -= (uint64_t)r;
    if (r > 0)
        count(s, (size_t)r);
    /* What came before the end is received first, and then told of. */
    if ((r == -EPIPE || r == -ECONNRESET) && atomic_load(&s->attached) &&
        !atomic_load(&s->told_end))
        return -EAGAIN;
    return r;
}

static ssize_t shm_send(struct iwc_stream *base, const struct iovec *iov, unsigned n)
{
    struct iwc_stream_shm *s = shm_of(base);
    if (atomic_load_explicit(&s->dead, memory_order_relaxed))
        return -ECONNRESET;
    return s->left ? send_tcp(s, iov, n) : send_ring(s, iov, n);
}

/* ---- the rest is TCP's ---- */

static void shm_shutdown(struct iwc_stream *base)
{
    struct iwc_stream_shm *s = shm_of(base);
    s->under->ops->shutdown(s->under);
}

static void shm_close(struct iwc_stream *base, int reset)
{
    struct iwc_stream_shm *s = shm_of(base);
    s->under->ops->close(s->under, reset);
}

static int shm_error(struct iwc_stream *base)
{
    struct iwc_stream_shm *s = shm_of(base);
    return s->under->ops->error(s->under);
}

static uint32_t shm_emss(struct iwc_stream *base)
{
    struct iwc_stream_shm *s = shm_of(base);
    return s->under->ops->emss(s->under);
}

static const struct iwc_stream_ops shm_ops = {
    .recv = shm_recv,
    .recvv = shm_recvv,
    .send = shm_send,
    .shutdown = shm_shutdown,
    .close = shm_close,
    .error = shm_error,
    .emss = shm_emss,
};

void iwc_stream_shm_init(struct iwc_stream_shm *s, struct iwc_stream *under,
                         const struct iwc_shm_user *user, void *arg)
{
    *s = (struct iwc_stream_shm){.base = {.ops = &shm_ops, .read_ahead = under->read_ahead},
                                 .under = under,
                                 .user = user,
                                 .arg = arg,
                                 .bell = -1,
                                 .lean = true,
                                 .left = NOT_YET};
}

void iwc_stream_shm_begin(struct iwc_stream_shm *s, size_t early, bool counts)
{
    s->received = early;
    atomic_store(&s->parts, 0);
    atomic_store(&s->bytes, 0);
    atomic_store(&s->counts, counts);
}

void iwc_stream_shm_attach(struct iwc_stream_shm *s, const struct iwc_shm_rings *rings)
{
    iwc_ring_init(&s->in, rings->in_ctl, rings->in, rings->size);
    iwc_ring_init(&s->out, rings->out_ctl, rings->out, rings->size);
    s->bell = rings->bell;
    atomic_store(&s->attached, true);
}

void iwc_stream_shm_switch_out(struct iwc_stream_shm *s, uint64_t bytes)
{
    s->left = bytes;
}

bool iwc_stream_shm_switch_in(struct iwc_stream_shm *s, uint64_t pos)
{
    if (!atomic_load(&s->attached) || iwc_stream_shm_receives(s) || pos != s->received)
        return false;
    atomic_store_explicit(&s->from_ring, true, memory_order_release);
    s->base.read_ahead = 0;
    s->base.read_first = FIRST;
    return true;
}

void iwc_stream_shm_look(struct iwc_stream_shm *s)
{
    atomic_store(&s->look, true);
}

bool iwc_stream_shm_idle(const struct iwc_stream_shm *s)
{
    return (!iwc_stream_shm_receives(s) || iwc_ring_is_empty(&s->in)) &&
           !atomic_load_explicit(&s->look, memory_order_relaxed) &&
           !atomic_load_explicit(&s->asked, memory_order_relaxed);
}

/** From now on the peer may ring, once. */
static void await(struct iwc_stream_shm *s)
{
    atomic_fetch_add(&s->unheard, 1);
    atomic_store(&s->awaits, true);
}

void iwc_stream_shm_arm(struct iwc_stream_shm *s)
{
    if (!atomic_load(&s->attached) || atomic_load(&s->dead))
        return;
    if (iwc_ring_arm(&s->in))
        await(s);
    else
        s->user->again(s->arg);
}

enum iwc_shm_room iwc_stream_shm_want(struct iwc_stream_shm *s)
{
    if (s->left)
        return IWC_SHM_TCP;
    atomic_store(&s->asked, true);
    if (!atomic_load(&s->dead) && iwc_ring_want_room(&s->out)) {
        await(s);
        return IWC_SHM_BELL;
    }
    atomic_store(&s->asked, false);
    return IWC_SHM_NOW;
}

bool iwc_stream_shm_rest(struct iwc_stream_shm *s)
{
    if (atomic_load(&s->dead) || s->lean)
        return false;
    uint64_t sent = iwc_ring_moved(&s->out);
    ssize_t room = iwc_ring_room(&s->out, s->out.size);
    if (room < 0) /* the next send tells */
        return false;
    if (sent != s->rested) {
        s->rested = sent;
        return true;
    }
    if (room == (ssize_t)s->out.size)
        madvise(s->out.data, s->out.size, MADV_REMOVE); /* or else they stay */
    s->lean = true;
    return false;
}

bool iwc_stream_shm_asked(struct iwc_stream_shm *s)
{
    return atomic_load_explicit(&s->asked, memory_order_relaxed) &&
           atomic_exchange(&s->asked, false);
}

bool iwc_stream_shm_hear(struct iwc_stream_shm *s, bool all)
{
    char rings[HEARD];
    if (atomic_load(&s->dead)) /* by this thread: the bell is another's by now */
        return false;
    bool due = atomic_exchange(&s->awaits, false) && atomic_load(&s->rang);
    if (due && !all && atomic_load(&s->unheard) < HEAR)
        return true;
    atomic_store(&s->unheard, 0); /* first: what may ring from now on counts */
    long n = sys_recv(s->bell, rings, sizeof(rings), MSG_DONTWAIT);
    if (n > 0)
        atomic_store(&s->rang, true);
    return n > 0 || n == -EAGAIN || n == -EINTR;
}

void iwc_stream_shm_kill(struct iwc_stream_shm *s)
{
    atomic_store(&s->dead, true);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shards: what one thread needs to make progress, so that threads with CQs of their own do not
 * meet.
 *
 * A shard has an epoll set, a stack of deferred work, and what its pollers and the engine's thread
 * tell each other. All CQs begin in the first. A thread that goes on polling a CQ alone, while
 * another thread owns the shard of it, gets a shard of its own, and the CQ moves there; the more
 * often it has moved, the longer that takes, and of two threads that poll it in turn neither gets
 * it. A shard whose thread has ended belongs to the next that needs one. A thread that finds none
 * lodges in that of another; when more threads poll than there are processors, each gives its own
 * away before it looks, as what it waits for needs one.
 *
 * A QP's work is in the shard of that of its CQs which was polled last. Nothing moves at once: what
 * is deferred goes there when it is deferred next, a source when it is ready next.
 */
#ifndef ANYWARP_ENGINE_SHARD_H
#define ANYWARP_ENGINE_SHARD_H

#include "common/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IW_SHARDS 64
#define IW_ACTIVE 16 /* sources of a shard that pollers run at each pass, or that rest */

struct iw_deferred;
struct iw_poller;

/** What the engine's thread knows of a shard's pollers; only it looks there. Times are of iw_now().
 */
struct iw_watch {
    int64_t park;    /* ns from one look to the next, while leased */
    uint64_t look;   /* when the next is due */
    uint64_t called; /* the last look that found a poll or a post */
    uint64_t served; /* the last look that found a pass, or served the deferred work itself */
    bool steady;     /* passes run what is deferred so often that looks may be rare */
    bool visited;    /* the shard's, which only the thread changes */
    uint64_t visits; /* when the waiters are counted, while they leave the sockets off */
};

/** A place for a source that pollers run without being told; see active.h. */
struct iw_active {
    _Atomic uint64_t key; /* 0: none; and whether it rests */
    atomic_bool moved;    /* bytes, since the engine's thread looked last */
    uint64_t since;       /* the last look that found so; only that thread looks there */
};

/** Counts one connection; that of the QP alone if it is the whole sum, for fewer than 65,536 of
 * them.
 */
#define IW_LINKED(qp_num) (1ull << 40 | ((qp_num)&0xffffff))

extern struct iw_shard {
    atomic_int sockets;      /* epoll set of its sources; the thread may hear of it at once */
    _Atomic uint64_t linked; /* the sum of IW_LINKED() of the sources here that may tell of bytes */
    bool watched;            /* it is switched on in the thread's wait set; under iw_engine.lock */
    bool relieved;           /* pollers run the sockets often enough; under iw_engine.lock */
    struct iw_poller *_Atomic leader; /* of the waiters, see waiter.h; NULL: none; under the lock */
    unsigned visits; /* of waiters that have left since the last look; under the lock */
    bool visited;    /* so often that the sockets stay off until the next look; as well */
    _Atomic(const void *) owner; /* the thread that polls, NULL: none */
    struct iw_watch watch;
    /* Hints between pollers and the thread. Pollers store only what changes something, so that
     * several of them share the line. */
    _Alignas(64) atomic_uint polls; /* since the last look, saturated */
    atomic_uint passes;             /* of them on an empty CQ, saturated */
    atomic_uint sends;              /* by posts and passes since the last look, saturated */
    atomic_bool leased;
    atomic_bool deferring; /* deferred work was left to pollers since the last look */
    atomic_uint drains;    /* passes that ran deferred work since the last look, saturated */
    atomic_bool near;      /* the next look is at most 100 us away, or pollers are steady */
    atomic_uint spared;    /* messages sent at once since the last look, as it was not near */
    _Alignas(64) struct iw_deferred *_Atomic top; /* the stack of deferred work */
    atomic_bool posted;                           /* a hint: some of that is work requests */
    atomic_uint runs;                             /* threads that are at it, see deferred.c */
    atomic_uint actives;                          /* a hint: so many of active are run */
    atomic_uint places;                           /* of active that were ever taken */
    struct iw_active active[IW_ACTIVE];
#ifdef LOCK_OWNERS
    atomic_uint between; /* threads between what they leave or end and the kick that may be due */
#endif
} iw_shards[IW_SHARDS];

/** From here to the end a thread leaves work to others, or ends what it was left for: until then
 * the engine's thread asserts nothing of it. */
static inline void iw_hand_over_begin(struct iw_shard *s)
{
#ifdef LOCK_OWNERS
    atomic_fetch_add(&s->between, 1);
#else
    (void)s;
#endif
}

static inline void iw_hand_over_end(struct iw_shard *s)
{
#ifdef LOCK_OWNERS
    atomic_fetch_sub(&s->between, 1);
#else
    (void)s;
#endif
}

/** How many there are, from the first. Only grows. */
unsigned iw_shard_count(void);

/** The shard of a poller, which this thread polls now without success. */
struct iw_shard *iw_shard_enter(struct iw_poller *p);
bool iw_shard_is_mine(struct iw_shard *s);
/** The shard that this thread owns, or the first. */
struct iw_shard *iw_shard_own(void);

/** The CQs whose polls serve a QP; one or both may be NULL. */
struct iw_home {
    const struct iw_poller *cq[2];
};

/* ---- for the engine ---- */

/** One more exists from now on: its epoll set does. */
void iw_shard_opened(void);
/** The child of a fork(): threads are gone, and so is what was deferred. */
void iw_shards_forget(void);

#endif

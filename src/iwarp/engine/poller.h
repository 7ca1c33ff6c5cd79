/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes over the sources, and what pollers and the thread tell each other. */
#ifndef ANYWARP_ENGINE_POLLER_H
#define ANYWARP_ENGINE_POLLER_H

#include "engine/shard.h"

/** What a CQ that is polled knows; hints, without a lock. */
struct iw_poller {
    _Atomic uint64_t hot;    /* the source that had something at the last poll */
    _Atomic uint32_t tries;  /* of it that are left, 0: none is hot */
    _Atomic uint32_t streak; /* polls at which it had something */
    _Atomic uint32_t runs;   /* of it; free-running */
    _Atomic uint64_t rest;   /* iw_now() before which it is left alone */
    _Atomic uint32_t passes; /* free-running */
    _Atomic uint32_t empty;  /* polls that found nothing; free-running */
    _Atomic uint32_t full;   /* polls that found something, since one that did not */
    _Atomic uint32_t idle;   /* passes since a source was ready, of those that looked at all */
    _Atomic uint32_t run;    /* polls without a lease, since it was asked for or the CQ was armed */
    _Atomic uint32_t seen;   /* iw_engine.checks at the last poll */
    /* Of shard.c: */
    _Atomic uint32_t shard; /* where it is, by number */
    _Atomic uint32_t alone; /* passes of one thread, since the CQ moved, was armed, or of another */
    _Atomic uint32_t moves; /* of the CQ, saturated */
    _Atomic(const void *) by; /* the thread that polled last without success in another's shard */
};

/** Where a poller is. NULL: what belongs to none is in the first. */
static inline struct iw_shard *iw_shard_of(const struct iw_poller *p)
{
    return &iw_shards[p ? atomic_load_explicit(&p->shard, memory_order_acquire) : 0];
}

#define IW_FAR_BEHIND 2 /* looks: then the other CQ is the one that is polled */

/** The shard in which work belongs now: that of whichever CQ was polled last. A hint. */
static inline struct iw_shard *iw_home_shard(const struct iw_home *h)
{
    const struct iw_poller *a = h->cq[0], *b = h->cq[1];
    struct iw_shard *s = iw_shard_of(a ? a : b), *t = iw_shard_of(b);
    if (!a || !b || s == t)
        return s;
    uint32_t ahead = atomic_load_explicit(&b->seen, memory_order_relaxed) -
                     atomic_load_explicit(&a->seen, memory_order_relaxed);
    return (int32_t)ahead > IW_FAR_BEHIND ? t : s;
}

/** Counts one poll of the CQ. */
void iw_engine_polled(struct iw_poller *p);
/** Counts one post or pass that saw to what there was to send. */
void iw_engine_sent(struct iw_shard *s);
/** Lets others have the processor, if more threads poll than there are. @return whether it did */
bool iw_engine_give_way(void);
/** Makes progress on behalf of a poller whose CQ is empty; first the deferred work. */
void iw_engine_poll(struct iw_poller *p);
/** A poll has found something. If that is always so, nobody else would make passes: now and then
 * this does. */
void iw_engine_found(struct iw_poller *p);
/** The same in shard @p s, wherever the poller is. */
void iw_engine_poll_in(struct iw_shard *s, struct iw_poller *p);
/** Makes progress for anybody else, in all shards. */
void iw_engine_pass(void);

/**
 * Sleeps until a source is ready, at most @p ns, then one pass: for a caller that waits for what
 * another thread's pass may do as well, and looks again each time. No cancellation point.
 */
void iw_engine_poll_within(int64_t ns);

/**
 * The program will sleep or wait elsewhere: ends the lease of its thread's shard, and of that of a
 * CQ, and runs what is deferred there.
 * @param p  the CQ that it arms; NULL if it is none
 */
void iw_engine_arm(struct iw_poller *p);

#define IW_PASS_EVENTS 32

/** What a pass found: how many sources were ready, and the last of them that moved bytes, or 0. */
struct iw_found {
    long ready;
    uint64_t moved;
};

/** @return what alone was ready and moved bytes: likely to do so again; 0: there was no such */
static inline uint64_t iw_found_alone(const struct iw_found *f)
{
    return f->ready == 1 ? f->moved : 0;
}

/** An event was raised, in the pass that this thread is in. */
void iw_engine_tell(void);
/**
 * Whether one was, so that somebody of the program is to run: a source that goes on while bytes
 * come ends here. Thousands of messages may come in a stretch of the scheduler, and the first may
 * be the one that is waited for.
 */
bool iw_engine_told(void);

/** Runs the sources of a shard that are ready now, of more than IW_PASS_EVENTS so many, but for
 * that of QP @p but; 0: for none. */
struct iw_found iw_engine_run_ready(struct iw_shard *s, uint32_t but);
/** The same for the connections of all shards. @return whether there may be more */
bool iw_engine_run_linked(uint32_t but);
/** Does what is deferred and what is ready in a shard, or some of it. @return whether bytes moved,
 * mostly */
bool iw_engine_progress(struct iw_shard *s, struct iw_poller *p);
/** Something was left to pollers: makes the thread look at them soon (engine.h), or take over. */
void iw_engine_check_soon(struct iw_shard *s);
/** The same within 1 ms. */
void iw_engine_check(const struct iw_shard *s);
/** The poller looks at all sources of its shard the next time. */
void iw_engine_cool(struct iw_poller *p);

#endif

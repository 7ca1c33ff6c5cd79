/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes over the sources, and what pollers and the thread tell each other. */
#include "engine/poller.h"

#include "common/sys.h"
#include "engine/active.h"
#include "engine/deferred.h"
#include "engine/engine.h"
#include "engine/presence.h"
#include "engine/source.h"
#include "engine/timer.h"

#include <sched.h>

#define LEASE_RUN   64   /* polls without an arm that show a program that keeps polling */
#define HOT_TRIES   64   /* without a byte, then a hot source is hot no more */
#define HOT_ONLY    8    /* runs of it, of which one looks at all sources */
#define HOT_REST_NS 500  /* after a run without a byte: its recv() takes a lock; 0: latency 1.04 */
#define FULL_POLLS  32   /* that found something, after which one makes a pass */
#define ADOPT_AFTER 256  /* polls at which it had something, and no other */
#define ACTIVE_ONLY 256  /* passes that ran active sources, of which one looks at all... */
#define ACTIVE_MOVE 32   /* ...and of those at which they moved bytes */
#define IDLE_PASSES 1024 /* without a ready source, then only some look... */
#define IDLE_LOOKS  4    /* ...one of so many, ... */
#define LONG_PASSES 4096
#define LONG_LOOKS  16 /* ...and then one of these: a look is a fifth of 64 bytes at depth 1 */

static __thread bool told;

void iw_engine_tell(void)
{
    told = true;
}

bool iw_engine_told(void)
{
    return told;
}

struct iw_found iw_engine_run_ready(struct iw_shard *s, uint32_t but)
{
    struct epoll_event ev[IW_PASS_EVENTS];
    told = false;
    iw_source_take_begin();
    struct iw_found f = {.ready = sys_epoll_look(s->sockets, ev, IW_PASS_EVENTS)};
    for (long i = 0; i < f.ready; i++) {
        if (i == f.ready - 1)
            iw_source_take_last();
        if (iw_source_run(ev[i].data.u64, ev[i].events, but))
            f.moved = ev[i].data.u64;
    }
    iw_source_take_end();
    return f;
}

static bool run_full(uint32_t shard, uint32_t but)
{
    return iw_engine_run_ready(&iw_shards[shard], but).ready == IW_PASS_EVENTS;
}

/** One look at all, as there are several. @return as iw_engine_run_linked() */
static bool run_all(uint32_t but)
{
    struct epoll_event ev[IW_SHARDS];
    bool more = false;
    int all = iw_engine_all();
    long ready = all < 0 ? 0 : sys_epoll_look(all, ev, IW_SHARDS);
    for (long i = 0; i < ready; i++)
        more |= run_full(ev[i].data.u32, but);
    for (unsigned i = 0; all < 0 && i < iw_shard_count(); i++)
        more |= run_full(i, but);
    return more;
}

bool iw_engine_run_linked(uint32_t but)
{
    unsigned several = 0, last = 0;
    for (unsigned i = 0; i < iw_shard_count(); i++) {
        uint64_t linked = atomic_load(&iw_shards[i].linked);
        if (!linked || (but && linked == IW_LINKED(but)))
            continue;
        several++;
        last = i;
    }
    return several > 1 ? run_all(but) : several && run_full(last, but);
}

/* A hint that is old, or a count that was lost between two threads, costs time at most: what must
 * not be missed is in the order of all sequentially consistent accesses. */

static uint32_t get(const _Atomic uint32_t *hint)
{
    return atomic_load_explicit(hint, memory_order_relaxed);
}

static void put(_Atomic uint32_t *hint, uint32_t value)
{
    atomic_store_explicit(hint, value, memory_order_relaxed);
}

static void count(atomic_uint *n)
{
    uint32_t now = get(n);
    if (now < IW_ENGINE_MANY)
        put(n, now + 1);
}

/** The look comes behind what the caller has stored: a flag that is set has not been taken yet. */
static void set(atomic_bool *flag)
{
    if (!atomic_load(flag))
        atomic_store(flag, true);
}

/** @p key is hot from now on, or with 0 @p tries none. */
static void set_hot(struct iw_poller *p, uint64_t key, uint32_t tries)
{
    if (tries == 0 || key != atomic_load_explicit(&p->hot, memory_order_relaxed)) {
        iw_adopted_put_back(p);
        put(&p->streak, 0);
    }
    atomic_store_explicit(&p->hot, key, memory_order_relaxed);
    put(&p->tries, tries);
}

/** Runs the source that had something at the last poll. @return whether the others may wait */
static bool run_hot(struct iw_poller *p, bool *moved)
{
    uint32_t tries = get(&p->tries), runs = get(&p->runs);
    uint64_t hot = atomic_load_explicit(&p->hot, memory_order_relaxed);
    *moved = false;
    if (tries == 0)
        return false;
    if (tries < HOT_TRIES && iw_now() < atomic_load_explicit(&p->rest, memory_order_relaxed))
        return true;
    *moved = iw_source_run(hot, 0, 0);
    put(&p->runs, runs + 1);
    iw_adopted_note(p);
    if (*moved) {
        uint32_t streak = get(&p->streak) + 1;
        put(&p->tries, HOT_TRIES);
        put(&p->streak, streak);
        if (streak % ADOPT_AFTER == 0)
            iw_adopt(p, hot);
    } else if (tries > 1) {
        put(&p->tries, tries - 1);
        atomic_store_explicit(&p->rest, iw_now() + HOT_REST_NS, memory_order_relaxed);
    } else {
        set_hot(p, hot, 0);
    }
    return runs % HOT_ONLY;
}

/** A source is hot that alone was ready. */
static void find_hot(struct iw_poller *p, const struct iw_found *f)
{
    if (iw_found_alone(f))
        set_hot(p, f->moved, HOT_TRIES);
    else if (f->ready > 1)
        set_hot(p, 0, 0);
}

void iw_engine_cool(struct iw_poller *p)
{
    set_hot(p, 0, 0);
}

void iw_engine_polled(struct iw_poller *p)
{
    struct iw_shard *s = iw_shard_of(p);
    uint32_t checks = get(&iw_engine.checks);
    count(&s->polls);
    if (get(&p->seen) != checks)
        put(&p->seen, checks);
    if (atomic_load_explicit(&s->leased, memory_order_relaxed)) /* or at one of the next */
        return;
    uint32_t run = get(&p->run) + 1;
    put(&p->run, run < LEASE_RUN ? run : 0);
    if (run == LEASE_RUN) {
        set(&s->leased);
        iw_engine_kick();
    }
}

void iw_engine_sent(struct iw_shard *s)
{
    count(&s->sends);
}

/**
 * Of how many passes one looks at all.
 * @param idle  passes that found nothing ready
 * @param sent  this one has sent what was posted, and may have completed it: the caller looks first
 */
static uint32_t looks_of(uint32_t idle, bool sent)
{
    return idle >= LONG_PASSES ? LONG_LOOKS : idle >= IDLE_PASSES || sent ? IDLE_LOOKS : 1;
}

bool iw_engine_progress(struct iw_shard *s, struct iw_poller *p)
{
    uint32_t passes = get(&p->passes) + 1, idle = get(&p->idle);
    bool moved;
    put(&p->passes, passes);
    bool sent = iw_deferred_run(s);
    if (sent) {
        iw_engine_sent(s);
        count(&s->drains);
    }
    if (atomic_load_explicit(&s->actives, memory_order_relaxed)) {
        moved = iw_active_poll(s);
        if (passes % (moved ? ACTIVE_MOVE : ACTIVE_ONLY))
            return moved;
    }
    if (run_hot(p, &moved))
        return moved;
    if (passes % looks_of(idle, sent && !atomic_load_explicit(&s->top, memory_order_relaxed)))
        return moved;
    struct iw_found f = iw_engine_run_ready(s, 0);
    find_hot(p, &f);
    put(&p->idle, f.ready > 0 ? 0 : idle + 1);
    return moved || f.moved;
}

bool iw_engine_give_way(void)
{
    if (!atomic_load_explicit(&iw_engine.crowded, memory_order_relaxed))
        return false;
    sched_yield();
    return true;
}

void iw_engine_poll(struct iw_poller *p)
{
    put(&p->empty, get(&p->empty) + 1);
    if (get(&p->full))
        put(&p->full, 0);
    iw_engine_poll_in(iw_shard_enter(p), p);
}

void iw_engine_found(struct iw_poller *p)
{
    uint32_t full = get(&p->full) + 1;
    put(&p->full, full);
    if (full % FULL_POLLS || !__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return;
    struct iw_shard *s = iw_shard_enter(p);
    iw_engine_poll_in(s, p);
    iw_engine_run_ready(s, 0); /* there are too few of these to leave it to one of many */
}

void iw_engine_poll_in(struct iw_shard *s, struct iw_poller *p)
{
    if (!__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return;
    count(&s->passes);
    iw_engine_progress(s, p);
}

void iw_engine_pass(void)
{
    if (!__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return;
    iw_deferred_run_all();
    for (unsigned i = 0; i < iw_shard_count(); i++)
        iw_engine_run_ready(&iw_shards[i], 0);
}

void iw_engine_poll_within(int64_t ns)
{
    int state;
    if (!__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    sys_wait_fd(iw_shard_own()->sockets, ns);
    pthread_setcancelstate(state, NULL);
    iw_engine_pass();
}

void iw_engine_check_soon(struct iw_shard *s)
{
    set(&s->deferring);
    /* With the lease gone meanwhile the thread may sleep for ever. */
    if (!atomic_load(&s->leased) || !atomic_load(&s->near))
        iw_engine_kick();
}

void iw_engine_check(const struct iw_shard *s)
{
    if (!atomic_load(&s->leased))
        iw_engine_kick();
}

/** Behind the lease what was left under it is run. */
static void end_lease(struct iw_shard *s)
{
    put(&s->polls, 0);
    iw_hand_over_begin(s);
    bool leased = atomic_load(&s->leased) && atomic_exchange(&s->leased, false);
    iw_deferred_run(s);
    if (leased)
        iw_engine_kick();
    iw_hand_over_end(s);
    iw_adopted_leave(s);
    iw_active_rest(s);
}

void iw_engine_arm(struct iw_poller *p)
{
    if (!__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return;
    struct iw_shard *own = iw_shard_own(), *s = p ? iw_shard_of(p) : own;
    if (p) {
        put(&p->run, 0);
        put(&p->alone, 0);
    }
    end_lease(s);
    if (own != s && iw_shard_is_mine(own)) /* the QP may be where another CQ is polled */
        end_lease(own);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of work that somebody has to do soon, one a shard: lock-free, taken as a whole. */
#include "engine/deferred.h"

#include "common/patience.h"
#include "engine/engine.h"
#include "engine/poller.h"

#define POSTED 0x10000u /* of runs: a thread that is at what was posted */
#define TURNS  2100     /* of a post, to another thread that sends what was posted before: 100 ms */
/* Messages sent at once in the time between two looks. To wake the thread costs some 30 us of a
 * processor: none: rstream of 64 bytes in rings takes 1.6 times as long. */
#define SPARED 8

static bool has_posted(const struct iw_shard *s)
{
    return atomic_load_explicit(&s->posted, memory_order_relaxed);
}

/**
 * @param posted  whether there is something that was posted, if there is anything
 * @return false if it is there already, or in the stack of another shard
 */
static bool add(struct iw_shard *s, struct iw_deferred *d, bool posted)
{
    if (atomic_load(&d->state) & IW_DEFERRED_QUEUED ||
        atomic_fetch_or(&d->state, IW_DEFERRED_QUEUED) & IW_DEFERRED_QUEUED)
        return false;
    struct iw_deferred *top = atomic_load_explicit(&s->top, memory_order_relaxed); /* a guess */
    do {
        d->next = top;
        atomic_store_explicit(&d->over, top && posted, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak(&s->top, &top, d));
    return true;
}

bool iw_deferred_pays(const struct iw_deferred *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    unsigned spared = atomic_load_explicit(&s->spared, memory_order_relaxed);
    if (spared == SPARED || atomic_load_explicit(&s->near, memory_order_relaxed))
        return true;
    atomic_store_explicit(&s->spared, spared + 1, memory_order_relaxed);
    return false;
}

static void push(struct iw_shard *s, struct iw_deferred *d, bool posted, bool soon)
{
    iw_hand_over_begin(s);
    if (add(s, d, posted)) {
        if (soon)
            iw_engine_check_soon(s);
        else
            iw_engine_check(s);
    }
    iw_hand_over_end(s);
}

void iw_deferred_push(struct iw_deferred *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    push(s, d, has_posted(s), true);
}

void iw_deferred_again(struct iw_deferred *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    push(s, d, has_posted(s), false);
}

static void push_posted(struct iw_deferred *d, bool soon)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    bool posted = atomic_load(&s->posted);
    if (!posted)
        atomic_store(&s->posted, true);
    push(s, d, posted, soon);
    if (!atomic_load(&s->posted)) /* a run that began before has just taken it back */
        atomic_store(&s->posted, true);
}

void iw_deferred_posted(struct iw_deferred *d)
{
    push_posted(d, true);
}

void iw_deferred_posted_again(struct iw_deferred *d)
{
    push_posted(d, false);
}

void iw_deferred_run_passed(struct iw_deferred *d)
{
    if (!(atomic_load_explicit(&d->state, memory_order_relaxed) & IW_DEFERRED_QUEUED))
        return;
    struct iw_shard *s = iw_home_shard(&d->home);
    struct iw_deferred *top = atomic_load_explicit(&s->top, memory_order_relaxed);
    if (top && top != d)
        iw_deferred_run(s);
}

bool iw_deferred_is_behind(const struct iw_deferred *d)
{
    const struct iw_shard *s = iw_home_shard(&d->home);
    struct iw_deferred *top = atomic_load_explicit(&s->top, memory_order_relaxed);
    bool others = top && (top != d || atomic_load_explicit(&d->over, memory_order_relaxed));
    return (others && has_posted(s)) ||
           atomic_load_explicit(&s->runs, memory_order_relaxed) >= POSTED;
}

void iw_deferred_run_behind(struct iw_deferred *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    iw_deferred_posted(d);
    for (unsigned i = 0; i < TURNS && atomic_load(&s->runs) >= POSTED; i++)
        patience(i);
    iw_deferred_run(s);
}

/** Takes what there is. @return the first that was pushed */
static struct iw_deferred *take_all(struct iw_shard *s)
{
    struct iw_deferred *d = atomic_exchange_explicit(&s->top, NULL, memory_order_acquire);
    struct iw_deferred *first = NULL;
    while (d) {
        struct iw_deferred *next = d->next;
        d->next = first;
        first = d;
        d = next;
    }
    return first;
}

bool iw_deferred_run(struct iw_shard *s)
{
    if (!atomic_load(&s->top))
        return false;
    unsigned one = 1 + POSTED; /* at first: what is taken is seen here or there at any time */
    struct iw_deferred *d = NULL;
    atomic_fetch_add(&s->runs, one);
    if (!iw_engine_frozen()) {
        bool posted = atomic_load(&s->posted);
        if (posted)
            atomic_store(&s->posted, false);
        d = take_all(s);
        if (!posted && !atomic_load(&s->posted)) {
            one = 1;
            atomic_fetch_sub(&s->runs, POSTED);
        }
    }
    while (d) {
        struct iw_deferred *next = d->next;
        atomic_store_explicit(&d->followed, next != NULL, memory_order_relaxed);
        atomic_fetch_add(&d->state, IW_DEFERRED_RUN - IW_DEFERRED_QUEUED);
        d->run(d);
        atomic_fetch_sub(&d->state, IW_DEFERRED_RUN);
        d = next;
    }
    atomic_fetch_sub(&s->runs, one);
    return true;
}

bool iw_deferred_run_all(void)
{
    bool any = false;
    for (unsigned i = 0; i < iw_shard_count(); i++)
        any |= iw_deferred_run(&iw_shards[i]);
    return any;
}

void iw_deferred_wait(struct iw_deferred *d)
{
    for (unsigned i = 0; atomic_load(&d->state); i++) {
        iw_deferred_run_all();
        patience(i);
    }
}

void iw_deferred_wait_all(void)
{
    for (unsigned i = 0; i < iw_shard_count(); i++)
        patience_for(&iw_shards[i].runs);
}

void iw_deferred_forget(void)
{
    for (unsigned i = 0; i < iw_shard_count(); i++) {
        atomic_store(&iw_shards[i].top, NULL);
        atomic_store(&iw_shards[i].posted, false);
        atomic_store(&iw_shards[i].runs, 0);
    }
}

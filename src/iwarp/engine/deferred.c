/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of work that somebody has to do soon, one a shard: lock-free, taken as a whole. */
#include "engine/deferred.h"

#include "engine/engine.h"
#include "engine/poller.h"

#include <sched.h>

/** @return false if it is there already, or in the stack of another shard */
static bool add(struct iw_shard *s, struct iw_dirty *d)
{
    if (atomic_load(&d->state) & IW_DIRTY_QUEUED ||
        atomic_fetch_or(&d->state, IW_DIRTY_QUEUED) & IW_DIRTY_QUEUED)
        return false;
    struct iw_dirty *top = atomic_load_explicit(&s->top, memory_order_relaxed); /* a guess */
    do
        d->next = top;
    while (!atomic_compare_exchange_weak(&s->top, &top, d));
    return true;
}

void iw_dirty_push(struct iw_dirty *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    if (add(s, d))
        iw_engine_look_soon(s);
}

void iw_dirty_again(struct iw_dirty *d)
{
    struct iw_shard *s = iw_home_shard(&d->home);
    if (add(s, d))
        iw_engine_look(s);
}

bool iw_dirty_run(struct iw_shard *s)
{
    if (!atomic_load(&s->top))
        return false;
    atomic_fetch_add(&s->runs, 1);
    struct iw_dirty *d = NULL;
    if (!iw_engine_frozen())
        d = atomic_exchange_explicit(&s->top, NULL, memory_order_acquire);
    while (d) {
        struct iw_dirty *next = d->next;
        atomic_fetch_add(&d->state, IW_DIRTY_RUN - IW_DIRTY_QUEUED);
        d->run(d);
        atomic_fetch_sub(&d->state, IW_DIRTY_RUN);
        d = next;
    }
    atomic_fetch_sub(&s->runs, 1);
    return true;
}

bool iw_dirty_run_all(void)
{
    bool any = false;
    for (unsigned i = 0; i < iw_shard_count(); i++)
        any |= iw_dirty_run(&iw_shards[i]);
    return any;
}

void iw_dirty_wait(struct iw_dirty *d)
{
    while (atomic_load(&d->state)) {
        iw_dirty_run_all();
        sched_yield();
    }
}

void iw_dirty_wait_all(void)
{
    for (unsigned i = 0; i < iw_shard_count(); i++)
        while (atomic_load(&iw_shards[i].runs))
            sched_yield();
}

void iw_dirty_forget(void)
{
    for (unsigned i = 0; i < iw_shard_count(); i++) {
        atomic_store(&iw_shards[i].top, NULL);
        atomic_store(&iw_shards[i].runs, 0);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The stack of work that somebody has to do soon: lock-free, taken as a whole. */
#include "engine/deferred.h"

#include "engine/engine.h"
#include "engine/poller.h"

#include <sched.h>

static struct {
    struct iw_dirty *_Atomic top;
    atomic_uint runs; /* threads that are at it */
} dirty;

/** @return false if it is there already */
static bool add(struct iw_dirty *d)
{
    if (atomic_load(&d->state) & IW_DIRTY_QUEUED ||
        atomic_fetch_or(&d->state, IW_DIRTY_QUEUED) & IW_DIRTY_QUEUED)
        return false;
    struct iw_dirty *top = atomic_load_explicit(&dirty.top, memory_order_relaxed); /* a guess */
    do
        d->next = top;
    while (!atomic_compare_exchange_weak(&dirty.top, &top, d));
    return true;
}

void iw_dirty_push(struct iw_dirty *d)
{
    if (add(d))
        iw_engine_look_soon();
}

void iw_dirty_again(struct iw_dirty *d)
{
    if (add(d))
        iw_engine_look();
}

bool iw_dirty_run(void)
{
    if (!atomic_load(&dirty.top))
        return false;
    atomic_fetch_add(&dirty.runs, 1);
    struct iw_dirty *d = NULL;
    if (!iw_engine_frozen())
        d = atomic_exchange_explicit(&dirty.top, NULL, memory_order_acquire);
    while (d) {
        struct iw_dirty *next = d->next;
        atomic_fetch_add(&d->state, IW_DIRTY_RUN - IW_DIRTY_QUEUED);
        d->run(d);
        atomic_fetch_sub(&d->state, IW_DIRTY_RUN);
        d = next;
    }
    atomic_fetch_sub(&dirty.runs, 1);
    return true;
}

void iw_dirty_wait(struct iw_dirty *d)
{
    while (atomic_load(&d->state)) {
        iw_dirty_run();
        sched_yield();
    }
}

void iw_dirty_wait_all(void)
{
    while (atomic_load(&dirty.runs))
        sched_yield();
}

void iw_dirty_forget(void)
{
    atomic_store(&dirty.top, NULL);
    atomic_store(&dirty.runs, 0);
}

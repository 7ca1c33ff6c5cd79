/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENGINE_DEFERRED_H
#define ANYWARP_ENGINE_DEFERRED_H

#include "engine/shard.h"

/** Work that somebody has to do soon: embedded in its owner, pushed at most once at a time. */
struct iw_dirty {
    struct iw_dirty *next;
    atomic_uint state; /* IW_DIRTY_QUEUED, and IW_DIRTY_RUN for each thread inside run() */
    void (*run)(struct iw_dirty *d);
    struct iw_home home; /* whose polls it is left to */
};

#define IW_DIRTY_QUEUED 1u
#define IW_DIRTY_RUN    2u

/**
 * Queues; nothing if it is queued already: what there is to do has to stand under a lock that run()
 * takes, or in a sequentially consistent store. The engine runs it within 200 us if no pass does.
 */
void iw_dirty_push(struct iw_dirty *d);
/** The same for what may wait for more, as the rest of a stretch, within 2 ms: it costs no looks.
 */
void iw_dirty_again(struct iw_dirty *d);
/** Waits until @p d is neither queued nor running; passes run meanwhile. run() may queue it again.
 */
void iw_dirty_wait(struct iw_dirty *d);

/** Does what there is in a shard. @return whether there was any */
bool iw_dirty_run(struct iw_shard *s);
/** The same in all. */
bool iw_dirty_run_all(void);
/** Waits until no thread is at it. */
void iw_dirty_wait_all(void);
/** The child of a fork(): what was there is the parent's. */
void iw_dirty_forget(void);

#endif

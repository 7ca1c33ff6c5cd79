/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENGINE_DEFERRED_H
#define ANYWARP_ENGINE_DEFERRED_H

#include "engine/shard.h"

/** Work that somebody has to do soon: embedded in its owner, pushed at most once at a time. */
struct iw_deferred {
    struct iw_deferred *next;
    atomic_uint state; /* IW_DEFERRED_QUEUED, and IW_DEFERRED_RUN for each thread inside run() */
    void (*run)(struct iw_deferred *d);
    atomic_bool followed; /* a hint for run(): other work runs right behind it */
    atomic_bool over;     /* what was posted to others was in the stack when it was pushed */
    struct iw_home home;  /* whose polls it is left to */
};

#define IW_DEFERRED_QUEUED 1u
#define IW_DEFERRED_RUN    2u

/**
 * Whether to leave work to a pass pays. The engine's thread has to be awake soon then, for the case
 * that no pass comes. Where it is not, to wake it costs more than the first few messages do.
 */
bool iw_deferred_pays(const struct iw_deferred *d);
/**
 * Queues; nothing if it is queued already: what there is to do has to stand under a lock that run()
 * takes, or in a sequentially consistent store. The engine runs it within 200 us if no pass does.
 */
void iw_deferred_push(struct iw_deferred *d);
/** As push, for what may wait for more, as the rest of a stretch, within 2 ms: it costs no looks.
 */
void iw_deferred_again(struct iw_deferred *d);
/** As push, for what the program has posted: it keeps its place before what is posted later. */
void iw_deferred_posted(struct iw_deferred *d);
/** What was posted, and may wait for more: it keeps its place, and costs no looks. */
void iw_deferred_posted_again(struct iw_deferred *d);
/**
 * Before more is posted to @p d: what it has in the stack would go together with that, and what was
 * posted to others in between behind it. So if there is such, all is run.
 */
void iw_deferred_run_passed(struct iw_deferred *d);
/**
 * Whether something else was posted in the shard before, and is not sent yet, so that what was
 * posted to @p d now has to go behind it. A hint.
 */
bool iw_deferred_is_behind(const struct iw_deferred *d);
/** Runs all that was posted in the shard, and @p d; what is in the stack already keeps its place.
 */
void iw_deferred_run_behind(struct iw_deferred *d);

/** Waits until @p d is neither queued nor running; passes run meanwhile. run() may queue it again.
 */
void iw_deferred_wait(struct iw_deferred *d);

/** Does what there is in a shard, in the order in which it came. @return whether there was any */
bool iw_deferred_run(struct iw_shard *s);
/** The same in all. */
bool iw_deferred_run_all(void);
/** Waits until no thread is at it. */
void iw_deferred_wait_all(void);
/** The child of a fork(): what was there is the parent's. */
void iw_deferred_forget(void);

#endif

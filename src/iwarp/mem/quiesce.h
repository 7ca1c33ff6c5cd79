/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies into and out of registered memory, and how to wait until those that run have ended.
 *
 * Whoever uses a region's memory does so in a section, from iw_copy_begin() to iw_copy_end(): the
 * check of the key, then the memcpy() or the system call that copies. A section costs two stores to
 * a cache line of the thread's own; it takes no lock, waits for nothing and is not nested, which is
 * asserted in builds with a sanitizer. A pointer into a region must not outlive its section.
 *
 * Whoever takes a right away (deregistration, invalidation, a window bound anew) makes the change
 * where iw_region_check() sees it, and then lets a grace period pass: each section of the
 * protection domain that may have seen what was before has ended by its end. One section of each
 * thread is waited for at most, so that a period ends however busy the domain is; those of other
 * domains do not count, and no lock of any QP is involved.
 *
 * Why a section that is not seen has seen the change: the thread that begins a period makes every
 * thread of the process pass a barrier between its change and its look (membarrier(2)). A section
 * whose begin is not visible then begins behind that barrier, and so behind the change. Without
 * membarrier(2) both sides have a fence, and so they have with ThreadSanitizer, which does not know
 * the call.
 */
#ifndef ANYWARP_MEM_QUIESCE_H
#define ANYWARP_MEM_QUIESCE_H

#include "common/list.h"
#include "common/lock.h"

#include <stdatomic.h>
#include <stdbool.h>

struct iw_deferred;
struct iw_pd;

/** What a thread tells of its sections. Never freed; one that ended leaves it to another. */
struct iw_copier {
    _Alignas(64) atomic_ulong count; /* odd: in a section */
    const struct iw_pd *_Atomic pd;  /* whose */
    atomic_bool asked;               /* the end of the section is to be told */
    atomic_bool taken;               /* by a thread */
    struct iw_copier *_Atomic next;  /* all there are */
};

extern __thread struct iw_copier *iw_copier; /* of this thread, NULL: it has none yet */
extern atomic_bool iw_copy_fences;           /* there is no membarrier(2) */

/** A copier for this thread. Never NULL: without memory or a key of threads it is one that such
 * threads share, each for a section. */
struct iw_copier *iw_copier_take(void);
/** Somebody asked for the end of the section that this thread has just left. */
void iw_copier_tell(struct iw_copier *c);

/** Makes what the thread stored before visible before what it loads afterwards is looked at. */
static inline void iw_copy_fence(void)
{
#ifndef ANYWARP_TSAN
    atomic_signal_fence(memory_order_seq_cst);
    /* Set once, and then waited for: see barrier_everywhere(). */
    if (atomic_load_explicit(&iw_copy_fences, memory_order_relaxed))
        atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void iw_copy_count(struct iw_copier *c, unsigned long n)
{
#ifdef ANYWARP_TSAN
    atomic_exchange(&c->count, n);
#else
    atomic_store_explicit(&c->count, n, memory_order_release);
#endif
}

/** Begins a section of @p pd, a root. */
static inline void iw_copy_begin(const struct iw_pd *pd)
{
    struct iw_copier *c = iw_copier;
    if (__builtin_expect(!c, 0))
        c = iw_copier_take();
    unsigned long n = atomic_load_explicit(&c->count, memory_order_relaxed); /* its own */
    lock_bar(true);
    atomic_store_explicit(&c->pd, pd, memory_order_release); /* behind the end of the last one */
    iw_copy_count(c, n + 1);
    iw_copy_fence();
}

/** Ends it. What this thread has copied comes before what waits for it. */
static inline void iw_copy_end(void)
{
    struct iw_copier *c = iw_copier;
    unsigned long n = atomic_load_explicit(&c->count, memory_order_relaxed);
    lock_bar(false);
    iw_copy_count(c, n + 1);
    iw_copy_fence(); /* and what is asked is looked at behind the count: see iw_grace_ask() */
    if (__builtin_expect(atomic_load_explicit(&c->asked, memory_order_relaxed), 0))
        iw_copier_tell(c);
}

/** This thread is in a section of @p pd; as assert_held(), in builds with a sanitizer only. */
static inline void assert_copying(const struct iw_pd *pd)
{
#ifdef LOCK_OWNERS
    assert(iw_copier && iw_copier->count % 2 && iw_copier->pd == pd);
#else
    (void)pd;
#endif
}

/**
 * Waits for a grace period of @p pd: yields, then sleeps. No cancellation point. Call with no lock
 * held under which a section may begin.
 */
void iw_quiesce(const struct iw_pd *pd);

/** A grace period that nobody waits for: one looks from time to time, or is told. */
struct iw_grace {
    const struct iw_pd *pd;
    struct iw_copier *at; /* those before it have moved on; NULL: all */
    unsigned long busy;   /* its count, if it was in a section when it was looked at; else 0 */
    struct list link;     /* those that will be told */
    struct iw_deferred *then;
};

/** Before the first use. */
void iw_grace_init(struct iw_grace *g);
/** The change is made: the period begins. */
void iw_grace_begin(struct iw_grace *g, const struct iw_pd *pd);
/** Whether it is over. May be called in a section, as that has begun later. */
bool iw_grace_over(struct iw_grace *g);
/**
 * The same; and if it is not over, @p then is pushed when it may be, once. Not in a section; begin,
 * over, ask and drop of one period are serialised by its owner.
 */
bool iw_grace_ask(struct iw_grace *g, struct iw_deferred *then);
/** Nobody wants to be told any more. Afterwards @p then is not pushed. Harmless if nobody did. */
void iw_grace_drop(struct iw_grace *g);

/** What the module does about fork(); see process/atfork.h. In the child only its own thread
 * copies. */
void iw_quiesce_fork(enum fork_step step);

#endif

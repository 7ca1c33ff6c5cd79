/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress engine: who runs the sockets, and when.
 *
 * All sockets of the process stand in one epoll set. A pass looks at the set without waiting, pins
 * each source that is ready, and calls it. Passes are run by
 *
 *   pollers  (ibv_poll_cq on an empty CQ)        iw_engine_poll()
 *   getters  (ibv_get_cq_event, blocked)         iw_engine_wait()
 *   the engine thread, when neither is there.
 *
 * A program that posts without a break receives for its QP itself, now and then (iw_rx_look).
 *
 * The thread sleeps in an epoll set of its own, which holds the first one. That entry is off while
 * a getter leads the others (waiter.h), so that a packet wakes one thread only; if getters come
 * back soon it stays off between them, and the thread looks each millisecond whether that is still
 * so. While programs keep polling and posting they hold a lease: the thread looks at what
 * they do on a timer of 100 us, doubling to 1 ms, and switches the entry off itself if they make
 * passes enough. Sockets, listeners and timers of a process that sleeps cost nothing.
 *
 * A poller remembers the source that had something for it last: that is tried before all sources
 * are looked at, for as long as it is likely to be the next one, too. What it brings is shown after
 * what came before it elsewhere, see cq/visibility.h. The source of a lasting ping-pong is adopted:
 * taken out of the epoll set until its poller is late, see presence.c.
 *
 * Posted work that was not transmitted at once is on the dirty stack, a lock-free list that any
 * pass takes as a whole. Without a lease the thread takes it at once; under one, when pollers have
 * made no pass between two looks, which then are 100 us apart. The rest of a stretch that is longer
 * than a turn waits there, too, without hurry.
 *
 * Locks: engine.lock (start, the switch) is a leaf, and so are those of timers and of sources, the
 * latter below adopted.lock. Sources are called without locks.
 */
#ifndef ANYWARP_ENGINE_ENGINE_H
#define ANYWARP_ENGINE_ENGINE_H

#include "common/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Makes the epoll sets and the thread if they are not there: sources, timers and dirty work need
 * them.
 * @return 0 or a positive errno: EBADF if the program has closed them
 */
int iw_engine_start(void);

/**
 * Whether programs keep polling: then work may be left to their next empty poll. The thread itself
 * leaves nothing to them.
 */
bool iw_engine_leased(void);

/**
 * Holds all progress, for fork(): no source, timer or dirty work begins any more, and none runs
 * when this returns. Nothing is lost. Call with no lock held, and one thread at a time.
 */
void iw_engine_freeze(void);
void iw_engine_thaw(void);

/** What the module does about fork(); see process/atfork.h. A child has no epoll sets. */
void iw_engine_fork(enum fork_step step);

/* ---- for the files of the engine ---- */

#define IW_ENGINE_MANY 8 /* polls and passes beyond these are not counted: they are many */

struct iw_poller;

extern struct iw_engine {
    struct lock lock;
    bool started;
    atomic_int ended;   /* why the thread has ended, a positive errno; 0: it has not */
    int sockets;        /* epoll set of all sources */
    int wait_set;       /* the thread's: sockets (if watched), kick, clock and looks */
    int kick;           /* eventfd, readable while kicked */
    atomic_int clock;   /* timerfd, readable when a timer is due; -1: not made yet */
    int looks;          /* timerfd, readable when the thread's next look at pollers is due */
    atomic_bool kicked; /* a write to kick is due, or done and not read */
    bool watched;       /* sockets is switched on in wait_set; under lock */
    bool relieved;      /* pollers run the sockets often enough; under lock */
    struct iw_poller *_Atomic leader; /* of the waiters, see waiter.h; NULL: none; under lock */
    unsigned visits; /* of getters that have left since the last look; under lock */
    bool visited;    /* so often that the sockets stay off until the next look; under lock */
    pthread_t thread;
    atomic_bool frozen;
    /* Hints between pollers and the thread. Pollers store only what changes something, so that
     * many of them share the line. */
    _Alignas(64) atomic_uint polls; /* since the last look, saturated */
    atomic_uint passes;             /* of them on an empty CQ, saturated */
    atomic_uint sends;              /* by posts and passes since the last look, saturated */
    atomic_bool leased;
    atomic_bool deferring; /* dirty work was left to pollers since the last look */
    atomic_bool near;      /* the next look is at most 100 us away */
} iw_engine;

/** Whether this is the engine's thread. */
bool iw_engine_is_thread(void);
/** Switches the sockets on or off in the thread's wait set. */
void iw_engine_watch_locked(void);
/** Makes the thread look again: a lease begins or ended. */
void iw_engine_kick(void);
/**
 * Sets when the thread wakes for timers, in ns of iw_now(); 0: it does not.
 * @return whether there is a thread, or will be one
 */
bool iw_engine_wake_at(uint64_t ns);

/** Between iw_engine_freeze() and iw_engine_thaw(): neither source, timer nor dirty work begins. */
static inline bool iw_engine_frozen(void)
{
    return atomic_load(&iw_engine.frozen);
}

#endif

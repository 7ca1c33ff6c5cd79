/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress engine: who runs the sockets, and when.
 *
 * Each socket of the process stands in the epoll set of a shard (shard.h); a program in which one
 * thread polls has one. A pass looks at a set without waiting, pins each source that is ready, and
 * calls it. Passes are run by
 *
 *   pollers  (ibv_poll_cq on an empty CQ)        iw_engine_poll()
 *   waiters  (ibv_get_cq_event, blocked)         iw_engine_wait()
 *   the engine thread, when neither is there.
 *
 * A program that posts without a break makes passes in between; without a lease it receives for its
 * QP alone (iw_rx_check).
 *
 * The thread sleeps in an epoll set of its own, which holds those of the shards. Such an entry is
 * off while a waiter leads the others there (waiter.h), so that a packet wakes one thread only; if
 * waiters come back soon it stays off between them, and the thread looks each millisecond whether
 * that is still so. While programs keep polling and posting in a shard they hold its lease: the
 * thread looks at what they do on a timer of 100 us, doubling to 1 ms, and switches the entry off
 * itself if they make passes enough. It judges each shard by its own pollers. Sockets, listeners
 * and timers of a process that sleeps cost nothing.
 *
 * A poller remembers the source that had something for it last: that is tried before all sources
 * are looked at, for as long as it is likely to be the next one, too. What it brings is shown after
 * what came before it elsewhere, see cq/visibility.h. The source of a lasting ping-pong is adopted:
 * taken out of the epoll set until its poller is late, see presence.c.
 *
 * Posted work that was not transmitted at once is on the shard's stack of deferred work, a
 * lock-free list that any pass takes as a whole. Without a lease the thread takes it at once; under
 * one, when pollers have made no pass between two looks, which then are 100 us apart; or, where
 * passes have run such work twice in that time until then, up to 1 ms: each look takes a processor
 * that a poller may need. The rest of a stretch that is longer than a quantum waits there, too,
 * without hurry.
 *
 * Two things carry correctness, and all else is tuning: deferred work is pushed before the lease of
 * its shard is read, and who ends a lease looks at the stack afterwards; and each source is in the
 * epoll set of a shard that the thread watches, that pollers hold the lease of, or that a waiter
 * sleeps on - or is adopted, under a lease.
 *
 * Both are asserted before the thread sleeps, in builds with a sanitizer, but between
 * iw_hand_over_begin() and iw_hand_over_end(). tests/model walks through every order of the steps
 * by which threads hand over to each other: who changes them here changes them there. Only pollers
 * begin a lease, so that who arms has ended it, whatever the thread is at.
 *
 * Locks: engine.lock (start, the switch) is a leaf, and so are those of timers and of sources, the
 * latter below adopted.lock. Sources are called without locks.
 */
#ifndef ANYWARP_ENGINE_ENGINE_H
#define ANYWARP_ENGINE_ENGINE_H

#include "common/lock.h"
#include "engine/shard.h"

#include <pthread.h>

/**
 * Makes the epoll sets and the thread if they are not there: sources, timers and deferred work need
 * them.
 * @return 0 or a positive errno: EBADF if the program has closed them
 */
int iw_engine_start(void);

/**
 * Whether programs keep polling in a shard: then work may be left to their next empty poll. The
 * thread itself leaves nothing to them.
 */
bool iw_engine_leased(const struct iw_shard *s);

/** For a source that runs: more of the kind is likely to come soon, so that the engine's thread, if
 * it is that which runs it, looks on for a moment before it sleeps (linger.h). */
void iw_engine_linger(void);
/** Behind that: whether the source may be left to the engine's thread, as to a poller, until that
 * sleeps. */
bool iw_engine_keep(void);

/**
 * Holds all progress, for fork(): no source, timer or deferred work begins any more, and none runs
 * when this returns. Nothing is lost. Call with no lock held, and one thread at a time.
 */
void iw_engine_freeze(void);
void iw_engine_thaw(void);

/** What the module does about fork(); see process/atfork.h. A child has no epoll sets. */
void iw_engine_fork(enum fork_step step);

/* ---- for the files of the engine ---- */

#define IW_ENGINE_MANY 8 /* polls and passes beyond these are not counted: they are many */

extern struct iw_engine {
    struct lock lock;
    bool started;
    atomic_int ended;   /* why the thread has ended, a positive errno; 0: it has not */
    int wait_set;       /* the thread's: sockets of shards (if watched), kick, clock and looks */
    int kick;           /* eventfd, readable while kicked */
    atomic_int clock;   /* timerfd, readable when a timer is due; -1: not made yet */
    int looks;          /* timerfd, readable when the thread's next look at pollers is due */
    atomic_int all;     /* epoll set of the sockets of all shards; -1: nobody asked for it yet */
    atomic_bool kicked; /* a write to kick is due, or done and not read */
    pthread_t thread;
    atomic_bool frozen;
    atomic_uint checks;  /* looks of the thread at pollers; free-running */
    atomic_bool crowded; /* more threads polled in the last period than there are processors */
    atomic_uint period;  /* free-running from 1; and how many threads polled in it so far */
    atomic_uint threads;
} iw_engine;

/** Whether this is the engine's thread. */
bool iw_engine_is_thread(void);
/** Switches the sockets of a shard on or off in the thread's wait set. */
void iw_engine_watch_locked(struct iw_shard *s);
/** Adds the processors of this thread to those that are known. */
void iw_engine_know_processors(void);
/** An epoll set of those of all shards, by number. @return -1: there is none to have */
int iw_engine_all(void);
/** Makes one more shard, for at most as many as there are processors. @return NULL: not now */
struct iw_shard *iw_engine_open_shard(void);
/** Makes the thread look again: a lease begins or ended. */
void iw_engine_kick(void);
/**
 * Sets when the thread wakes for timers, in ns of iw_now(); 0: it does not.
 * @return whether there is a thread, or will be one
 */
bool iw_engine_wake_at(uint64_t ns);

/** Between iw_engine_freeze() and iw_engine_thaw(): neither source, timer nor deferred work begins.
 */
static inline bool iw_engine_frozen(void)
{
    return atomic_load(&iw_engine.frozen);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Between engine.c, poller.c, waiter.c, presence.c, deferred.c, source.c and timer.c only. */
#ifndef ANYWARP_ENGINE_INTERNAL_H
#define ANYWARP_ENGINE_INTERNAL_H

#include "engine/engine.h"

#include "common/lock.h"

#include <pthread.h>
#include <sys/epoll.h>

#define IW_PASS_EVENTS 32
#define IW_ENGINE_MANY 8 /* polls and passes beyond these are not counted: they are many */

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
    unsigned getters;   /* threads that wait on the sockets; under lock */
    unsigned visits;    /* of getters that have left since the last look; under lock */
    bool visited;       /* so often that the sockets stay off until the next look; under lock */
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

/** What a pass found: how many sources were ready, and the last of them that moved bytes, or 0. */
struct iw_found {
    long ready;
    uint64_t moved;
};

/** Runs the sources that are ready now, of more than IW_PASS_EVENTS so many. */
struct iw_found iw_engine_run_ready(void);
/** The same but for that of QP @p but; 0: for none. */
struct iw_found iw_engine_run_ready_but(uint32_t but);
/** Whether this is the engine's thread. */
bool iw_engine_is_thread(void);
/** Does what is dirty and what is ready, or some of it. @return whether bytes moved, mostly */
bool iw_engine_progress(struct iw_poller *p);
/** Switches the sockets on or off in the thread's wait set. */
void iw_engine_watch_locked(void);

/** The epoll set of all sources. */
int iw_engine_sockets(void);
/** Makes the thread look again: a lease begins or ended. */
void iw_engine_kick(void);
/**
 * Sets when the thread wakes for timers, in ns of iw_now(); 0: it does not.
 * @return whether there is a thread, or will be one
 */
bool iw_engine_wake_at(uint64_t ns);
/** Something was left to pollers: makes the thread look at them within 100 us, or take over. */
void iw_engine_look_soon(void);
/** The same within 1 ms. */
void iw_engine_look(void);
/**
 * Runs the source that epoll names by @p key, if it is there; key 0 names none.
 * @param events  that are ready; 0: it is not known whether any is
 * @return whether bytes moved
 */
bool iw_source_run(uint64_t key, uint32_t events);
/** The same unless it is that of QP @p but; 0: of none. */
bool iw_source_run_but(uint64_t key, uint32_t events, uint32_t but);
/**
 * Takes the source that epoll names by @p key out of the epoll set: it is left to who calls
 * iw_source_run(). A change of the events asked for puts it back.
 * @return false if it is gone, or waits for more than input
 */
bool iw_source_take_out(uint64_t key);
/** @return false if epoll has no room for it: it stays out, and left to who calls this */
bool iw_source_put_back(uint64_t key);

/** The poller @p p takes the source out of the epoll set if it can, and runs it at each pass. */
void iw_adopt(struct iw_poller *p, uint64_t key);
/** The poller @p p has run its hot source. */
void iw_adopted_note(const struct iw_poller *p);
/** Puts back what @p by has adopted, or with NULL whoever has. */
void iw_adopted_put_back(const struct iw_poller *by);
/** Puts it back unless it was run since the last call. */
void iw_adopted_look(void);
/** Runs it, unless it is that of QP @p but. */
void iw_adopted_run(uint32_t but);
/** It is taken out of the table. */
void iw_adopted_gone(uint64_t key);

/** Whether there is dirty work; a hint. */
bool iw_dirty_any(void);
/** Does what there is. @return whether there was any */
bool iw_dirty_run(void);
/** Waits until no thread is at it. */
void iw_dirty_wait_all(void);
/** The child of a fork(): what was there is the parent's. */
void iw_dirty_forget(void);
/** Runs the timers that are due, and sets the wake-up for the next. */
void iw_timers_run(void);

/** Between iw_engine_freeze() and iw_engine_thaw(): neither source, timer nor dirty work begins. */
bool iw_engine_frozen(void);
/** Frozen: waits until no ready() runs, or no fire(). */
void iw_sources_wait(void);
void iw_timers_wait(void);
/** Puts every source into a new epoll set. @return 0 or a positive errno: then not all are in */
int iw_sources_restore(void);

/** What the modules do about fork(); see process/atfork.h. A child has no epoll sets. */
void iw_adopted_fork(enum fork_step step);
void iw_source_fork(enum fork_step step);
void iw_timer_fork(enum fork_step step);
void iw_engine_fork(enum fork_step step);

#endif

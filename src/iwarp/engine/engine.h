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
 * The thread sleeps in an epoll set of its own, which holds the first one. A getter switches that
 * entry off while it waits (iw_engine_wait), so that a packet wakes one thread only; if getters
 * come back soon it stays off between them, and the thread looks each millisecond whether that is
 * still so. While programs keep polling and posting they hold a lease: the thread looks at what
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

#include "common/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Makes the epoll sets and the thread if they are not there: sources, timers and dirty work need
 * them.
 * @return 0 or a positive errno: EBADF if the program has closed them
 */
int iw_engine_start(void);

/** A descriptor in the epoll set, embedded in its owner. */
struct iw_source {
    int fd;
    uint32_t events; /* EPOLL* bits asked for */
    uint32_t slot;   /* in the table that epoll data indexes; 0: not added */
    uint32_t qp_num; /* of its connection, once there is one */
    /**
     * Something is ready; or, with no events, may be: then only a connection looks. May run in
     * several threads at once.
     * @return whether bytes moved
     */
    bool (*ready)(struct iw_source *s, uint32_t events);
};

/** @return 0, ENOMEM, ENOSPC, or an errno of epoll or of the thread's start */
int iw_source_add(struct iw_source *s, int fd, uint32_t events,
                  bool (*ready)(struct iw_source *, uint32_t));

/** Changes the events asked for. Legal inside ready(). */
void iw_source_want(struct iw_source *s, uint32_t events);

/**
 * Takes the source out of the set and waits until no ready() of it runs, unless the caller is
 * inside one itself: then until no other does. Afterwards no ready() begins. Harmless if not added.
 */
void iw_source_del(struct iw_source *s);

/** Waits until no ready() of it runs, but for those that the caller is inside of. */
void iw_source_wait(struct iw_source *s);

/** One-shot timers, run by the engine thread with no lock held. */
struct iw_timer {
    struct list link;
    uint64_t due; /* ns, CLOCK_MONOTONIC */
    void (*fire)(struct iw_timer *t);
    bool set;
};

/** Sets or moves the timer; @p ms from now. Without an engine thread nothing fires. */
void iw_timer_set(struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *));
void iw_timer_set_us(struct iw_timer *t, uint64_t us, void (*fire)(struct iw_timer *));
/** Unsets, for good; waits for a fire() that runs, unless the caller is in it. */
void iw_timer_cancel(struct iw_timer *t);

/** Work that somebody has to do soon: embedded in its owner, pushed at most once at a time. */
struct iw_dirty {
    struct iw_dirty *next;
    atomic_uint state; /* IW_DIRTY_QUEUED, and IW_DIRTY_RUN for each thread inside run() */
    void (*run)(struct iw_dirty *d);
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

/** What a CQ that is polled knows; hints, without a lock. */
struct iw_poller {
    _Atomic uint64_t hot;    /* the source that had something at the last poll */
    _Atomic uint32_t tries;  /* of it that are left, 0: none is hot */
    _Atomic uint32_t streak; /* polls at which it had something */
    _Atomic uint32_t runs;   /* of it; free-running */
    _Atomic uint64_t rest;   /* iw_now() before which it is left alone */
    _Atomic uint32_t passes; /* that empty polls made; free-running */
    _Atomic uint32_t idle;   /* passes since a source was ready, of those that looked at all */
    _Atomic uint32_t run;    /* polls without a lease, since it was asked for or the CQ was armed */
};

/**
 * Whether programs keep polling: then work may be left to their next empty poll. The thread itself
 * leaves nothing to them.
 */
bool iw_engine_leased(void);

/** Counts one poll of the CQ. */
void iw_engine_polled(struct iw_poller *p);
/** Counts one post or pass that saw to what there was to send. */
void iw_engine_sent(void);
/** The poller on whose behalf this thread is at the dirty stack; NULL: none. */
const struct iw_poller *iw_engine_poller(void);
/** Makes progress on behalf of a poller whose CQ is empty; first the dirty stack. */
void iw_engine_poll(struct iw_poller *p);
/** Makes progress for anybody else. */
void iw_engine_pass(void);

/**
 * Sleeps until a source is ready, at most @p ns, then one pass: for a caller that waits for what
 * another thread's pass may do as well, and looks again each time. No cancellation point.
 */
void iw_engine_poll_within(int64_t ns);

/**
 * The program will sleep or wait elsewhere: ends the lease, runs the dirty stack.
 * @param p  the CQ that it arms, NULL if it is none
 */
void iw_engine_arm(struct iw_poller *p);

/**
 * Waits until @p fd (an event descriptor) may be readable, doing the process's progress meanwhile:
 * first a spin of iw_conf()->spin_us, then asleep on the sockets. The caller looks whether its
 * event is there, and else waits again. The wait itself is a cancellation point, no lock is held in
 * it.
 * @return 0, or -EINTR by the rule of iw_eventfd_wait()
 */
int iw_engine_wait(int fd);

/**
 * Holds all progress, for fork(): no source, timer or dirty work begins any more, and none runs
 * when this returns. Nothing is lost. Call with no lock held, and one thread at a time.
 */
void iw_engine_freeze(void);
void iw_engine_thaw(void);

/** Nanoseconds of CLOCK_MONOTONIC. */
uint64_t iw_now(void);

#endif

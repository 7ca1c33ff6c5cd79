/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENGINE_TIMER_H
#define ANYWARP_ENGINE_TIMER_H

#include "common/list.h"
#include "common/lock.h"

#include <stdbool.h>
#include <stdint.h>

/** Nanoseconds of CLOCK_MONOTONIC. */
uint64_t iw_now(void);

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
/** As that, but a timer that is set stays as it is. */
void iw_timer_start_us(struct iw_timer *t, uint64_t us, void (*fire)(struct iw_timer *));
/** Unsets; a fire() that runs goes on, so that the caller may hold a lock that it takes. */
void iw_timer_unset(struct iw_timer *t);
/** Unsets, for good; waits for a fire() that runs, unless the caller is in it. */
void iw_timer_cancel(struct iw_timer *t);

/** Runs the timers that are due, and sets the wake-up for the next. */
void iw_timers_run(void);
/** Frozen: waits until no fire() runs. */
void iw_timers_wait(void);
/** What the module does about fork(); see process/atfork.h. */
void iw_timer_fork(enum fork_step step);

#endif

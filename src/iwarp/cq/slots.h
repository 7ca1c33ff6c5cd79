/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of a work queue that its completions still hold. As on an adapter, the place of a work
 * request is free again when the program has polled its completion, not when that was added: so
 * the completions of a queue never outgrow a CQ that is as large as the queue.
 *
 * A completion in a CQ points here. It may stay there longer than its queue: the last of queue and
 * completions to go frees the struct. No lock is needed.
 */
#ifndef ANYWARP_CQ_SLOTS_H
#define ANYWARP_CQ_SLOTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct iw_slots {
    _Atomic uint32_t users; /* the queue, and each completion */
};

/** For a new queue. @return NULL without memory */
static inline struct iw_slots *iw_slots_create(void)
{
    struct iw_slots *s = malloc(sizeof(*s));
    if (s)
        atomic_init(&s->users, 1);
    return s;
}

/** A completion is on its way to a CQ; by the queue, which is there. */
static inline void iw_slots_hold(struct iw_slots *s)
{
    atomic_fetch_add_explicit(&s->users, 1, memory_order_relaxed);
}

/** @p n completions were polled or lost, or the queue goes; nothing for NULL. */
static inline void iw_slots_release(struct iw_slots *s, uint32_t n)
{
    if (s && n && atomic_fetch_sub_explicit(&s->users, n, memory_order_acq_rel) == n)
        free(s);
}

/** How many places completions hold; by the queue. */
static inline uint32_t iw_slots_held(struct iw_slots *s)
{
    return atomic_load_explicit(&s->users, memory_order_acquire) - 1;
}

#endif

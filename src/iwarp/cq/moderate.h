/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moderation of a CQ's events: completions are never delayed, but an event that is due waits until
 * it stands for `count` completions, or until `period_us` after the first of them.
 */
#ifndef ANYWARP_CQ_MODERATE_H
#define ANYWARP_CQ_MODERATE_H

#include "engine/timer.h"

#include <stdbool.h>
#include <stdint.h>

/** Under cq->lock. */
struct iw_moderation {
    uint16_t count;     /* completions an event; 0: the period alone decides */
    uint16_t period_us; /* 0: the count alone decides; with count 0: not moderated */
    uint32_t held;      /* completions that the due event stands for; 0: none is due */
    uint64_t since;     /* ns, when the first of them came */
    bool timing;        /* the timer is set, or about to be; it is left to run out */
    struct iw_timer timer;
};

enum iw_moderate {
    IW_MODERATE_WAIT,  /* nothing to do now */
    IW_MODERATE_RAISE, /* the event is raised */
    IW_MODERATE_TIME,  /* the timer is to be set */
};

static inline bool iw_is_moderated(const struct iw_moderation *m)
{
    return m->count || m->period_us;
}

/** An event is due, or held back already, and @p n completions more count, at @p now in ns. */
enum iw_moderate iw_moderate_add(struct iw_moderation *m, uint32_t n, uint64_t now);

/** The timer fired. @p left_us  [out] for which to set it again, if it is to be set */
enum iw_moderate iw_moderate_expired(struct iw_moderation *m, uint64_t now, uint64_t *left_us);

struct iw_cq;

/**
 * Sets the moderation; 0 and 0 ends it. An event that it holds back is raised.
 * @return 0, or the errno of the engine's start
 */
int iw_cq_moderate(struct iw_cq *cq, uint16_t count, uint16_t period_us);
/** Begins to wait for the time of a moderated event. Call with no lock held. */
void iw_cq_time(struct iw_cq *cq);

#endif

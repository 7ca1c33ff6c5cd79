/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels. */
#ifndef ANYWARP_CQ_CHANNEL_H
#define ANYWARP_CQ_CHANNEL_H

#include "common/list.h"
#include "common/lock.h"
#include "engine/timer.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct iw_cq;
struct iw_channel;

/** Says why the wait for an event of @p ch may never end. @return false if nothing speaks for it */
typedef bool iw_channel_look(struct iw_channel *ch);

struct iw_channel {
    struct ibv_comp_channel pub; /* refcnt: CQs, under lock */
    struct lock lock;
    struct list events; /* struct iw_cq.event_link, those with events that are not read yet */
    bool readable;      /* its descriptor; it need not be for what a waiting thread came upon */
    /* For who reads the log; under lock. */
    struct iw_timer unmet;
    iw_channel_look *look;
    uint64_t since;    /* when the last wait began, ns */
    unsigned after_ms; /* the next look */
    bool awaited;      /* nothing was taken since then */
    bool timed, told;  /* the timer runs; the look has found something */
};

static inline struct iw_channel *iw_channel(struct ibv_comp_channel *c)
{
    return container_of(c, struct iw_channel, pub);
}

struct iw_channel *iw_channel_create(struct ibv_context *ctx);
/** @return 0 or EBUSY */
int iw_channel_destroy(struct iw_channel *ch);
/**
 * Takes the next event if there is one.
 * @return the CQ, its events_read counted; NULL
 */
struct iw_cq *iw_channel_take(struct iw_channel *ch);
/** The calling thread takes no event, though it may have come upon one while it waited. */
void iw_channel_leave(struct iw_channel *ch);
/**
 * A thread begins to wait for an event, and the log is read. If none is taken for a second, @p look
 * is called, with no lock held, and again from time to time until it has told something, once.
 */
void iw_channel_expect(struct iw_channel *ch, iw_channel_look *look);
/**
 * Queues one event of @p cq, which has a channel: behind those of others that are queued, and, but
 * for its first, behind the first ones of those to come. Legal with a CQ lock held.
 * @return whether none of it was queued: then iw_channel_tell() is due
 */
bool iw_channel_queue(struct iw_cq *cq);
/** Wakes for the events of @p cq, if they are there still; call with no QP or CQ lock held. */
void iw_channel_tell(struct iw_cq *cq);
/** Both; call with no QP or CQ lock held. */
void iw_channel_raise(struct iw_cq *cq);
/** @p cq leaves its channel, its unread events with it. @return how many of its events were read */
unsigned iw_channel_drop(struct iw_cq *cq);

/** What the module does about fork(); see process/atfork.h. */
void iw_channel_fork(enum fork_step step);

#endif

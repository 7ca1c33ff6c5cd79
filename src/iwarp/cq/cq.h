/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues.
 *
 * Locks: cq->lock, then channel->lock; both are taken below QP locks by iw_cq_add(). An event is
 * queued with the completion that raises it, so that events of several CQs come in the order in
 * which completions do. But adding never writes a descriptor: whose has to be written is noted in
 * the caller's struct iw_cq_wakes, which is fired once the caller holds no QP lock.
 */
#ifndef ANYWARP_CQ_CQ_H
#define ANYWARP_CQ_CQ_H

#include "common/list.h"
#include "common/lock.h"
#include "cq/channel.h"
#include "cq/moderate.h"
#include "cq/slots.h"
#include "engine/deferred.h"
#include "engine/poller.h"
#include "observe/stats.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** What a CQ is armed for (the table is in arm.c). */
enum iw_arm { IW_ARM_NONE, IW_ARM_SOLICITED, IW_ARM_ANY };

struct iw_cqe {
    struct ibv_wc wc;
    bool solicited;         /* a receive whose sender asked for an event */
    uint64_t stamp;         /* CLOCK_MONOTONIC in ns when it was added, if the CQ is stamped */
    struct iw_slots *slots; /* held once for this completion, let go when it is polled; or NULL */
};

struct iw_pd;
struct iw_shadow_cq;

struct iw_cq {
    union {
        struct ibv_cq pub;
        struct ibv_cq_ex pub_ex;
    };
    struct lock lock;
    struct iw_channel *channel; /* NULL: none */
    struct iw_cqe *ring;
    uint32_t size;               /* a power of two; pub.cqe is one less */
    _Atomic uint32_t head, tail; /* consumed by poll, produced by add; free-running */
    _Atomic uint64_t ordered;    /* of visibility.c, in two halves */
    enum iw_arm arm;
    /* Positions from head to tail; polling moves them along. */
    uint32_t raised_at;         /* behind the completion that raised the last event */
    uint32_t matched_at;        /* behind the newest solicited or failed completion */
    atomic_bool overrun;        /* CQ_ERR was raised; nothing is added any more */
    struct iw_deferred failing; /* then: makes those fail that use it */
    struct iw_moderation mod;
    struct list event_link;     /* in channel->events; under channel->lock */
    unsigned events_queued;     /* under channel->lock */
    bool event_told;            /* by the descriptor, of those queued; under channel->lock */
    unsigned events_read;       /* by ibv_get_cq_event; under channel->lock */
    unsigned async_events_read; /* under the context's lock */
    atomic_uint users;          /* QPs and SRQs: EBUSY for destroy */
    struct iw_poller poller;
    /* The extended view. */
    struct lock poll_lock;       /* from start_poll to end_poll, before any other */
    struct iw_cqe current;       /* where the poll is; under poll_lock */
    bool single_threaded;        /* by the program's promise: no poll_lock; constant */
    bool stamped;                /* completions carry their time; constant */
    struct stats_cq *stats;      /* its row, or */
    struct stats_cq not_shown;   /* in place of one */
    struct iw_shadow_cq *shadow; /* what a check knows of it; NULL: none goes on */
    struct iw_pd *parent;        /* the parent domain it was made on, NULL: none */
};

static inline struct iw_cq *iw_cq(struct ibv_cq *c)
{
    return container_of(c, struct iw_cq, pub);
}

/**
 * Signals to give when no QP lock is held any more: at most two CQs whose event is to be told, or
 * waits for its time from now on, or that are overrun. Initialise with {0}.
 */
struct iw_cq_wakes {
    struct iw_cq *told[2];
    struct iw_cq *timed[2];
    struct iw_cq *overrun[2];
};

/**
 * @param fail_users  makes every QP fail that uses the CQ, given its field failing: what an overrun
 *                    leads to, run by the engine
 * @return NULL and errno: EINVAL (cqe < 1 or > IW_MAX_CQE, comp_vector, foreign channel), ENOMEM
 */
struct iw_cq *iw_cq_create(struct ibv_context *ctx, int cqe, void *cq_context,
                           struct ibv_comp_channel *channel, int comp_vector,
                           void (*fail_users)(struct iw_deferred *failing));
/**
 * Drops unread events, then waits until those read are acknowledged.
 * @return 0 or EBUSY
 */
int iw_cq_destroy(struct iw_cq *cq);

/**
 * Adds one completion. A full CQ is overrun, for good: this and all later completions are lost,
 * CQ_ERR is noted in @p w once, and an event if one is asked for.
 * @return false if the CQ is overrun
 */
bool iw_cq_add(struct iw_cq *cq, const struct iw_cqe *cqe, struct iw_cq_wakes *w);
/** Whether @p w has any. */
static inline bool iw_cq_is_to_wake(const struct iw_cq_wakes *w)
{
    return w->told[0] || w->timed[0] || w->overrun[0];
}

/** Gives all signals of @p w; call with no lock held. */
void iw_cq_wake(const struct iw_cq_wakes *w);
/** Has the users of an overrun CQ fail, soon. */
void iw_cq_fail_users(struct iw_cq *cq);

/**
 * Takes up to @p n completions; no progress is made here.
 * @return how many, or -EIO if there are none and, after an overrun, none will come
 */
int iw_cq_take(struct iw_cq *cq, int n, struct ibv_wc *wc);

/** Takes the oldest completion with all that is known of it. @return false if there is none */
bool iw_cq_take_one(struct iw_cq *cq, struct iw_cqe *cqe);

/** Forgets the completions of a QP that nobody has taken; NULL is harmless. */
void iw_cq_purge(struct iw_cq *cq, uint32_t qp_num);

/** Whether there is nothing to take; without the lock, which is taken where head was old. */
static inline bool iw_cq_is_empty(struct iw_cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
           atomic_load_explicit(&cq->tail, memory_order_acquire);
}

/**
 * Arms for one event (ibv_req_notify_cq). If the CQ holds an unpolled completion that matches and
 * is newer than the one that raised the last event, the event is raised at once, by the oldest of
 * those: so a program that polls one completion an event gets one event for each. A solicited arm
 * does not weaken a full one. On an overrun CQ an event is raised at once, for a poll has news.
 * Without a channel nothing happens. Call with no QP lock held.
 */
void iw_cq_arm(struct iw_cq *cq, bool solicited_only);

/**
 * Whether someone is to be woken by the next completion: then nothing may wait for a poll. Without
 * the lock: who arms ends the lease next, and does what was left to polls (iw_engine_arm()).
 */
static inline bool iw_cq_is_armed(struct iw_cq *cq)
{
    return __atomic_load_n(&cq->arm, __ATOMIC_RELAXED) != IW_ARM_NONE;
}

/**
 * Resizes; what it holds stays.
 * @return 0, EINVAL (smaller than what it holds, bad, or the CQ is overrun), ENOMEM
 */
int iw_cq_resize(struct iw_cq *cq, int cqe);

/** Acknowledges @p n completion events. */
void iw_cq_ack(struct iw_cq *cq, unsigned n);

/** What the module does about fork(); see process/atfork.h. */
void iw_cq_fork(enum fork_step step);

#endif

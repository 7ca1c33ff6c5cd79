/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: each has one of verbs with a channel of its own, which the library's thread
 * watches. Completions wait in a FIFO, so that they can be counted before they are polled.
 */
#ifndef KVERBS_CQ_H
#define KVERBS_CQ_H

#include "compat/fifo.h"
#include "kverbs/device.h"

struct kv_cq {
    struct ib_cq ib;
    struct ibv_cq *verb;
    struct ibv_comp_channel *channel;
    struct event_source events; /* of the channel */
    struct event_source kick;   /* an eventfd: there were enough completions at once */
    pthread_mutex_t lock;       /* of what follows; before that of the device's QPs and of a PD */
    struct wc_fifo fifo;
    bool asked; /* by ib_req_notify_cq() */
    u32 enough; /* by ib_req_ncomp_notif(); 0: not asked */
};

static inline struct kv_cq *kv_cq(const struct ib_cq *cq)
{
    return container_of(cq, struct kv_cq, ib);
}

/** Calls the CQ's event handler, as in an interrupt. */
void kv_cq_event(struct kv_cq *cq, struct ib_event *e);

#endif

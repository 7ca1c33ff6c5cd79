/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: each has one of verbs. */
#ifndef KVERBS_SRQ_H
#define KVERBS_SRQ_H

#include "kverbs/device.h"

struct kv_srq {
    struct ib_srq ib;
    struct ibv_srq *verb;
};

static inline struct kv_srq *kv_srq(const struct ib_srq *srq)
{
    return container_of(srq, struct kv_srq, ib);
}

/** Calls the SRQ's event handler, as in an interrupt. */
void kv_srq_event(struct kv_srq *srq, struct ib_event *e);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, and what is registered in them by dma.c and mr.c. */
#ifndef KVERBS_PD_H
#define KVERBS_PD_H

#include "kverbs/device.h"

struct kv_mr;

struct kv_pd {
    struct ib_pd ib;
    struct ibv_pd *verb;
    pthread_mutex_t lock;  /* of what follows; a leaf */
    struct kv_mr *mrs[64]; /* by the lowest bits of their index */
    struct ibv_mr **kept;  /* regions that could not be deregistered yet */
    size_t keeps;
};

static inline struct kv_pd *kv_pd(const struct ib_pd *pd)
{
    return container_of(pd, struct kv_pd, ib);
}

/** A region whose mapping is gone, but not yet its last window: it goes with the PD. */
void kv_pd_keep(struct kv_pd *pd, struct ibv_mr *mr);

/** The PD has one object more, or less. */
void kv_pd_use(struct ib_pd *pd, int by);

#endif

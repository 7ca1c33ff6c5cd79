/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles: each has one of verbs, and what it was made of, for rdma_query_ah(). */
#ifndef KVERBS_AH_H
#define KVERBS_AH_H

#include "kverbs/device.h"

struct kv_ah {
    struct ib_ah ib;
    struct ibv_ah *verb;
    struct rdma_ah_attr attr;
};

static inline struct kv_ah *kv_ah(const struct ib_ah *ah)
{
    return container_of(ah, struct kv_ah, ib);
}

/** The same address vector, in the other interface's words. */
struct ibv_ah_attr kv_ah_to_verb(const struct rdma_ah_attr *a);
struct rdma_ah_attr kv_ah_from_verb(const struct ibv_ah_attr *v);

#endif

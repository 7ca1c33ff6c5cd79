/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions for fast registration: each is a window of type 2. IB_WR_REG_MR binds it to the region
 * that the mapped memory has in the PD; its key is then good for local use, too, by that region's.
 */
#ifndef KVERBS_MR_H
#define KVERBS_MR_H

#include "kverbs/pd.h"

/**
 * What IB_WR_REG_MR posts; its key is good for the local SGEs of what is posted after it.
 * @return 0 and *bind; -EINVAL: key or address are not of this MR, or the memory is not mapped
 */
int kv_mr_bind(struct kv_pd *pd, const struct ib_reg_wr *wr, struct ibv_send_wr *bind);

/**
 * What IB_WR_LOCAL_INV invalidates; the key is good for nothing that is posted after it. An MR that
 * is invalid already may be invalidated, as RDMAC's verbs say, a window may not: then it is a
 * region of one byte, which is there for that.
 * @return 0 and *key; -ENOMEM
 */
int kv_mr_invalidate(struct kv_pd *pd, u32 *key);

/** The peer has invalidated it. */
void kv_mr_invalidated(struct kv_pd *pd, u32 key);

/** The key for a local SGE: that of the region behind it; one that is bound to nothing as it is. */
u32 kv_mr_lkey(struct kv_pd *pd, u32 key);

#endif

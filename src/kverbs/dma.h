/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped for DMA. A mapping becomes a memory region of a protection domain when a work
 * request first needs it there, and stops being one when it is unmapped.
 */
#ifndef KVERBS_DMA_H
#define KVERBS_DMA_H

#include "kverbs/pd.h"

/**
 * The region of a PD that has these bytes: those of one mapping, or part of them.
 * @return NULL and a line on stderr: they are not mapped, or cannot be registered
 */
struct ibv_mr *kv_dma_region(struct kv_pd *pd, u64 addr, u64 length);

/** No mapping is registered in the PD any more. */
void kv_dma_leave(struct kv_pd *pd);

#endif

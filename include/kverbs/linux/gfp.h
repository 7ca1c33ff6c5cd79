/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_GFP_H
#define KVERBS_LINUX_GFP_H

#include <linux/types.h>

/* Whether the caller can sleep is all that counts here. */
#define __GFP_RECLAIM 0x1u
#define __GFP_ZERO    0x2u
#define __GFP_NOWARN  0x4u
#define GFP_ATOMIC    0u
#define GFP_NOWAIT    0u
#define GFP_KERNEL    __GFP_RECLAIM
#define GFP_NOIO      __GFP_RECLAIM
#define GFP_NOFS      __GFP_RECLAIM
#define GFP_DMA       0u

#endif

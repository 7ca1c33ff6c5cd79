/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#ifndef ANYWARP_MEM_MR_H
#define ANYWARP_MEM_MR_H

#include "mem/region.h"

struct iw_mr {
    struct ibv_mr pub;
    struct iw_region *region; /* reregistering makes a new one */
    uint64_t iova;            /* tagged offset of the first byte, unless zero-based */
};

/**
 * Registers memory. Nothing is pinned and no byte is touched; see probe.h for what is looked at.
 * @param iova  tagged offset of the first byte, unless IBV_ACCESS_ZERO_BASED makes it 0
 * @return NULL and errno: EINVAL (zero length, wrap, REMOTE_WRITE or REMOTE_ATOMIC without
 *         LOCAL_WRITE, unknown flags), EOPNOTSUPP (on demand), EFAULT (not mapped, or not writable
 *         where LOCAL_WRITE is asked), ENOMEM, EIO (no random STag)
 */
struct iw_mr *iw_mr_reg(struct iw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access);
/** The null region, for local use only. @return NULL and errno: ENOMEM, EIO */
struct iw_mr *iw_mr_null(struct iw_pd *pd);
/**
 * Changes what @p flags (IBV_REREG_MR_CHANGE_*) say; lkey and rkey stay, and nobody accesses the
 * old range any more. A region that was invalidated is valid again.
 * @return 0, or else the old region is as it was: the errnos of iw_mr_reg(), EINVAL (flags, an
 *         argument without its flag, PD of another context, null region), EBUSY (window bound)
 */
int iw_mr_rereg(struct iw_mr *mr, unsigned flags, struct iw_pd *pd, void *addr, size_t len,
                unsigned access);
/** @return 0, or EBUSY while a window is bound to it */
int iw_mr_dereg(struct iw_mr *mr);

#endif

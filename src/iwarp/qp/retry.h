/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a QP with InfiniBand manners waits for a peer that does not answer. */
#ifndef ANYWARP_QP_RETRY_H
#define ANYWARP_QP_RETRY_H

#include <stdint.h>

#define IW_RETRY_TIMEOUT 19     /* of rdma_cm: what the kernel's takes for RoCE */
#define IW_RETRY_US_MIN  500000 /* an adapter's peer answers within less */

/** (retry_cnt + 1) * 4.096 us * 2^timeout, at least IW_RETRY_US_MIN. @return us, 0: for ever */
static inline uint64_t iw_retry_us(uint8_t timeout, uint8_t retry_cnt)
{
    uint64_t us = timeout ? ((retry_cnt + 1ull) * 4096 << (timeout & 31)) / 1000 : 0;
    return us && us < IW_RETRY_US_MIN ? IW_RETRY_US_MIN : us;
}

#endif

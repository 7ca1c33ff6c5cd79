/* SPDX-License-Identifier: BSD-2-Clause */
/* Putting received bytes into registered memory. */
#ifndef ANYWARP_QP_RX_SCATTER_H
#define ANYWARP_QP_RX_SCATTER_H

#include "qp/qp.h"

/**
 * Copies so that the last byte is stored last: programs poll it to see that a Write is complete. If
 * it ends an aligned word of 8 or 4 bytes, that is stored at once, as adapters do.
 * @return false if the memory is not there any more; bytes may have been stored
 */
bool iw_place(uint8_t *dst, const uint8_t *src, size_t len);

/**
 * Copies into a scatter list, @p offset bytes into it; the caller knows that it fits. Each entry is
 * checked for every call, as its region may have been revoked.
 * @param use  IW_USE_SCATTER or IW_USE_RECEIVE
 * @return IW_OK, LOCAL_SINK or LOCAL_GONE
 */
enum iw_err iw_scatter(struct iw_qp *qp, enum iw_use use, const struct ibv_sge *sge, uint32_t nsge,
                       uint64_t offset, const uint8_t *src, size_t len);

/** Bytes of a scatter list. */
uint64_t iw_sge_bytes(const struct ibv_sge *sge, uint32_t nsge);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Early messages. A Send or Immediate that finds no posted receive is held: its segments are copied
 * and kept in order, up to a bound, and so are the read and atomic requests behind it, which must
 * not overtake it (RFC 5040 section 5.5 rule 12). Writes and responses pass. At the bound the
 * socket is no longer read, and TCP holds the peer; see rx_stall.h for the rest. rx.lock
 * throughout.
 */
#ifndef ANYWARP_QP_RX_EARLY_H
#define ANYWARP_QP_RX_EARLY_H

#include "qp/rx_place.h"

/** Where in the stream the first that is held begins. */
uint64_t iw_early_offset(const struct iw_qp_rx *rx);
const struct ddp_seg *iw_early_first(const struct iw_qp_rx *rx);

/** Whether something is held, so that later messages must queue behind it. */
bool iw_early_any(const struct iw_qp_rx *rx);

/**
 * Holds the segment that reception is at, then offers what is held again, as a receive may have
 * been posted meanwhile.
 * @param written  of an Immediate: bytes of the Write right before it
 * @return IW_OK, the error of a held message, or IWC_HOLD at the bound
 */
int iw_early_add(struct iw_qp *qp, uint32_t written);

/**
 * Offers what is held again.
 * @return IW_OK, or the error of one; then the QP has failed, and its Terminate quotes that one
 */
int iw_early_replay(struct iw_qp *qp);
/** Of UC: forgets what is held, and goes on behind it. */
void iw_early_lose(struct iw_qp *qp);
/** Something was held a second ago: says so, if it still is. For the CM, at IW_QP_NEWS_UNMET. */
void iw_qp_unmet(struct iw_qp *qp);
/** Forgets what is held, with what was taken in behind it, and waits for no receive any more. */
void iw_early_drop(struct iw_qp *qp);

#endif

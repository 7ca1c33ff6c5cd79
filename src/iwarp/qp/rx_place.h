/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and Immediates into receives. rx.lock unless said otherwise. */
#ifndef ANYWARP_QP_RX_PLACE_H
#define ANYWARP_QP_RX_PLACE_H

#include "qp/qp.h"

/**
 * Places one segment of a Send into the receive in progress, or takes a receive for it.
 * @return IW_OK, an error, or IWC_HOLD: no receive is posted
 */
int iw_recv_place(struct iw_qp *qp, const struct ddp_seg *seg);

/**
 * Where the first @p len bytes of a segment of a Send, which is due, belong; for rx_direct.h.
 * @return false if no receive is there for it, or they do not lie in one entry of its list
 */
bool iw_recv_find(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t len, struct iw_direct *d);

/** An Immediate, and the Write that it belongs to. */
struct iw_immediate {
    __be32 data;
    bool solicited;
    uint32_t written; /* bytes of the Write right before it, 0 if there was none */
};

/** Completes a receive with an Immediate; nothing is placed. @return IW_OK or IWC_HOLD */
int iw_recv_immediate(struct iw_qp *qp, const struct iw_immediate *imm);

/** Completes the receive in progress as @p wc says, which gets its wr_id and the QP's number. */
void iw_recv_complete(struct iw_qp *qp, const struct ibv_wc *wc, bool solicited,
                      struct iw_wakes *w);

/** Completes the receive in progress, and a QP's own posted ones, for a QP that failed. */
void iw_recv_flush(struct iw_qp *qp, struct iw_wakes *w);

/** A receive was posted while Sends waited for one. Call with no lock held. */
void iw_recv_resume(struct iw_qp *qp);

#endif

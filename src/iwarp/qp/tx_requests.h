/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's side of reads and atomics: requests, and the list of those that are outstanding
 * (orq), against which every response is checked. A response opens no region to anything else, so
 * the sink needs local write access only.
 */
#ifndef ANYWARP_QP_TX_REQUESTS_H
#define ANYWARP_QP_TX_REQUESTS_H

#include "qp/qp.h"

/** Sets a ring's agreed limit. The ring has at least one place more, for the RTR. */
void iw_depth_init(struct iw_depth *d, uint32_t limit);

/** Builds the request at send queue index @p i. tx.lock, in a section. @return IW_OK, LOCAL_PROT,
 * LOCAL_OP */
enum iw_err iw_read_request_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m, uint8_t *hdr);
enum iw_err iw_atomic_request_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m, uint8_t *hdr);

/** The request is cut: it waits for its response from here on. tx.lock. */
void iw_request_sent_locked(struct iw_qp_tx *tx, uint32_t i);
/** The zero-length read of connection set-up was sent. tx.lock. */
void iw_rtr_sent_locked(struct iw_qp_tx *tx);

/* Of the response that comes in, for rx_direct.h; rx.lock is held. */

/**
 * Where its next @p len bytes belong.
 * @return false if the segment is not due, or they do not lie in one entry of the list
 */
bool iw_response_find(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t len,
                      struct iw_direct *d);
/** So many bytes went past iw_on_read_response(). */
void iw_response_past(struct iw_qp *qp, uint32_t len);
/** They cannot be placed. tx.lock, too. */
void iw_response_failed_locked(struct iw_qp *qp, uint8_t status);

/** Upcalls of conn/rx.h; rx.lock is held. */
int iw_on_read_response(void *up, const struct ddp_seg *seg);
int iw_on_atomic_response(void *up, const struct rdmap_atomic_response *r);

/**
 * Gives the outstanding request that a peer's Terminate is about its status: that whose MSN the
 * quoted header has; without one, but with an RDMAP error, the oldest. tx.lock.
 */
void iw_request_blame_locked(struct iw_qp_tx *tx, const struct terminate *t);

#endif

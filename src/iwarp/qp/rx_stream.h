/* SPDX-License-Identifier: BSD-2-Clause */
/* Reception, between the qp_*.c files. */
#ifndef ANYWARP_QP_RX_STREAM_H
#define ANYWARP_QP_RX_STREAM_H

#include "qp/qp.h"

extern const struct iwc_upcalls iw_qp_upcalls;

/** Goes on where reception stopped for want of a receive. rx.lock is held. */
void iw_rx_resume(struct iw_qp *qp);

/** Feeds bytes that are in memory already. rx.lock is held. */
void iw_rx_feed(struct iw_qp *qp, const uint8_t *p, size_t len);

/**
 * Ends a stretch with rx.lock: sends what reception made ready, settles a failure, releases
 * rx.lock, then gives the signals.
 */
void iw_rx_leave(struct iw_qp *qp);

/**
 * Receives for a poster, who makes no passes while each of its polls finds completions. With none
 * of the QP's locks held but build_lock.
 */
void iw_rx_check(struct iw_qp *qp);

/** Takes in what stands in the socket of a connection that stalls. rx.lock is held. */
void iw_rx_take_in(struct iw_qp *qp);

/** Receives, as when the socket may be ready. rx.lock is held. @return whether bytes came in */
bool iw_rx_go_on(struct iw_qp *qp);

/** Sends what waited for the stream. No lock is held. @return whether bytes went out */
bool iw_tx_go_on(struct iw_qp *qp);

/** Drops what waits for receives, in the socket, too. rx.lock is held. */
void iw_rx_abandon(struct iw_qp *qp);

/** Frees what reception holds. */
void iw_rx_fini(struct iw_qp *qp);

#endif

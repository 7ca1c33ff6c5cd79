/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RESET of a QP that is connected, connects, or is in error: the connection ends, what was posted
 * and is not complete is forgotten without a completion, and the QP is as new, with its number.
 * Completions that are in a CQ stay there, but for those of one by number.
 *
 * Until the end the QP is in ERR, so that no connection begins meanwhile.
 */
#ifndef ANYWARP_QP_RESET_H
#define ANYWARP_QP_RESET_H

#include "qp/qp.h"

/** Ends the connection with a Terminate. iw_qp_settle() and then iw_qp_reset_end() are due.
 * tx.lock. */
void iw_qp_reset_begin_locked(struct iw_qp *qp, struct iw_wakes *w);

/**
 * One by number that was linked, and heard nothing: it may be linked again, and what is posted goes
 * out then. rx.lock and tx.lock, with no stream.
 */
void iw_qp_unmeet_locked(struct iw_qp *qp);

/** Forgets its completions that nobody has taken, as InfiniBand does at RESET and destruction. */
void iw_qp_purge(struct iw_qp *qp);

/** The flush of a QP that is being reset. rx.lock and tx.lock. */
void iw_qp_forget_locked(struct iw_qp *qp);

/**
 * Leaves the CM, and state RESET. Waits for the Terminate to be sent, at most 1 s, and for threads
 * that are inside the QP. Call with no lock held.
 */
void iw_qp_reset_end(struct iw_qp *qp);

#endif

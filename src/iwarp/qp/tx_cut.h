/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between tx_send.c and tx_cut.c: messages become FPDUs in qp->tx.batch. Locks: tx.lock.
 *
 * What is gathered points into the program's memory. It is cut and handed to TCP in one section of
 * the QP's domain (mem/quiesce.h), and checked once more in each later one.
 */
#ifndef ANYWARP_QP_TX_CUT_H
#define ANYWARP_QP_TX_CUT_H

#include "qp/qp.h"

/** Makes sure of a batch, whose limit is now @p limit. @return false without memory */
bool iw_qp_batch_locked(struct iw_qp_tx *tx, size_t limit);

/* With a batch, in a section: */

/**
 * Cuts Sends and Writes that may go now and are short enough to be copied, until the batch has
 * @p most bytes.
 * @return whether they were all that is posted, and the batch has fewer; what is left, the one at
 *         fault among it, is for iw_qp_fill_locked()
 */
bool iw_qp_cut_small_locked(struct iw_qp *qp, size_t most);

/**
 * Fills the batch: a Terminate alone; else the message that is begun; else responses and work
 * requests in turn, so that neither starves the other. The section is ended and begun again for a
 * local work request, before which nothing is unsent.
 * @return IW_OK, or why the work request at sq.cut cannot be sent; what was cut before it stays
 */
enum iw_err iw_qp_fill_locked(struct iw_qp *qp);

/**
 * As iwc_tx_cut(), whose result is @p whole, of a message whose data may be gone.
 * @return NULL, or the address that cannot be read; the segments in front of it are cut
 */
const void *iw_qp_cut_msg_locked(struct iw_qp *qp, struct iwc_msg *m, bool *whole);

/**
 * The stream could not read what the batch points to: finds the work request or the answer that
 * it is of.
 * @return why it can no longer be sent: LOCAL_GONE or READ_GONE
 */
enum iw_err iw_qp_gone_locked(struct iw_qp *qp);

/**
 * What an unsent batch points to must still be registered (design: keys at transmission).
 * @return IW_OK, or why a work request that is cut can no longer be sent
 */
enum iw_err iw_qp_revalidate_locked(struct iw_qp *qp);

/**
 * Whether the local work request at sq.cut is done and waits until copies that it ends have ended.
 * In no section or in one.
 */
bool iw_qp_waits_for_copies_locked(struct iw_qp *qp);

#endif

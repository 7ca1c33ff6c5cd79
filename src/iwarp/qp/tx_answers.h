/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's side of reads and atomics: the peer's requests wait here (irq) and are answered
 * in their order. Atomics are carried out on arrival, so that only their response waits.
 */
#ifndef ANYWARP_QP_TX_ANSWERS_H
#define ANYWARP_QP_TX_ANSWERS_H

#include "qp/qp.h"

/**
 * Checks a request and queues its answer. rx.lock.
 * @return IW_OK, READ_*, ATOMIC_ALIGN, OPCODE (atomic operation unknown), IRD_EXCEEDED
 */
int iw_answer_read(struct iw_qp *qp, const struct rdmap_read_request *r);
int iw_answer_atomic(struct iw_qp *qp, const struct rdmap_atomic_request *r);

/** Whether the next answer is cut in part: it must go on. tx.lock. */
bool iw_answer_begun(const struct iw_qp_tx *tx);
/** Cuts the next answer or goes on with it. tx.lock, in a section. @return IW_OK, or READ_* if it
 * was revoked or is gone */
enum iw_err iw_answer_cut_locked(struct iw_qp *qp, bool *whole);
/** Frees the places of answers that TCP has. tx.lock. */
void iw_answer_retire_locked(struct iw_qp_tx *tx);
/** Checks the sources of answers that are cut and unsent once more. tx.lock, in a section. */
enum iw_err iw_answer_revalidate_locked(struct iw_qp *qp);
/** Whether @p p, which cannot be read, is of such an answer; if so, explains that. tx.lock, in a
 * section. */
bool iw_answer_gone_locked(struct iw_qp *qp, const uint8_t *p);

#endif

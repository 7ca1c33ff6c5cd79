/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a QP died, in one English line of the log:
 *
 *     QP 0x01c2d3: RDMA Read, wr_id 0x7: peer sent a Terminate message: RDMAP, Remote Protection
 *     Error, Base or bounds violation (0/1/01), about the RDMA Read Request, MSN 1, for 8 bytes at
 *     0x7f00, key 0x0badcafe; 2 send and 5 receive work requests flushed
 *
 * QP number; the work request at fault, if it is one of this side's; the sentence of the error
 * table; the facts, which whoever finds an error notes with one of the functions below; how many
 * others were flushed, which get no line of their own. The facts are kept on the QP.
 *
 * The line is a warning, unless somebody wanted the end: then it is at level info. It is written
 * before the completions can be polled, so that a program that gives up at the first failed one
 * leaves it behind; so it is written with the locks of this QP, which is dead, held.
 */
#ifndef ANYWARP_QP_EXPLAIN_H
#define ANYWARP_QP_EXPLAIN_H

#include "qp/qp.h"

/*
 * Each notes the facts about @p err. The first call on a QP wins; they are part of the line if that
 * is the error which the QP dies of. rx.lock or tx.lock.
 */

void iw_qp_explain(struct iw_qp *qp, enum iw_err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** A refused access by the peer; in the section that it was refused in, as the next. */
void iw_qp_explain_access(struct iw_qp *qp, enum iw_err err, uint32_t stag, enum iw_use use,
                          uint64_t to, uint64_t len);
/** A refused access by a work request: entry @p k of its @p nsge, @p len bytes from @p offset on.
 */
void iw_qp_explain_sge(struct iw_qp *qp, enum iw_err err, enum iw_use use,
                       const struct ibv_sge *sge, uint32_t k, uint32_t nsge, uint64_t offset,
                       uint64_t len);

/** Writes the line of a QP that failed and is not flushed yet. rx.lock and tx.lock. */
void iw_qp_log_end_locked(struct iw_qp *qp);

/** Writes one for a work request at sq.head that stops its send queue, and forgets the facts, as
 * the QP lives on. tx.lock. */
void iw_qp_log_stop_locked(struct iw_qp *qp, enum iw_err err);

#endif

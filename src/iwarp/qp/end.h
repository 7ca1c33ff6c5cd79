/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a QP ends: the first cause is kept, a Terminate tells the peer, everything posted completes
 * once, the program and the CM get the news.
 *
 * The work request at fault has the status of the error table, every other one is flushed, in
 * posting order; vendor_err of them all is the number of the cause (enum iw_err). One line of the
 * log tells of it (explain.h).
 *
 * Like adapters we tell of the disconnection first: what is posted is flushed when the CM's event
 * is in its channel. Only an ESTABLISHED that is on its way itself may let both be behind.
 */
#ifndef ANYWARP_QP_END_H
#define ANYWARP_QP_END_H

#include "qp/qp.h"

/**
 * Whether the QP's own access flags allow the peer this. What the CM sets, 0 or remote write and
 * read, allows all: iWARP's CM knows no right to atomics.
 */
static inline bool iw_qp_allows(const struct iw_qp *qp, unsigned access)
{
    return qp->access == 0 || qp->access == (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) ||
           (qp->access & access) == access;
}

/** Whether a QP by number has nobody to send to, which is no error until its time is over. tx.lock.
 */
static inline bool iw_qp_is_stranded_locked(const struct iw_qp *qp)
{
    bool sends = qp->end.close == IWC_CLOSE_OPEN || qp->end.close == IWC_CLOSE_FLUSHING;
    return qp->ib && !qp->end.error && !(qp->tx.linked && sends);
}

/** Whether something is posted, or complete by its copy, that TCP has not. tx.lock. */
bool iw_qp_undone_locked(const struct iw_qp_tx *tx);

/** Notes that a QP by number has work that is not done, and no connection, if so. tx.lock. */
void iw_qp_strand_locked(struct iw_qp *qp, struct iw_wakes *w);

/**
 * The stream cannot go on: notes the cause, prepares the Terminate, state ERR. The flush happens in
 * iw_qp_settle(). Only the first call counts. tx.lock.
 * @param seg  the segment at fault, or NULL
 */
void iw_qp_fail_locked(struct iw_qp *qp, enum iw_err err, const struct ddp_seg *seg,
                       uint32_t ulpdu_len, struct iw_wakes *w);

/**
 * The peer's FIN. tx.lock.
 * @param unused  bytes in front of it that could not be used: those of an FPDU that is not whole,
 *                unless iw_qp_explain() was told otherwise
 */
void iw_qp_fin_locked(struct iw_qp *qp, uint32_t unused, struct iw_wakes *w);
/** TCP gave up with the negative errno @p error, 0 if unknown. tx.lock. */
void iw_qp_lost_locked(struct iw_qp *qp, int error, struct iw_wakes *w);
/** All that can be sent is with TCP: a close that waited for this goes on. tx.lock. */
void iw_qp_sent_locked(struct iw_qp *qp, struct iw_wakes *w);
/** The program asks for a close, or its time is up. tx.lock. */
void iw_qp_close_event_locked(struct iw_qp *qp, enum iwc_close_event event, struct iw_wakes *w);
/** The peer's Terminate. rx.lock. */
void iw_qp_on_terminate(struct iw_qp *qp, const struct terminate *t);

/** Completes everything if the QP has failed and that is not done yet. Call with no lock held. */
void iw_qp_settle(struct iw_qp *qp, struct iw_wakes *w);
/** As iw_qp_settle(), for a caller with rx.lock held. */
void iw_qp_settle_rx_locked(struct iw_qp *qp, struct iw_wakes *w);

/** Pins @p qp until @p w is given: the program may hear of its end before. rx.lock or tx.lock. */
static inline void iw_qp_pin(struct iw_qp *qp, struct iw_wakes *w)
{
    if (!w->qp)
        atomic_fetch_add(&qp->pins, 1);
    w->qp = qp;
}

/** Notes news for the CM of @p qp. rx.lock or tx.lock. */
static inline void iw_qp_note_news(struct iw_qp *qp, unsigned news, struct iw_wakes *w)
{
    iw_qp_pin(qp, w);
    w->cm |= news;
    w->life = qp->life;
}

/** Notes an asynchronous event of @p qp. rx.lock or tx.lock. */
static inline void iw_qp_note_event(struct iw_qp *qp, enum ibv_event_type event, struct iw_wakes *w)
{
    iw_qp_pin(qp, w);
    w->async |= 1u << event;
}

/**
 * Gives all signals, and unpins the QP that they are of; call with no lock held. Who works with a
 * QP's lock: qp/section.h.
 */
void iw_wakes_fire(struct iw_wakes *w);

#endif

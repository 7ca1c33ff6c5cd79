/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work with a QP: its lock is taken, what the work causes is noted, and when no lock is held any
 * more what was posted completes, if the QP has failed, and the signals are given.
 *
 *     struct iw_wakes w;
 *     iw_qp_enter(qp, &w);
 *     ...                        functions named _locked, which note in w
 *     iw_qp_leave(qp, &w);
 *
 * Call all of these with no other lock of a QP held. After iw_qp_leave() the program may have heard
 * of the QP's end and have destroyed it; who touches it afterwards has it pinned.
 */
#ifndef ANYWARP_QP_SECTION_H
#define ANYWARP_QP_SECTION_H

#include "qp/end.h"

/** Takes tx.lock. */
static inline void iw_qp_enter(struct iw_qp *qp, struct iw_wakes *w)
{
    *w = (struct iw_wakes){0};
    lock_get(&qp->tx.lock);
}

/**
 * The first half of iw_qp_leave(), if something is to do in between. A QP that has failed, or whose
 * CQs are to signal, stays pinned until the other half, and with it its CQs: what has completed may
 * be all that the program waited for.
 * @return whether it has failed, for the other
 */
static inline bool iw_qp_unlock(struct iw_qp *qp, struct iw_wakes *w)
{
    bool failed = qp->end.error && !qp->end.flushed;
    if (failed || iw_cq_is_to_wake(&w->cqs))
        iw_qp_pin(qp, w);
    lock_put(&qp->tx.lock);
    return failed;
}

static inline void iw_qp_finish(struct iw_qp *qp, struct iw_wakes *w, bool failed)
{
    if (failed)
        iw_qp_settle(qp, w);
    iw_wakes_fire(w);
}

static inline void iw_qp_leave(struct iw_qp *qp, struct iw_wakes *w)
{
    iw_qp_finish(qp, w, iw_qp_unlock(qp, w));
}

/* The same with rx.lock, under which tx.lock may be taken. */

static inline void iw_qp_enter_rx(struct iw_qp *qp, struct iw_wakes *w)
{
    *w = (struct iw_wakes){0};
    lock_get(&qp->rx.lock);
}

static inline void iw_qp_leave_rx(struct iw_qp *qp, struct iw_wakes *w)
{
    iw_qp_settle_rx_locked(qp, w);
    assert(!qp->rx.wakes.qp); /* else it stays pinned: iw_rx_leave() gives them */
    lock_put(&qp->rx.lock);
    iw_wakes_fire(w);
}

#endif

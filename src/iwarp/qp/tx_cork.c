/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_cork.h"

#include "engine/timer.h"
#include "qp/tx_cut.h"
#include "qp/tx_quantum.h"
#include "qp/tx_queue.h"

#define QUIET_MIN (256 * 1024) /* bytes sent since the peer was heard that make a stream */
#define CORK_MAX  (64 * 1024)  /* bytes that are enough */
#define CORK_MIN  (4 * 1024)   /* fewer at the time limit end the stream */
#define CORK_NS   250000

void iw_cork_pull_locked(struct iw_qp *qp)
{
    assert_held(&qp->sq_lock);
    qp->cork.on = false;
    qp->cork.quiet_from = qp->tx.sent_pos;
}

/** Only the one QP that this thread moves bytes of may stream: each that is corked has a batch. */
static bool streams_locked(struct iw_qp *qp)
{
    assert_held(&qp->sq_lock);
    return qp->linked && !qp->error && !qp->tx_hold && !qp->rtr && !qp->tx_blocked &&
           qp->irq_cut == qp->ird.tail && qp->tx.sent_pos - qp->cork.quiet_from >= QUIET_MIN &&
           !atomic_load_explicit(&qp->heard, memory_order_relaxed) &&
           iw_turn_bytes_locked(qp) == IW_TURN_MAX;
}

/** Whether what is corked has waited long. */
static bool late_locked(struct iw_qp *qp)
{
    uint64_t now = iw_now();
    assert_held(&qp->sq_lock);
    if (qp->tx.cut_pos == qp->tx.sent_pos)
        qp->cork.since = now;
    return now - qp->cork.since > CORK_NS;
}

bool iw_cork_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->sq_lock);
    qp->cork.on = streams_locked(qp);
    if (!qp->cork.on || qp->sq.cut == qp->sq.tail || qp->sq.tail - qp->sq.head < 2 ||
        !iw_qp_batch_locked(qp, IW_TURN_MAX))
        return false;
    if (late_locked(qp)) {
        if (qp->batch->unsent < CORK_MIN)
            iw_cork_pull_locked(qp);
        return false;
    }
    iw_copy_begin(qp->pd);
    bool all = iw_qp_cut_small_locked(qp, CORK_MAX);
    iw_copy_end();
    if (all) {
        qp->cork.copied_pos = qp->sq.ring[(qp->sq.tail - 2) & qp->sq.mask].end_pos;
        iw_sq_retire_locked(qp, w);
    }
    return all;
}

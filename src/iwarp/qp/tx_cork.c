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

void iw_cork_pull_locked(struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    tx->cork.on = false;
    tx->cork.quiet_from = tx->half.sent_pos;
}

/** Only the one QP that this thread moves bytes of may stream: each that is corked has a batch. */
static bool streams_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    return qp->tx.linked && !qp->end.error && !qp->tx.hold && !qp->tx.rtr && !qp->tx.blocked &&
           qp->tx.irq_cut == qp->tx.ird.tail &&
           qp->tx.half.sent_pos - qp->tx.cork.quiet_from >= QUIET_MIN &&
           !atomic_load_explicit(&qp->hints.heard, memory_order_relaxed) &&
           iw_turn_bytes_locked(&qp->tx) == IW_TURN_MAX;
}

/** Whether what is corked has waited long. */
static bool late_locked(struct iw_qp_tx *tx)
{
    uint64_t now = iw_now();
    assert_held(&tx->lock);
    if (tx->half.cut_pos == tx->half.sent_pos)
        tx->cork.since = now;
    return now - tx->cork.since > CORK_NS;
}

bool iw_cork_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    qp->tx.cork.on = streams_locked(qp);
    if (!qp->tx.cork.on || qp->tx.sq.cut == qp->tx.sq.tail || qp->tx.sq.tail - qp->tx.sq.head < 2 ||
        !iw_qp_batch_locked(&qp->tx, IW_TURN_MAX))
        return false;
    if (late_locked(&qp->tx)) {
        if (qp->tx.batch->unsent < CORK_MIN)
            iw_cork_pull_locked(&qp->tx);
        return false;
    }
    iw_copy_begin(qp->pd);
    bool all = iw_qp_cut_small_locked(qp, CORK_MAX);
    iw_copy_end();
    if (all) {
        qp->tx.cork.copied_pos = iw_sq_at(&qp->tx.sq, (qp->tx.sq.tail - 2))->end_pos;
        iw_sq_retire_locked(qp, w);
    }
    return all;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_cork.h"

#include "qp/pacing.h"
#include "qp/tx_cut.h"
#include "qp/tx_quantum.h"
#include "qp/tx_queue.h"

void iw_cork_pull_locked(struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    tx->cork.on = false;
    tx->cork.quiet_from = tx->half.sent_pos;
}

static struct iw_pace_facts facts_locked(struct iw_qp *qp, bool polled, uint64_t now)
{
    struct iw_qp_tx *tx = &qp->tx;
    assert_held(&tx->lock);
    if (tx->half.cut_pos == tx->half.sent_pos)
        tx->cork.since = now;
    return (struct iw_pace_facts){
        .polled = polled,
        .heard = atomic_load_explicit(&qp->hints.heard, memory_order_relaxed),
        .busy = !tx->linked || qp->end.error || tx->hold || tx->says || tx->blocked ||
                tx->irq_cut != tx->ird.tail,
        .quantum = iw_quantum_bytes_locked(tx),
        .quiet = tx->half.sent_pos - tx->cork.quiet_from,
        .posted = tx->sq.tail - tx->sq.head,
        .uncut = tx->sq.tail - tx->sq.cut,
        .corked = tx->batch ? tx->batch->unsent : 0,
        .corked_since = tx->cork.since,
    };
}

/** Completes what was posted, but for the last work request. @return false if it does not fit */
static bool cork_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (!iw_qp_batch_locked(&qp->tx, IW_PACE_QUANTUM_MAX))
        return false;
    iw_copy_begin(qp->pd);
    bool all = iw_qp_cut_small_locked(qp, IW_PACE_CORK_MAX);
    iw_copy_end();
    if (all) {
        qp->tx.cork.copied_pos = iw_sq_at(&qp->tx.sq, (qp->tx.sq.tail - 2))->end_pos;
        iw_sq_retire_locked(qp, w);
    }
    return all;
}

bool iw_cork_locked(struct iw_qp *qp, bool polled, uint64_t now, struct iw_wakes *w)
{
    if (qp->ib) /* where nothing completes by being copied */
        return false;
    struct iw_pace_facts f = facts_locked(qp, polled, now);
    struct iw_paced p = iw_pace_pass(&f, now);
    qp->tx.cork.on = p.stream;
    if (p.ends)
        iw_cork_pull_locked(&qp->tx);
    return p.what == IW_PACE_CORK && cork_locked(qp, w);
}

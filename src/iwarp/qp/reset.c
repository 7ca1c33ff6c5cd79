/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RESET of a QP that has, or had, a connection. It leaves like one that is destroyed, but drops
 * what was posted, and is then as new under the same number.
 */
#include "qp/reset.h"

#include "mem/mw.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/overrun.h"
#include "qp/rx_early.h"
#include "qp/tx_queue.h"

#include <stdlib.h>
#include <string.h>

void iw_qp_forget_locked(struct iw_qp *qp)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->rx.lock);
    assert_held(&qp->tx.lock);
    iw_grace_drop(&qp->tx.grace);
    sq->head = sq->cut = sq->tail;
    iw_early_drop(qp);
    atomic_store(&qp->rx.starved, false);
    if (qp->rx.recv.taken)
        iw_slots_release(qp->rq->slots, 1);
    qp->rx.recv.taken = false;
    iw_rq_clear(&qp->own_rq);
}

void iw_qp_reset_begin_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    qp->end.forgets = true;
    iw_qp_explain(qp, IW_ERR_RDMAP_LOCAL, "to be reset");
    iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, w);
    if (qp->silent) /* a responder may close without having been spoken to */
        qp->tx.hold = false;
    iw_qp_transmit_locked(qp, w);
}

static void renew_sending_locked(struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    free(tx->orq);
    free(tx->irq);
    tx->orq = NULL;
    tx->irq = NULL;
    tx->ord = tx->ird = (struct iw_depth){0};
    tx->irq_cut = 0;
    tx->irq_next = false;
    tx->half = (struct iwc_tx){0};
    tx->mss_check = tx->alone_from = 0;
    tx->cork = (struct iw_cork){0};
    tx->checked = (struct iw_checked){0};
    tx->singles = (struct iw_singles){0};
    tx->unflushed = 0;
    tx->blocked = tx->hold = tx->watched = false;
    tx->rx_paused = tx->rx_takes_in = tx->rx_ended = false;
    tx->retries = tx->says = 0;
    tx->sent_beyond = 0;
    iw_grace_init(&tx->grace);
}

static void renew_receiving_locked(struct iw_qp_rx *rx)
{
    assert_held(&rx->lock);
    rx->half = (struct iwc_rx){0};
    rx->staged = rx->staged_at = 0;
    rx->direct = (struct iw_direct){0};
    rx->writing = rx->written = 0;
    rx->recv = (struct iw_recv){0};
    rx->loss = (struct iw_loss){0};
    rx->recv_status = 0;
    rx->paused = rx->fin_seen = rx->rtr_first = rx->work = false;
    rx->stall = (struct iw_stall){0};
    rx->peer_qpn = 0;
    atomic_store(&rx->awaits, 0);
}

static void renew_queue(struct iw_rq *rq)
{
    lock_get(&rq->lock);
    rq->flushing = false;
    lock_put(&rq->lock);
    iw_rq_clear(rq);
}

static void renew_end(struct iw_qp_end *end)
{
    end->close = IWC_CLOSE_OPEN;
    end->term_queued = false;
    end->term_len = 0;
    end->untold = end->flushed = end->forgets = false;
    end->explained_error = IW_OK;
    memset(end->explanation, 0, sizeof(end->explanation));
    atomic_store(&end->explained, false);
    end->unmapped = false;
    atomic_store(&end->over, false);
    end->error = IW_OK;
}

static void renew_state_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    iw_qp_set_state_locked(qp, IBV_QPS_RESET);
    qp->access = 0;
    qp->attr = (struct ibv_qp_attr){0};
    qp->same_host = qp->ext = qp->was_linked = qp->silent = qp->fin_known = false;
    qp->ib = false;
    memset(&qp->rings, 0, sizeof(qp->rings));
    atomic_store(&qp->hints.heard, false);
    atomic_store(&qp->hints.looked_heard, false);
    iw_stats_set(&qp->stats->error, 0);
    qp->life++;
    renew_end(&qp->end);
}

void iw_qp_unmeet_locked(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    assert_held(&qp->tx.lock);
    if (!qp->ib || !qp->silent || qp->rx.half.fpdus || qp->end.error)
        return;
    renew_sending_locked(&qp->tx);
    renew_receiving_locked(&qp->rx);
    renew_end(&qp->end);
    qp->was_linked = qp->silent = qp->fin_known = false;
    qp->life++; /* what is still told of that connection is of no matter */
}

void iw_qp_purge(struct iw_qp *qp)
{
    iw_cq_purge(qp->send_cq, qp->pub.qp_num);
    iw_cq_purge(qp->recv_cq, qp->pub.qp_num);
}

void iw_qp_reset_end(struct iw_qp *qp)
{
    iw_qp_leave_owner(qp);
    iw_deferred_wait(&qp->tx.deferred);
    iw_mw_leave(&qp->accessor);
    lock_get(&qp->rx.lock);
    lock_get(&qp->tx.lock);
    bool purges = qp->ib || qp->datagrams;
    if (qp->end.forgets) { /* else another thread has done it all */
        renew_sending_locked(&qp->tx);
        qp->tx.sq.drain = 0;
        qp->tx.sq.tell_drained = false;
        renew_state_locked(qp); /* so that no receive is posted behind those that are cleared */
        renew_receiving_locked(&qp->rx);
        memset(&qp->acks, 0, sizeof(qp->acks));
        renew_queue(&qp->own_rq);
    }
    lock_put(&qp->tx.lock);
    lock_put(&qp->rx.lock);
    if (purges)
        iw_qp_purge(qp);
    iw_cqs_check(qp);
}

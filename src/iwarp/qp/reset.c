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
    struct iw_sq *sq = &qp->sq;
    assert_held(&qp->rx_lock);
    assert_held(&qp->sq_lock);
    iw_grace_drop(&qp->grace);
    sq->head = sq->cut = sq->tail;
    iw_held_drop(qp);
    atomic_store(&qp->starved, false);
    if (qp->recv.taken)
        iw_slots_release(qp->rq->slots, 1);
    qp->recv.taken = false;
    iw_rq_clear(&qp->own_rq);
}

void iw_qp_reset_begin_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->sq_lock);
    qp->forgets = true;
    iw_qp_explain(qp, IW_ERR_RDMAP_LOCAL, "to be reset");
    iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, w);
    if (qp->silent) /* a responder may close without having been spoken to */
        qp->tx_hold = false;
    iw_qp_transmit_locked(qp, w);
}

static void renew_sending_locked(struct iw_qp *qp)
{
    assert_held(&qp->sq_lock);
    free(qp->orq);
    free(qp->irq);
    qp->orq = NULL;
    qp->irq = NULL;
    qp->ord = qp->ird = (struct iw_depth){0};
    qp->irq_cut = 0;
    qp->irq_turn = false;
    qp->sq.drain = 0;
    qp->sq.tell_drained = false;
    qp->tx = (struct iwc_tx){0};
    qp->mss_check = qp->alone_from = 0;
    qp->cork = (struct iw_cork){0};
    qp->looked.pos = 0;
    qp->looked.passes = 0;
    atomic_store(&qp->looked.heard, false);
    qp->unflushed = 0;
    atomic_store(&qp->heard, false);
    qp->tx_blocked = qp->tx_hold = qp->term_queued = qp->watched = false;
    qp->retries = qp->rtr = qp->term_len = 0;
    qp->sent_beyond = 0;
    iw_grace_init(&qp->grace);
}

static void renew_receiving_locked(struct iw_qp *qp)
{
    assert_held(&qp->rx_lock);
    qp->rx = (struct iwc_rx){0};
    qp->staged = qp->staged_at = 0;
    qp->writing = qp->written = 0;
    qp->recv = (struct iw_recv){0};
    qp->recv_status = 0;
    qp->paused = qp->fin_seen = qp->silent = qp->rtr_first = qp->work = false;
    qp->rx_paused = qp->rx_takes_in = qp->rx_ended = qp->fin_known = false;
    qp->stall = (struct iw_stall){0};
    qp->peer_qpn = 0;
    atomic_store(&qp->awaits, 0);
    lock_get(&qp->own_rq.lock);
    qp->own_rq.flushing = false;
    lock_put(&qp->own_rq.lock);
    iw_rq_clear(&qp->own_rq);
}

static void renew_state_locked(struct iw_qp *qp)
{
    assert_held(&qp->sq_lock);
    iw_qp_set_state_locked(qp, IBV_QPS_RESET);
    qp->access = 0;
    qp->attr = (struct ibv_qp_attr){0};
    qp->close = IWC_CLOSE_OPEN;
    qp->same_host = qp->ext = qp->was_linked = false;
    qp->untold = qp->flushed = qp->forgets = false;
    qp->explained_error = IW_OK;
    memset(qp->explanation, 0, sizeof(qp->explanation));
    atomic_store(&qp->explained, false);
    atomic_store(&qp->over, false);
    iw_stats_set(&qp->stats->error, 0);
    qp->life++;
    qp->error = IW_OK;
}

void iw_qp_reset_end(struct iw_qp *qp)
{
    iw_qp_leave(qp);
    iw_dirty_wait(&qp->dirty);
    iw_mw_leave(&qp->accessor);
    lock_get(&qp->rx_lock);
    lock_get(&qp->sq_lock);
    if (qp->forgets) { /* else another thread has done it all */
        renew_sending_locked(qp);
        renew_state_locked(qp); /* so that no receive is posted behind those that are cleared */
        renew_receiving_locked(qp);
    }
    lock_put(&qp->sq_lock);
    lock_put(&qp->rx_lock);
    iw_cqs_check(qp);
}

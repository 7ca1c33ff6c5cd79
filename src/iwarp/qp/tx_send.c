/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmission: batches of FPDUs are filled and handed to TCP. */
#include "engine/engine.h"
#include "env/guard.h"
#include "env/pool.h"
#include "qp/ack.h"
#include "qp/end.h"
#include "qp/link.h"
#include "qp/rings.h"
#include "qp/tx_answers.h"
#include "qp/tx_cut.h"
#include "qp/tx_quantum.h"
#include "qp/tx_queue.h"

#include <errno.h>

#define RETRIES       64          /* of pollers without a byte sent, then epoll tells */
#define MSS_CHECK_MAX (16u << 20) /* bytes between two looks at the segment size */

static void check_mss_locked(struct iw_qp *qp)
{
    if (qp->tx.half.cut_pos < qp->tx.mss_check)
        return;
    iw_qp_set_mulpdu_locked(qp);
    uint64_t step =
        qp->tx.half.cut_pos < MSS_CHECK_MAX ? qp->tx.half.cut_pos + 65536 : MSS_CHECK_MAX;
    qp->tx.mss_check = qp->tx.half.cut_pos + step;
}

static void release_batch_locked(struct iw_qp_tx *tx)
{
    iw_pool_put(IW_POOL_BATCH, tx->batch);
    tx->batch = NULL;
}

struct owning {
    struct iwc_batch *own;
    const struct iwc_batch *from;
};

static void copy_unsent(void *arg)
{
    const struct owning *o = arg;
    iwc_batch_copy(o->own, o->from);
}

/** @return false if memory that it points to is gone */
static bool copy_batch(struct iwc_batch *own, const struct iwc_batch *from)
{
    struct owning o = {.own = own, .from = from};
    return !iw_guarded(copy_unsent, &o, from->iov + from->first, from->niov - from->first);
}

void iw_qp_own_unsent_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (!qp->tx.batch || !qp->tx.batch->gathered)
        return;
    struct iwc_batch *own = qp->tx.linked ? iw_pool_get(IW_POOL_BATCH) : NULL;
    iw_copy_begin(qp->pd);
    bool copied = own && !iw_qp_revalidate_locked(qp) && copy_batch(own, qp->tx.batch);
    iw_copy_end();
    release_batch_locked(&qp->tx);
    if (copied)
        qp->tx.batch = own;
    else
        iw_pool_put(IW_POOL_BATCH, own);
    if (!copied && qp->tx.linked)
        iw_qp_lost_locked(qp, 0, w);
}

/**
 * TCP is full. It has room long before it says so: pollers try again, for as long as it takes bytes
 * now and then.
 */
static void leave_to_pollers_locked(struct iw_qp_tx *tx, bool moved)
{
    assert_held(&tx->lock);
    if (moved)
        tx->retries = RETRIES;
    else if (tx->retries)
        tx->retries--;
    if (!iw_engine_leased(iw_home_shard(&tx->deferred.home)))
        tx->retries = 0;
    if (tx->retries)
        iw_deferred_again(&tx->deferred);
}

/** How a batch fared. */
enum fate {
    MORE,   /* there may be another one */
    DONE,   /* what can go now is with TCP */
    WAITS,  /* as DONE, but a local work request waits for copies to end */
    STOPS,  /* TCP is full, or lost */
    BROKEN, /* so is the stream: all is done that has to be */
};

/** The FPDU cannot be finished: no Terminate can follow either. */
static enum fate break_off_locked(struct iw_qp *qp, enum iw_err err, struct iw_wakes *w)
{
    release_batch_locked(&qp->tx);
    iw_qp_fail_locked(qp, err, NULL, 0, w);
    iw_qp_lost_locked(qp, 0, w);
    return BROKEN;
}

/** What is next when TCP has taken a batch of @p bytes. */
static enum fate next_locked(struct iw_qp *qp, uint64_t bytes)
{
    struct iw_qp_tx *tx = &qp->tx;
    assert_held(&tx->lock);
    if (bytes) {
        bool left = qp->end.term_queued || tx->sq.cut != tx->sq.tail ||
                    tx->irq_cut != tx->ird.tail || iw_ack_due_locked(qp);
        return left ? MORE : DONE;
    }
    /* there were local operations at most */
    if (!iw_qp_waits_for_copies_locked(qp))
        return DONE;
    return iw_grace_ask(&tx->grace, &tx->deferred) ? MORE : WAITS;
}

/**
 * Fills the batch, or makes sure of the one that TCP had no room for, and hands it to TCP: in one
 * section, as it may point into the program's memory. Its turn (tx_taken.h) ends when what TCP took
 * is completed.
 * @param r  [out] as iwc_tx_send(), unless BROKEN
 */
static enum fate send_batch_locked(struct iw_qp *qp, int *r, struct iw_wakes *w)
{
    struct iw_qp_tx *tx = &qp->tx;
    uint64_t before = tx->half.sent_pos;
    bool kept = tx->blocked;
    enum iw_err err = IW_OK;
    if (!kept)
        check_mss_locked(qp);
    iw_copy_begin(qp->pd);
    if (!kept)
        err = iw_qp_fill_locked(qp);
    else if (tx->batch->gathered)
        err = iw_qp_revalidate_locked(qp);
    if (kept && err) {
        iw_copy_end();
        return break_off_locked(qp, err, w);
    }
    iw_sent_begin(&qp->sent);
    *r = iwc_tx_send(&tx->half, tx->batch, qp->stream);
    iw_copy_end();
    iw_rings_look(qp, w);
    tx->blocked = *r == -EAGAIN;
    iw_sq_retire_locked(qp, w);
    iw_sent_end(&qp->sent);
    iw_answer_retire_locked(tx);
    if (*r == -EFAULT)
        return break_off_locked(qp, iw_qp_gone_locked(qp), w);
    if (err)
        iw_qp_fail_locked(qp, err, NULL, 0, w);
    return *r ? STOPS : next_locked(qp, tx->half.sent_pos - before);
}

void iw_qp_transmit_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_qp_tx *tx = &qp->tx;
    assert_held(&tx->lock);
    if (qp->datagrams) {
        qp->datagrams->transmit(qp, w);
        return;
    }
    if (!tx->linked || tx->hold)
        return;
    uint64_t before = tx->half.sent_pos;
    size_t quantum = iw_quantum_bytes_locked(tx);
    enum fate fate;
    int r;
    do {
        if (!iw_qp_batch_locked(tx, quantum)) {
            iw_deferred_push(&tx->deferred);
            return;
        }
        fate = send_batch_locked(qp, &r, w);
        if (fate == BROKEN)
            return;
    } while (fate == MORE && tx->half.sent_pos - before < quantum);
    bool moved = tx->half.sent_pos != before;
    tx->unflushed = 0;
    if (fate == MORE)
        iw_deferred_again(&tx->deferred);
    if (tx->blocked)
        leave_to_pollers_locked(tx, moved);
    else
        release_batch_locked(tx);
    if (!tx->watched && moved) {
        tx->watched = true;
        iw_qp_note_news(qp, IW_QP_NEWS_SENDS, w);
    }
    if (fate == STOPS && r != -EAGAIN)
        iw_qp_lost_locked(qp, r, w);
    else if (fate == DONE && !qp->end.term_queued)
        iw_qp_sent_locked(qp, w);
    iw_qp_want_locked(qp);
}

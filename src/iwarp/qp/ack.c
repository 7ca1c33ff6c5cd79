/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/ack.h"

#include "qp/end.h"
#include "qp/explain.h"
#include "qp/qp.h"
#include "qp/rx_early.h"
#include "qp/tx_queue.h"

#include <inttypes.h>

void iw_acks_init(struct iw_acks *a)
{
    atomic_store_explicit(&a->placed, 0, memory_order_relaxed);
    a->told = a->received = 0;
    a->begun = a->work = a->retry_told = false;
    a->notes = 0;
    a->peer_rnr_retry = IW_RNR_FOR_EVER;
}

static uint64_t placed(const struct iw_acks *a)
{
    return atomic_load_explicit(&a->placed, memory_order_acquire);
}

/** The first message came in: a program that waits for it in RTR may go to RTS. */
static void communicate(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    if (qp->tx.state == IBV_QPS_RTR) {
        iw_qp_note_event(qp, IBV_EVENT_COMM_EST, &qp->rx.wakes);
    }
    lock_put(&qp->tx.lock);
}

bool iw_acks_advance(struct iw_qp *qp)
{
    struct iw_acks *a = &qp->acks;
    assert_held(&qp->rx.lock);
    if (!qp->ib || !a->work)
        return false;
    if (!a->begun)
        communicate(qp);
    a->begun = true;
    uint64_t offset = iw_early_any(&qp->rx) ? iw_early_offset(&qp->rx) : qp->rx.half.offset;
    a->work = iw_early_any(&qp->rx);
    bool moved = offset != placed(a) && !qp->uc;
    atomic_store_explicit(&a->placed, offset, memory_order_release);
    return moved;
}

void iw_acks_failed(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    qp->acks.work = true;
    iw_acks_advance(qp);
}

/** Whether bytes may still be sent: behind a Terminate none. */
static bool sends_locked(const struct iw_qp *qp)
{
    enum iwc_close_state s = qp->end.close;
    assert_held(&qp->tx.lock);
    return qp->tx.linked && (s == IWC_CLOSE_OPEN || s == IWC_CLOSE_FLUSHING ||
                             (s == IWC_CLOSE_TERM && qp->end.term_queued));
}

bool iw_ack_due_locked(const struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    return qp->ib && !qp->uc && qp->acks.told != placed(&qp->acks) && sends_locked(qp);
}

/** @return whether there was room */
static bool cut_locked(struct iw_qp *qp, enum iwc_note note, uint64_t offset)
{
    struct iwc_msg m = {.opcode = RDMAP_WRITE, .stag = note, .to = offset};
    assert_held(&qp->tx.lock);
    return iwc_tx_cut(&qp->tx.half, qp->tx.batch, &m);
}

void iw_acks_cut_locked(struct iw_qp *qp, bool work)
{
    struct iw_acks *a = &qp->acks;
    assert_held(&qp->tx.lock);
    if (iw_ack_due_locked(qp)) {
        uint64_t offset = placed(a);
        if (cut_locked(qp, IWC_NOTE_ACK, offset))
            a->told = offset;
    }
    if (work && !a->retry_told && qp->tx.state >= IBV_QPS_RTS)
        a->retry_told = cut_locked(qp, IWC_NOTE_RETRY, qp->attr.rnr_retry);
}

void iw_acked_locked(struct iw_qp_tx *tx, struct iw_acks *a, uint64_t offset)
{
    assert_held(&tx->lock);
    if (offset > a->received)
        a->received = offset;
}

static int on_ack(struct iw_qp *qp, uint64_t offset)
{
    lock_get(&qp->tx.lock);
    uint64_t sent = qp->tx.half.sent_pos;
    if (offset <= sent) {
        iw_acked_locked(&qp->tx, &qp->acks, offset);
        iw_sq_retire_locked(qp, &qp->rx.wakes);
    }
    lock_put(&qp->tx.lock);
    if (offset <= sent)
        return IW_OK;
    iw_qp_explain(qp, IW_ERR_TAGGED_BOUNDS,
                  "%" PRIu64 " bytes are acknowledged, %" PRIu64 " were sent", offset, sent);
    return IW_ERR_TAGGED_BOUNDS;
}

int iw_on_note(struct iw_qp *qp, const struct ddp_seg *seg, bool *is_note)
{
    assert_held(&qp->rx.lock);
    *is_note = qp->ib && (seg->stag == IWC_NOTE_ACK || seg->stag == IWC_NOTE_RETRY);
    if (!*is_note)
        return IW_OK;
    qp->acks.notes++;
    if (seg->stag == IWC_NOTE_ACK)
        return on_ack(qp, seg->to);
    qp->acks.peer_rnr_retry = seg->to & 7;
    return IW_OK;
}

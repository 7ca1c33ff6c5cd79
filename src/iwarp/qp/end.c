/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/end.h"

#include "common/usdt.h"
#include "device/async.h"
#include "env/error_text.h"
#include "env/pool.h"
#include "observe/record.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/reset.h"
#include "qp/rx_place.h"
#include "qp/rx_shared.h"
#include "qp/section.h"
#include "qp/tx_queue.h"
#include "qp/tx_requests.h"
#include "wire/opcode.h"
#include "wire/terminate_text.h"
#include "wire/text.h"

#include <string.h>

/**
 * The event that an error raises. By number it is the responder's alone, whose receives do not tell
 * of it; a requester has its completion.
 */
static enum iw_event event_of(const struct iw_qp *qp, enum iw_err err)
{
    const struct iw_err_info *info = iw_err_info(err);
    if (!qp->ib && !qp->datagrams)
        return info->event;
    bool local = info->layer == TERM_RDMAP && info->etype == 0;
    if (local && err != IW_ERR_CQ_OVERRUN)
        return IW_EVENT_NONE;
    bool request = info->layer != TERM_MPA && info->event == IW_EVENT_QP_FATAL;
    return request && !local ? IW_EVENT_QP_REQ_ERR : info->event;
}

static void note_locked(struct iw_qp *qp, enum iw_err err, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (qp->end.error)
        return;
    qp->end.error = err;
    iw_stats_set(&qp->stats->error, (uint8_t)err);
    USDT3(error, qp->pub.qp_num, err, iw_err_info(err)->text);
    iw_record_note(FAILURE, qp->pub.qp_num, err);
    atomic_store(&qp->end.over, true);
    iw_qp_set_state_locked(qp, IBV_QPS_ERR);
    enum iw_event event = event_of(qp, err);
    if (event != IW_EVENT_NONE)
        iw_qp_note_event(qp, (enum ibv_event_type)event, w);
}

/** Our FIN is the last: what is unsent, because the peer takes no more, stays so. */
static void stop_sending_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    iw_pool_put(IW_POOL_BATCH, qp->tx.batch);
    qp->tx.batch = NULL;
    qp->end.term_queued = qp->tx.blocked = false;
    iw_qp_want_locked(qp);
    qp->stream->ops->shutdown(qp->stream);
}

void iw_qp_close_event_locked(struct iw_qp *qp, enum iwc_close_event event, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (!qp->tx.linked)
        return;
    struct iwc_close_step step = iwc_close_step(qp->end.close, event);
    unsigned news = 0;
    assert(!(step.actions & IWC_CLOSE_ILLEGAL));
    qp->end.close = step.next;
    if (step.actions & IWC_CLOSE_SEND_TERM)
        qp->end.term_queued = true;
    if (step.actions & IWC_CLOSE_SEND_FIN)
        stop_sending_locked(qp);
    if (step.actions & IWC_CLOSE_FAIL) {
        /* One by number knows of no peer that goes, and a thread of it of no exit(). */
        if (!qp->ib)
            note_locked(qp, IW_ERR_LLP_CLOSED, w);
        qp->end.untold = qp->cm;
        news = IW_QP_NEWS_DISCONNECTED;
    }
    if (step.actions & IWC_CLOSE_RELEASE) {
        news |= IW_QP_NEWS_CLOSED | (step.actions & IWC_CLOSE_RESET ? IW_QP_NEWS_RESET : 0);
        qp->tx.linked = false;
    }
    iw_qp_note_news(qp, news, w);
}

void iw_qp_fail_locked(struct iw_qp *qp, enum iw_err err, const struct ddp_seg *seg,
                       uint32_t ulpdu_len, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (qp->end.error)
        return;
    note_locked(qp, err, w);
    if (!qp->tx.linked)
        return;
    struct terminate t;
    bool receives = qp->ib && seg && iw_err_info(err)->status == IBV_WC_LOC_PROT_ERR;
    terminate_from_error(&t, receives ? IW_ERR_OPERATION : err, seg, ulpdu_len);
    qp->end.term_len = (uint8_t)terminate_encode(qp->end.term, &t);
    iw_qp_close_event_locked(qp, IWC_CLOSE_EV_ERROR, w);
}

bool iw_qp_undone_locked(const struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    return tx->sq.tail != tx->sq.head || tx->cork.copied_pos > tx->half.sent_pos;
}

void iw_qp_strand_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    if (iw_qp_is_stranded_locked(qp) && iw_qp_undone_locked(&qp->tx))
        iw_qp_note_news(qp, IW_QP_NEWS_STRANDED, w);
}

void iw_qp_fin_locked(struct iw_qp *qp, uint32_t unused, struct iw_wakes *w)
{
    bool undone = iw_qp_undone_locked(&qp->tx);
    if (!qp->ib && qp->end.close == IWC_CLOSE_OPEN && (unused || undone)) {
        if (unused)
            iw_qp_explain(qp, IW_ERR_LLP_LOST, "the peer closed it %u bytes into an FPDU", unused);
        else
            iw_qp_explain(qp, IW_ERR_LLP_LOST, "the peer closed it, work is not done");
        note_locked(qp, IW_ERR_LLP_LOST, w);
    }
    iw_qp_stop_reading_locked(qp);
    if (!iwc_close_may(qp->end.close, IWC_CLOSE_EV_FIN))
        return;
    iw_qp_close_event_locked(qp, IWC_CLOSE_EV_FIN, w);
    if (qp->ib && qp->silent) /* nothing waits for it to begin any more */
        qp->tx.hold = false;
    iw_qp_transmit_locked(qp, w);
    iw_qp_strand_locked(qp, w);
}

void iw_qp_lost_locked(struct iw_qp *qp, int error, struct iw_wakes *w)
{
    if (error) {
        char text[IW_ERROR_TEXT_MAX];
        iw_error_text(-error, text);
        iw_qp_explain(qp, IW_ERR_LLP_LOST, "%s", text);
    }
    if (qp->tx.linked && !qp->ib)
        note_locked(qp, IW_ERR_LLP_LOST, w);
    iw_qp_close_event_locked(qp, IWC_CLOSE_EV_LOST, w);
    iw_qp_strand_locked(qp, w);
}

void iw_qp_sent_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    if (iwc_close_may(qp->end.close, IWC_CLOSE_EV_SENT))
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_SENT, w);
}

/** Names what the peer may not know, if it says that of an opcode and does not quote which. */
static void name_opcodes_locked(const struct iw_qp *qp, const struct terminate *t, char *text,
                                size_t size)
{
    if (t->has_ddp || iw_err_from_terminate(t->layer, t->etype, t->code) != IW_ERR_OPCODE)
        return;
    const char *before = "; sent beyond RFC 5040: ";
    for (unsigned i = 0; i < RDMAP_OPCODES; i++) {
        if (!(qp->tx.sent_beyond & 1u << i))
            continue;
        text_add(text, size, "%s%s", before, rdmap_ops[i].name);
        before = ", ";
    }
}

/** DDP has one code for a Write to a key that there is not, and to one without the right. */
static void say_what_it_hides(const struct terminate *t, char *text, size_t size)
{
    if (iw_err_from_terminate(t->layer, t->etype, t->code) == IW_ERR_TAGGED_STAG)
        text_add(text, size, "; it has no such key, or that gives no remote write: its log tells");
}

/** What InfiniBand calls that. @return 0: the peer's QP has failed by no fault of ours */
static enum ibv_wc_status refusal(const struct terminate *t)
{
    enum iw_err err = iw_err_from_terminate(t->layer, t->etype, t->code);
    if (err == IW_ERR_UNTAGGED_NO_BUFFER)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    if (err == IW_ERR_UNTAGGED_TOO_LONG)
        return IBV_WC_REM_INV_REQ_ERR;
    enum ibv_wc_status status = iw_err_info(err)->status;
    return status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_GENERAL_ERR ? 0 : status;
}

/** Whether a QP by number does not hear of it: its peer has failed, and what is posted waits. */
static bool goes_unheard_locked(const struct iw_qp *qp, const struct terminate *t)
{
    assert_held(&qp->tx.lock);
    return qp->ib && (qp->uc || !refusal(t) || !iw_qp_undone_locked(&qp->tx));
}

static void peer_refused_locked(struct iw_qp *qp, const struct terminate *t)
{
    char text[sizeof(qp->end.explanation)];
    assert_held(&qp->tx.lock);
    if (qp->ib)
        iw_sq_blame_at_locked(&qp->tx.sq, qp->acks.received, refusal(t));
    else
        iw_request_blame_locked(&qp->tx, t);
    terminate_describe(t, text, sizeof(text));
    name_opcodes_locked(qp, t, text, sizeof(text));
    say_what_it_hides(t, text, sizeof(text));
    iw_qp_explain(qp, IW_ERR_PEER_TERMINATE, "%s", text);
    note_locked(qp, IW_ERR_PEER_TERMINATE, &qp->rx.wakes);
}

void iw_qp_on_terminate(struct iw_qp *qp, const struct terminate *received)
{
    struct terminate t = *received;
    if (!qp->silent || qp->rx.half.fpdus)
        terminate_after_setup(&t);
    lock_get(&qp->tx.lock);
    if (!goes_unheard_locked(qp, &t))
        peer_refused_locked(qp, &t);
    if (iwc_close_may(qp->end.close, IWC_CLOSE_EV_PEER_TERM))
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_PEER_TERM, &qp->rx.wakes);
    iw_qp_strand_locked(qp, &qp->rx.wakes);
    lock_put(&qp->tx.lock);
}

/* ---- settle ---- */

void iw_qp_settle_rx_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->rx.lock);
    if (!atomic_load(&qp->end.over)) /* whoever sets it settles afterwards */
        return;
    lock_get(&qp->tx.lock);
    if (qp->end.error && !qp->end.flushed && !qp->end.untold) {
        qp->end.flushed = true;
        iw_qp_transmit_locked(qp, w); /* the Terminate, and what was cut before it */
        iw_qp_own_unsent_locked(qp, w);
        if (!qp->end.forgets)
            iw_sq_finish_local_locked(qp, w);
        iw_qp_log_end_locked(qp);
        if (qp->end.forgets) {
            iw_qp_forget_locked(qp);
        } else {
            iw_sq_flush_locked(qp, w);
            iw_recv_flush(qp, w);
        }
    }
    lock_put(&qp->tx.lock);
}

void iw_qp_settle(struct iw_qp *qp, struct iw_wakes *w)
{
    lock_get(&qp->rx.lock);
    iw_qp_settle_rx_locked(qp, w);
    lock_put(&qp->rx.lock);
}

/* ---- wakes ---- */

/** Not the CM's. */
#define OF_NUMBER (IW_QP_NEWS_STRANDED | IW_QP_NEWS_NOT_READY)

static void tell_cm(struct iw_qp *qp, uint32_t life, unsigned news)
{
    const struct iw_qp_owner *owner = atomic_load(&qp->owner);
    if (news & OF_NUMBER)
        qp->dial_news(qp, news);
    if (owner && (news & ~(unsigned)OF_NUMBER))
        owner->news(qp, life, news);
}

void iw_wakes_fire(struct iw_wakes *w)
{
    iw_cq_wake(&w->cqs);
    if (w->srq_limit) {
        struct ibv_async_event ev = {.element.srq = &w->srq_limit->pub,
                                     .event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
        iw_async_raise(iw_context(w->srq_limit->pub.context), &ev,
                       &w->srq_limit->async_events_read);
    }
    for (unsigned bits = w->async; bits; bits &= bits - 1) {
        struct ibv_async_event ev = {.element.qp = &w->qp->pub,
                                     .event_type = (enum ibv_event_type)__builtin_ctz(bits)};
        iw_async_raise(iw_context(w->qp->pub.context), &ev, &w->qp->async_events_read);
    }
    if (w->cm)
        tell_cm(w->qp, w->life, w->cm);
    if (w->qp)
        atomic_fetch_sub(&w->qp->pins, 1);
}

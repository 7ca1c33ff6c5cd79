/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_place.h"

#include "cq/counter.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/rx_direct.h"
#include "qp/rx_early.h"
#include "qp/rx_late.h"
#include "qp/rx_scatter.h"
#include "qp/rx_stream.h"
#include "qp/section.h"
#include "wire/opcode.h"
#include "wire/range.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void iw_recv_complete(struct iw_qp *qp, const struct ibv_wc *wc, bool solicited, struct iw_wakes *w)
{
    struct iw_cqe cqe = {.wc = *wc, .solicited = solicited};
    cqe.wc.wr_id = qp->rx.recv.wr_id;
    cqe.wc.qp_num = qp->pub.qp_num;
    cqe.slots = qp->rq->slots; /* held since the receive was taken */
    qp->rx.recv.taken = false;
    iw_counted(&qp->counters, IBV_QP_ATTACH_COMP_CNTR_OP_RECV, wc->status, wc->byte_len);
    iw_cq_add(qp->recv_cq, &cqe, &w->cqs);
}

static void complete_send(struct iw_qp *qp, const struct ddp_seg *seg, uint64_t bytes)
{
    struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = (uint32_t)bytes};
    bool solicited = rdmap_ops[seg->opcode].solicited;
    if (rdmap_ops[seg->opcode].invalidate) {
        wc.wc_flags = IBV_WC_WITH_INV;
        wc.invalidated_rkey = seg->inval_stag;
    } else if (seg->opcode == RDMAP_SEND_IMM) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = qp->rx.recv.imm;
        solicited = qp->rx.recv.solicited;
    }
    iw_sent_before(&qp->sent);
    iw_recv_complete(qp, &wc, solicited, &qp->rx.wakes);
}

/** The data of a segment: a Send with immediate begins with a header of its own. */
static void data_of(struct iw_qp *qp, const struct ddp_seg *seg, const uint8_t **p, uint32_t *len,
                    uint64_t *at)
{
    *p = seg->payload;
    *len = seg->len;
    *at = seg->mo;
    if (seg->opcode != RDMAP_SEND_IMM)
        return;
    if (seg->mo == 0) {
        memcpy(&qp->rx.recv.imm, seg->payload, sizeof(qp->rx.recv.imm));
        qp->rx.recv.solicited = seg->payload[4] & 1;
        *p += RDMAP_SEND_IMM_HDR;
        *len -= RDMAP_SEND_IMM_HDR;
    } else {
        *at -= RDMAP_SEND_IMM_HDR;
    }
}

static enum iw_err invalidate(struct iw_qp *qp, const struct ddp_seg *seg)
{
    lock_get(&qp->tx.lock);
    enum iw_err err = iw_region_invalidate_by_peer(&qp->accessor, seg->inval_stag);
    lock_put(&qp->tx.lock);
    if (err)
        iw_qp_explain(qp, err, "%s, key 0x%08" PRIx32, rdmap_ops[seg->opcode].name,
                      seg->inval_stag);
    return err;
}

/** The rest of a Send of UC is dropped. @return IW_OK */
static int lose(struct iw_qp *qp, const struct ddp_seg *seg)
{
    qp->rx.loss.send = !seg->last;
    return IW_OK;
}

/** Whether a segment is of a Send that is dropped. */
static bool is_lost(struct iw_qp *qp, const struct ddp_seg *seg)
{
    bool lost = qp->rx.loss.send && seg->mo != 0;
    qp->rx.loss.send = lost && !seg->last;
    return lost;
}

int iw_recv_place(struct iw_qp *qp, const struct ddp_seg *seg)
{
    const uint8_t *p;
    uint32_t len;
    uint64_t at;
    enum iw_err err = IW_OK;

    assert_held(&qp->rx.lock);
    if (is_lost(qp, seg))
        return IW_OK;
    if (!qp->rx.recv.taken && !iw_rq_pop(qp, &qp->rx.wakes))
        return qp->rx.loss.always ? lose(qp, seg) : IWC_HOLD;
    qp->rx.loss.always = false;
    data_of(qp, seg, &p, &len, &at);
    uint64_t room = iw_sge_bytes(qp->rx.recv.sge, qp->rx.recv.nsge);
    if (!range_fits(room, at, len)) {
        err = IW_ERR_UNTAGGED_TOO_LONG;
        if (qp->uc) /* which keeps the receive for the next one */
            return lose(qp, seg);
        iw_qp_explain(qp, err, "%s of %s%" PRIu64 " bytes, receive of %" PRIu64,
                      rdmap_ops[seg->opcode].name, seg->last ? "" : "more than ", at + len, room);
    }
    if (!err)
        err = iw_scatter(qp, IW_USE_RECEIVE, qp->rx.recv.sge, qp->rx.recv.nsge, at, p, len);
    if (!err && seg->last && rdmap_ops[seg->opcode].invalidate) {
        err = invalidate(qp, seg);
    }
    if (err) {
        qp->rx.recv_status = (uint8_t)iw_err_info(err)->status;
        return err;
    }
    if (seg->last)
        complete_send(qp, seg, at + len);
    return IW_OK;
}

bool iw_recv_find(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t len, struct iw_direct *d)
{
    struct iw_recv *recv = &qp->rx.recv;
    assert_held(&qp->rx.lock);
    if (seg->opcode == RDMAP_SEND_IMM || iw_early_any(&qp->rx) || (seg->mo != 0) != recv->taken)
        return false;
    if (!recv->taken && !iw_rq_pop(qp, &qp->rx.wakes))
        return false;
    if (!range_fits(iw_sge_bytes(recv->sge, recv->nsge), seg->mo, seg->len) ||
        !iw_direct_entry(recv->sge, recv->nsge, seg->mo, len, d))
        return false;
    d->use = IW_USE_RECEIVE;
    return true;
}

int iw_recv_immediate(struct iw_qp *qp, const struct iw_immediate *imm)
{
    struct ibv_wc wc = {
        .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
        .wc_flags = IBV_WC_WITH_IMM,
        .byte_len = imm->written,
        .imm_data = imm->data,
    };
    assert_held(&qp->rx.lock);
    bool kept = qp->uc && qp->rx.recv.taken; /* of a Send that was too long */
    if (!kept && !iw_rq_pop(qp, &qp->rx.wakes))
        return qp->rx.loss.always ? IW_OK : IWC_HOLD;
    qp->rx.loss.always = false;
    iw_sent_before(&qp->sent);
    iw_recv_complete(qp, &wc, imm->solicited, &qp->rx.wakes);
    return IW_OK;
}

void iw_recv_resume(struct iw_qp *qp)
{
    lock_get(&qp->rx.lock);
    if (qp->datagrams)
        qp->datagrams->resume(qp);
    else
        iw_rx_resume(qp);
    iw_rx_leave(qp);
}

void iw_recv_flush(struct iw_qp *qp, struct iw_wakes *w)
{
    struct ibv_wc wc = {
        .opcode = IBV_WC_RECV, .status = IBV_WC_WR_FLUSH_ERR, .vendor_err = qp->end.error};
    iw_late_land(qp);
    iw_early_drop(qp);
    atomic_store(&qp->rx.starved, false);
    if (qp->rx.recv.taken) {
        struct ibv_wc own = wc;
        if (qp->rx.recv_status)
            own.status = qp->rx.recv_status;
        iw_recv_complete(qp, &own, false, w);
    }
    if (qp->rq->srq) {
        iw_qp_note_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED, w);
        return;
    }
    lock_get(&qp->rq->lock);
    qp->rq->flushing = true;
    lock_put(&qp->rq->lock);
    while (iw_rq_pop(qp, w))
        iw_recv_complete(qp, &wc, false, w);
}

static void flush_late(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter_rx(qp, &w);
    if (qp->end.flushed) /* else it was reset meanwhile */
        iw_recv_flush(qp, &w);
    iw_qp_leave_rx(qp, &w);
}

int iw_post_recv(struct iw_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int r = 0;
    lock_get(&qp->rq->lock);
    /* Who posts while another thread modifies the QP gets the answer of either state. */
    if (qp->rq->srq)
        r = iw_refuse_once(&qp->refused, "ibv_post_recv", RECV_SHARED);
    else if (__atomic_load_n(&qp->tx.state, __ATOMIC_RELAXED) == IBV_QPS_RESET)
        r = iw_refuse_once(&qp->refused, "ibv_post_recv", RECV_STATE);
    for (; wr && !r; wr = r ? wr : wr->next)
        r = iw_rq_push_locked(qp->rq, wr);
    bool flush = qp->rq->flushing, resume = !flush && atomic_load(&qp->rx.starved);
    if (flush || resume) /* what was posted may complete, and the QP be destroyed */
        atomic_fetch_add(&qp->pins, 1);
    lock_put(&qp->rq->lock);
    if (r)
        *bad_wr = wr;
    if (flush)
        flush_late(qp);
    else if (resume)
        iw_recv_resume(qp);
    if (flush || resume)
        atomic_fetch_sub(&qp->pins, 1);
    return r;
}

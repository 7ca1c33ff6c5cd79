/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_early.h"

#include "advice/advice.h"
#include "env/unmet.h"
#include "qp/end.h"
#include "qp/rx_stall.h"
#include "qp/section.h"
#include "qp/tx_answers.h"
#include "wire/opcode.h"
#include "wire/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND            (256u * 1024) /* bytes a connection */
#define UNMET_NS         (IW_UNMET_MS / 2 * 1000000ull)
#define BOUND_REQUESTING (16u * 1024 * 1024) /* while requests of our own are outstanding */

struct iw_early {
    struct iw_early *next;
    size_t size;
    uint64_t offset;    /* of its FPDU in the stream */
    uint32_t written;   /* of an Immediate */
    struct ddp_seg seg; /* its header and payload are bytes[] */
    uint8_t bytes[];
};

uint64_t iw_early_offset(const struct iw_qp_rx *rx)
{
    return rx->early_head->offset;
}

const struct ddp_seg *iw_early_first(const struct iw_qp_rx *rx)
{
    return &rx->early_head->seg;
}

bool iw_early_any(const struct iw_qp_rx *rx)
{
    return rx->early_head != NULL;
}

static bool within_bound(struct iw_qp *qp, size_t more)
{
    lock_get(&qp->tx.lock);
    bool requesting = qp->tx.ord.head != qp->tx.ord.tail;
    lock_put(&qp->tx.lock);
    return range_fits(requesting ? BOUND_REQUESTING : BOUND, qp->rx.early_bytes, more);
}

/** What "anywarp stat" shows. */
static void tell_early(struct iw_qp *qp)
{
    iw_stats_set(&qp->stats->rq.held, qp->rx.early);
    iw_stats_set(&qp->stats->rq.held_bytes, qp->rx.early_data);
}

/** The first that is held waits from now on: for who reads the log, and a peer's patience. */
static void note_unmet(struct iw_qp *qp, struct iw_wakes *w)
{
    bool told = !iw_log_on(IW_LOG_WARN) || qp->rx.unmet_told;
    bool patient = !qp->ib || (!qp->uc && qp->acks.peer_rnr_retry == IW_RNR_FOR_EVER);
    if (told && patient)
        return;
    qp->rx.early_since = iw_now();
    if (!patient)
        iw_qp_note_news(qp, IW_QP_NEWS_NOT_READY, w);
    if (told)
        return;
    if (!qp->rx.unmet_timed)
        iw_qp_note_news(qp, IW_QP_NEWS_UNMET, w);
    qp->rx.unmet_timed = true;
}

static void tell_late(const struct iw_qp *qp)
{
    char name[32];
    snprintf(name, sizeof(name), "QP 0x%06x", qp->pub.qp_num);
    iw_advise(IW_FINDING_LATE_RECEIVE, name, NULL,
              "a message of the peer came, and no receive was posted");
}

/** A copy of the segment, as the last one. @return whether bound and memory allow it */
static bool add(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t written)
{
    size_t size = sizeof(struct iw_early) + seg->hdr_len + seg->len;
    assert_held(&qp->rx.lock);
    atomic_store(&qp->rx.starved, true);
    struct iw_early *h = within_bound(qp, size) ? calloc(1, size) : NULL;
    if (!h)
        return false;
    h->size = size;
    h->offset = qp->rx.half.offset;
    h->written = written;
    h->seg = *seg;
    h->seg.hdr = memcpy(h->bytes, seg->hdr, seg->hdr_len);
    h->seg.payload = h->bytes + seg->hdr_len;
    if (seg->len)
        memcpy(h->bytes + seg->hdr_len, seg->payload, seg->len);
    if (qp->rx.early_tail) {
        qp->rx.early_tail->next = h;
    } else {
        qp->rx.early_head = h;
        if (iw_advice_on())
            tell_late(qp);
        note_unmet(qp, &qp->rx.wakes);
    }
    qp->rx.early_tail = h;
    qp->rx.early_bytes += size;
    qp->rx.early += seg->last;
    qp->rx.early_data += seg->len;
    tell_early(qp);
    return true;
}

int iw_early_add(struct iw_qp *qp, uint32_t written)
{
    return add(qp, qp->rx.half.seg, written) ? iw_early_replay(qp) : IWC_HOLD;
}

static int offer_immediate(struct iw_qp *qp, const struct iw_early *h)
{
    struct iw_immediate imm = {.solicited = rdmap_ops[h->seg.opcode].solicited,
                               .written = h->written};
    memcpy(&imm.data, h->seg.payload, sizeof(imm.data));
    return iw_recv_immediate(qp, &imm);
}

static int offer(struct iw_qp *qp, const struct iw_early *h)
{
    struct rdmap_read_request read;
    struct rdmap_atomic_request atomic;
    switch (h->seg.opcode) {
    case RDMAP_READ_REQUEST:
        rdmap_read_request_decode(h->seg.payload, &read);
        return iw_answer_read(qp, &read);
    case RDMAP_ATOMIC_REQUEST:
        rdmap_atomic_request_decode(h->seg.payload, &atomic);
        return iw_answer_atomic(qp, &atomic);
    case RDMAP_IMM:
    case RDMAP_IMM_SE:
        return offer_immediate(qp, h);
    default:
        return iw_recv_place(qp, &h->seg);
    }
}

static void fail(struct iw_qp *qp, enum iw_err err, const struct ddp_seg *seg)
{
    lock_get(&qp->tx.lock);
    iw_qp_fail_locked(qp, err, seg, seg->hdr_len + seg->len, &qp->rx.wakes);
    lock_put(&qp->tx.lock);
}

static void pop(struct iw_qp *qp)
{
    struct iw_qp_rx *rx = &qp->rx;
    struct iw_early *h = rx->early_head;
    rx->early_head = h->next;
    if (!h->next)
        rx->early_tail = NULL;
    rx->early_bytes -= h->size;
    rx->early -= h->seg.last;
    rx->early_data -= h->seg.len;
    tell_early(qp);
    free(h);
}

int iw_early_replay(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    while (qp->rx.early_head) {
        int r = offer(qp, qp->rx.early_head);
        if (r == IWC_HOLD && iw_rq_wait(qp))
            continue;
        if (r == IWC_HOLD)
            return IW_OK;
        if (r) {
            iw_acks_failed(qp);
            fail(qp, r, &qp->rx.early_head->seg);
        }
        pop(qp);
        if (qp->ib)
            qp->rx.early_since = iw_now();
        if (r)
            return r;
    }
    if (!qp->rx.paused)
        atomic_store(&qp->rx.starved, false);
    return IW_OK;
}

void iw_early_lose(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    while (qp->rx.early_head) {
        qp->rx.loss.send = !qp->rx.early_head->seg.last;
        pop(qp);
    }
    qp->rx.loss.always = true;
}

void iw_early_drop(struct iw_qp *qp)
{
    while (qp->rx.early_head)
        pop(qp);
    iw_stall_drop(&qp->rx);
    iw_rq_leave(qp);
}

void iw_qp_unmet(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter_rx(qp, &w);
    qp->rx.unmet_timed = false;
    bool early = iw_early_any(&qp->rx);
    bool long_early = early && iw_now() - qp->rx.early_since >= UNMET_NS; /* not others, before */
    qp->rx.unmet_told |= long_early;
    if (early && !long_early)
        note_unmet(qp, &w);
    iw_qp_leave_rx(qp, &w);
    if (long_early)
        iw_cm_unmet("%s: no receive is posted, and a message of the peer waits for one, QP 0x%06x",
                    qp->rq->srq ? "ibv_post_srq_recv" : "ibv_post_recv", qp->pub.qp_num);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_requests.h"

#include "qp/explain.h"
#include "qp/rx_direct.h"
#include "qp/rx_scatter.h"
#include "qp/tx_queue.h"
#include "wire/range.h"

#include <inttypes.h>

void iw_depth_init(struct iw_depth *d, uint32_t limit)
{
    *d = (struct iw_depth){.limit = limit, .mask = iw_ring_places(limit + 1) - 1};
}

/** Whether the answer may be written where it is wanted. */
static enum iw_err check_sink_locked(struct iw_qp *qp, const struct iw_sqe *e,
                                     const struct ibv_sge *sge)
{
    for (unsigned k = 0; k < e->nsge; k++) {
        uint8_t *p;
        if (iw_region_check(sge[k].lkey, &qp->accessor, IW_USE_SCATTER, sge[k].addr, sge[k].length,
                            &p)) {
            iw_qp_explain_sge(qp, IW_ERR_LOCAL_PROT, IW_USE_SCATTER, sge, k, e->nsge, 0,
                              sge[k].length);
            return IW_ERR_LOCAL_PROT;
        }
    }
    if (qp->tx.ord.limit)
        return IW_OK;
    iw_qp_explain(qp, IW_ERR_LOCAL_OP, "the connection was made with an initiator_depth of 0");
    return IW_ERR_LOCAL_OP;
}

/** What the work request at @p i of the send queue asks for. */
static struct rdmap_read_request describe_read(struct iw_qp_tx *tx, uint32_t i)
{
    const struct iw_sqe *e = iw_sq_at(&tx->sq, i);
    const struct ibv_sge *sge = iw_sq_sge(&tx->sq, i);
    return (struct rdmap_read_request){
        .sink_stag = e->nsge ? sge[0].lkey : 0,
        .sink_to = e->nsge ? sge[0].addr : 0,
        .size = (uint32_t)e->len,
        .source_stag = e->rkey,
        .source_to = e->remote_addr,
    };
}

enum iw_err iw_read_request_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m, uint8_t *hdr)
{
    struct rdmap_read_request r = describe_read(&qp->tx, i);
    assert_held(&qp->tx.lock);
    rdmap_read_request_encode(hdr, &r);
    m->opcode = RDMAP_READ_REQUEST;
    m->hdr = hdr;
    m->hdr_len = RDMAP_READ_REQUEST_HDR;
    return check_sink_locked(qp, iw_sq_at(&qp->tx.sq, i), iw_sq_sge(&qp->tx.sq, i));
}

enum iw_err iw_atomic_request_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m, uint8_t *hdr)
{
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    bool swap = e->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    struct rdmap_atomic_request r = {
        .aop = swap ? RDMAP_AOP_CMP_SWAP : RDMAP_AOP_FETCH_ADD,
        .id = i,
        .stag = e->rkey,
        .to = e->remote_addr,
        .data = swap ? e->swap : e->compare_add,
        .data_mask = swap ? UINT64_MAX : 0, /* no field boundaries: a 64-bit add */
        .compare = swap ? e->compare_add : 0,
        .compare_mask = UINT64_MAX,
    };
    assert_held(&qp->tx.lock);
    rdmap_atomic_request_encode(hdr, &r);
    m->opcode = RDMAP_ATOMIC_REQUEST;
    m->hdr = hdr;
    m->hdr_len = RDMAP_ATOMIC_REQUEST_HDR;
    return check_sink_locked(qp, e, iw_sq_sge(&qp->tx.sq, i));
}

void iw_request_sent_locked(struct iw_qp_tx *tx, uint32_t i)
{
    assert_held(&tx->lock);
    tx->orq[tx->ord.tail++ & tx->ord.mask] = (struct iw_orq_entry){.sqe = i};
}

void iw_rtr_sent_locked(struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    tx->orq[tx->ord.tail++ & tx->ord.mask] = (struct iw_orq_entry){.rtr = true};
}

/** The oldest outstanding request, NULL if there is none. */
static struct iw_orq_entry *oldest(struct iw_qp_tx *tx)
{
    return tx->ord.head == tx->ord.tail ? NULL : &tx->orq[tx->ord.head & tx->ord.mask];
}

static enum iw_err check_response(const struct iw_sqe *e, const struct iw_orq_entry *o,
                                  const struct ibv_sge *sge, const struct ddp_seg *seg)
{
    if (e->opcode != IBV_WR_RDMA_READ)
        return IW_ERR_RESPONSE_STAG;
    if (e->len && seg->stag != sge[0].lkey)
        return IW_ERR_RESPONSE_STAG;
    if (e->len && seg->to != sge[0].addr + o->received)
        return IW_ERR_RESPONSE_BOUNDS;
    if (!range_fits(e->len, o->received, seg->len) ||
        (seg->last && o->received + seg->len != e->len))
        return IW_ERR_RESPONSE_BOUNDS;
    return IW_OK;
}

static enum iw_err response_locked(struct iw_qp *qp, const struct ddp_seg *seg)
{
    struct iw_orq_entry *o = oldest(&qp->tx);
    assert_held(&qp->tx.lock);
    if (!o)
        return IW_ERR_RESPONSE_STAG;
    if (o->rtr) {
        qp->tx.ord.head++;
        return seg->len == 0 && seg->last ? IW_OK : IW_ERR_RESPONSE_BOUNDS;
    }
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, o->sqe);
    const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, o->sqe);
    enum iw_err err = check_response(e, o, sge, seg);
    if (err)
        iw_qp_explain(qp, err,
                      "%" PRIu32 " bytes%s at 0x%" PRIx64 ", key 0x%08" PRIx32 " (due: %" PRIu64
                      " at 0x%" PRIx64 ", key 0x%08" PRIx32 ")",
                      seg->len, seg->last ? ", last" : "", seg->to, seg->stag, e->len - o->received,
                      e->nsge ? sge[0].addr + o->received : 0, e->nsge ? sge[0].lkey : 0);
    else
        err = iw_scatter(qp, IW_USE_SCATTER, sge, e->nsge, o->received, seg->payload, seg->len);
    if (err) {
        e->status = (uint8_t)iw_err_info(err)->status;
        return err;
    }
    o->received += seg->len;
    if (seg->last) {
        e->answered = true;
        iw_acked_locked(&qp->tx, &qp->acks, e->end_pos);
        qp->tx.ord.head++;
    }
    return IW_OK;
}

/** The read whose response comes in. @return NULL: there is none */
static struct iw_orq_entry *being_read_locked(struct iw_qp_tx *tx)
{
    struct iw_orq_entry *o = oldest(tx);
    assert_held(&tx->lock);
    return o && !o->rtr ? o : NULL;
}

bool iw_response_find(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t len,
                      struct iw_direct *d)
{
    bool found = false;
    lock_get(&qp->tx.lock);
    const struct iw_orq_entry *o = being_read_locked(&qp->tx);
    if (o) {
        const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, o->sqe);
        const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, o->sqe);
        found = check_response(e, o, sge, seg) == IW_OK &&
                iw_direct_entry(sge, e->nsge, o->received, len, d);
    }
    lock_put(&qp->tx.lock);
    d->use = IW_USE_SCATTER;
    return found;
}

void iw_response_past(struct iw_qp *qp, uint32_t len)
{
    lock_get(&qp->tx.lock);
    struct iw_orq_entry *o = being_read_locked(&qp->tx);
    if (o)
        o->received += len;
    lock_put(&qp->tx.lock);
}

void iw_response_failed_locked(struct iw_qp *qp, uint8_t status)
{
    const struct iw_orq_entry *o = being_read_locked(&qp->tx);
    if (o)
        iw_sq_at(&qp->tx.sq, o->sqe)->status = status;
}

int iw_on_read_response(void *up, const struct ddp_seg *seg)
{
    struct iw_qp *qp = up;
    lock_get(&qp->tx.lock);
    enum iw_err err = response_locked(qp, seg);
    lock_put(&qp->tx.lock);
    qp->rx.work |= seg->last;
    return err;
}

static enum iw_err atomic_response_locked(struct iw_qp *qp, const struct rdmap_atomic_response *r)
{
    struct iw_orq_entry *o = oldest(&qp->tx);
    struct iw_sqe *e = o && !o->rtr ? iw_sq_at(&qp->tx.sq, o->sqe) : NULL;
    assert_held(&qp->tx.lock);
    if (!e || e->opcode == IBV_WR_RDMA_READ || r->id != o->sqe) {
        iw_qp_explain(qp, IW_ERR_RESPONSE_ATOMIC, "request identifier 0x%" PRIx32, r->id);
        return IW_ERR_RESPONSE_ATOMIC;
    }
    enum iw_err err = iw_scatter(qp, IW_USE_SCATTER, iw_sq_sge(&qp->tx.sq, o->sqe), e->nsge, 0,
                                 (const uint8_t *)&r->original, sizeof(r->original));
    if (err) {
        e->status = (uint8_t)iw_err_info(err)->status;
        return err;
    }
    e->answered = true;
    iw_acked_locked(&qp->tx, &qp->acks, e->end_pos);
    qp->tx.ord.head++;
    return IW_OK;
}

int iw_on_atomic_response(void *up, const struct rdmap_atomic_response *r)
{
    struct iw_qp *qp = up;
    lock_get(&qp->tx.lock);
    enum iw_err err = atomic_response_locked(qp, r);
    lock_put(&qp->tx.lock);
    qp->rx.work = true;
    return err;
}

/** Requests have the MSNs from 1 on. @return NULL if that one is not outstanding */
static const struct iw_orq_entry *by_msn(struct iw_qp_tx *tx, uint32_t msn)
{
    uint32_t i = msn - 1;
    bool outstanding = i - tx->ord.head < tx->ord.tail - tx->ord.head;
    return outstanding ? &tx->orq[i & tx->ord.mask] : NULL;
}

static bool same_sink(struct iw_qp_tx *tx, const struct iw_orq_entry *o,
                      const struct rdmap_read_request *r)
{
    if (o->rtr || iw_sq_at(&tx->sq, o->sqe)->opcode != IBV_WR_RDMA_READ)
        return false;
    struct rdmap_read_request sent = describe_read(tx, o->sqe);
    return sent.sink_stag == r->sink_stag && sent.sink_to == r->sink_to;
}

/**
 * The outstanding request that the Terminate is about, NULL if none: that of the quoted MSN, but
 * siw quotes the size of an RDMA Read instead, and the rest of its header right.
 */
static const struct iw_orq_entry *blamed(struct iw_qp_tx *tx, const struct terminate *t)
{
    struct ddp_seg seg;
    struct rdmap_read_request r;
    if (!t->has_ddp)
        return t->layer == TERM_RDMAP && t->etype ? by_msn(tx, tx->ord.head + 1) : NULL;
    ddp_decode(t->ddp, t->ddp_len, &seg);
    if (seg.tagged || (seg.opcode != RDMAP_READ_REQUEST && seg.opcode != RDMAP_ATOMIC_REQUEST))
        return NULL;
    const struct iw_orq_entry *named = by_msn(tx, seg.msn);
    if (!t->has_rdmap)
        return named;
    rdmap_read_request_decode(t->rdmap, &r);
    if (named && same_sink(tx, named, &r))
        return named;
    for (uint32_t i = tx->ord.head; i != tx->ord.tail; i++)
        if (same_sink(tx, &tx->orq[i & tx->ord.mask], &r))
            return &tx->orq[i & tx->ord.mask];
    return named;
}

static bool unaligned(const struct iw_sqe *e)
{
    return e->opcode != IBV_WR_RDMA_READ && e->remote_addr % sizeof(uint64_t);
}

void iw_request_blame_locked(struct iw_qp_tx *tx, const struct terminate *t)
{
    enum iw_err err = iw_err_from_terminate(t->layer, t->etype, t->code);
    enum ibv_wc_status status = iw_err_info(err)->status;
    assert_held(&tx->lock);
    if (status == IBV_WC_LOC_LEN_ERR) /* what is local is local there */
        status = IBV_WC_REM_INV_REQ_ERR;
    const struct iw_orq_entry *o = blamed(tx, t);
    if (status == IBV_WC_WR_FLUSH_ERR || !o || o->rtr)
        return;
    struct iw_sqe *e = iw_sq_at(&tx->sq, o->sqe);
    if (unaligned(e) && status == IBV_WC_REM_OP_ERR)
        status = IBV_WC_REM_INV_REQ_ERR; /* RFC 7306 has no code of its own for it */
    e->status = (uint8_t)status;
}

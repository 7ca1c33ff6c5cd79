/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes out next, cut into FPDUs. */
#include "qp/tx_cut.h"

#include "conn/note.h"
#include "env/guard.h"
#include "env/pool.h"
#include "mem/mw.h"
#include "mem/probe.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/rings.h"
#include "qp/tx_answers.h"
#include "qp/tx_queue.h"
#include "qp/tx_requests.h"

#include <string.h>

#define RTRS (MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ)
#define STEP 4096 /* of a search for memory that is gone: no page is smaller */

bool iw_qp_batch_locked(struct iw_qp_tx *tx, size_t limit)
{
    assert_held(&tx->lock);
    if (!tx->batch) {
        tx->batch = iw_pool_get(IW_POOL_BATCH);
        if (!tx->batch)
            return false;
        iwc_batch_init(tx->batch, limit);
    }
    tx->batch->limit = limit;
    return true;
}

/** Resolves the payload of a Send or Write. @return IW_OK or LOCAL_PROT */
static inline enum iw_err gather_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m,
                                        struct iovec *iov)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    m->iov = iov;
    m->len = e->len;
    if (e->flags & IBV_SEND_INLINE) {
        iov[0] = (struct iovec){.iov_base = iw_sq_inline(&qp->tx.sq, i), .iov_len = e->len};
        m->niov = 1;
        return IW_OK;
    }
    const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, i);
    for (unsigned k = 0; k < e->nsge; k++) {
        uint8_t *p;
        enum iw_err err = iw_region_check(sge[k].lkey, &qp->accessor, IW_USE_GATHER, sge[k].addr,
                                          sge[k].length, &p);
        if (err) {
            iw_qp_explain_sge(qp, err, IW_USE_GATHER, sge, k, e->nsge, 0, sge[k].length);
            return err;
        }
        iov[k] = (struct iovec){.iov_base = p, .iov_len = sge[k].length};
    }
    m->niov = e->nsge;
    return IW_OK;
}

static uint8_t send_opcode(const struct iw_sqe *e)
{
    bool solicited = e->flags & IBV_SEND_SOLICITED;
    if (e->opcode == IBV_WR_SEND_WITH_IMM)
        return RDMAP_SEND_IMM;
    if (e->opcode == IBV_WR_SEND_WITH_INV)
        return solicited ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
    return solicited ? RDMAP_SEND_SE : RDMAP_SEND;
}

/** The 8 bytes that carry an immediate: the program's 4, then, in our own Send, the SE flag. */
static void immediate_header(const struct iw_sqe *e, uint8_t hdr[RDMAP_IMM_HDR])
{
    memset(hdr, 0, RDMAP_IMM_HDR);
    memcpy(hdr, &e->imm_or_inv, sizeof(e->imm_or_inv));
    if (e->opcode == IBV_WR_SEND_WITH_IMM)
        hdr[4] = e->flags & IBV_SEND_SOLICITED ? 1 : 0;
}

/** Describes the message of the work request at @p i. @return IW_OK, or why it cannot be sent */
static enum iw_err describe_locked(struct iw_qp *qp, uint32_t i, struct iwc_msg *m,
                                   struct iovec *iov, uint8_t *hdr)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    switch (e->opcode) {
    case IBV_WR_SEND_WITH_IMM:
        immediate_header(e, hdr);
        m->hdr = hdr;
        m->hdr_len = RDMAP_SEND_IMM_HDR;
        m->opcode = send_opcode(e);
        return gather_locked(qp, i, m, iov);
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_INV:
        m->opcode = send_opcode(e);
        m->stag = e->opcode == IBV_WR_SEND_WITH_INV ? e->imm_or_inv : 0;
        return gather_locked(qp, i, m, iov);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        if (e->stage) {
            immediate_header(e, hdr);
            m->hdr = hdr;
            m->hdr_len = RDMAP_IMM_HDR;
            m->opcode = e->flags & IBV_SEND_SOLICITED ? RDMAP_IMM_SE : RDMAP_IMM;
            return IW_OK;
        }
        __attribute__((fallthrough)); /* the Write goes first */
    case IBV_WR_RDMA_WRITE:
        m->opcode = RDMAP_WRITE;
        m->stag = e->rkey;
        m->to = e->remote_addr;
        return gather_locked(qp, i, m, iov);
    case IBV_WR_RDMA_READ:
        return iw_read_request_locked(qp, i, m, hdr);
    default:
        return iw_atomic_request_locked(qp, i, m, hdr);
    }
}

struct cutting {
    struct iw_qp *qp;
    struct iwc_msg *m;
    bool whole;
};

static void cut(void *arg)
{
    struct cutting *c = arg;
    c->whole = iwc_tx_cut(&c->qp->tx.half, c->qp->tx.batch, c->m);
}

const void *iw_qp_cut_msg_locked(struct iw_qp *qp, struct iwc_msg *m, bool *whole)
{
    struct cutting c = {.qp = qp, .m = m};
    assert_held(&qp->tx.lock);
    const void *gone = iw_guarded(cut, &c, m->iov, m->niov);
    *whole = c.whole;
    return gone;
}

/** The entry of a work request that @p p is in is not there any more. */
static enum iw_err gone_locked(struct iw_qp *qp, uint32_t i, const struct iwc_msg *m,
                               const uint8_t *p)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, i);
    assert_held(&qp->tx.lock);
    for (unsigned k = 0; k < m->niov; k++) {
        const uint8_t *from = m->iov[k].iov_base;
        if (p < from || p - from >= (ptrdiff_t)m->iov[k].iov_len)
            continue;
        e->status = (uint8_t)iw_err_info(IW_ERR_LOCAL_GONE)->status;
        iw_qp_explain_sge(qp, IW_ERR_LOCAL_GONE, IW_USE_GATHER, sge, k, e->nsge, 0, sge[k].length);
        return IW_ERR_LOCAL_GONE;
    }
    return IW_OK;
}

/** Carries out a work request that puts nothing on the wire. @return IW_OK, or why it cannot be */
static enum iw_err run_locked(struct iw_qp *qp, struct iw_sqe *e)
{
    bool revised = true;
    enum iw_err err;
    if (e->opcode == IBV_WR_BIND_MW) {
        iw_stats_set(&qp->stats->binds, qp->stats->binds + 1);
        err = iw_mw_bind(&qp->accessor, e->rkey, &e->bind, &revised);
    } else {
        err = iw_region_invalidate(&qp->accessor, e->imm_or_inv);
        if (err) {
            iw_qp_explain(qp, IW_ERR_LOCAL_OP, "key 0x%08x: %s", e->imm_or_inv,
                          iw_err_info(err)->text);
            err = IW_ERR_LOCAL_OP;
        }
    }
    if (!err && revised)
        iw_grace_begin(&qp->tx.grace, qp->pd);
    e->stage = !err && revised;
    return err;
}

/** The work request at sq.cut is local: runs it, unless that is done. @return as run_locked() */
static enum iw_err cut_local_locked(struct iw_qp *qp)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, qp->tx.sq.cut);
    assert_held(&qp->tx.lock);
    if (!e->stage) {
        iw_copy_end();
        enum iw_err err = run_locked(qp, e);
        iw_copy_begin(qp->pd);
        if (err) {
            e->status = iw_err_info(err)->status;
            return err;
        }
    }
    if (e->stage && !iw_grace_over(&qp->tx.grace))
        return IW_OK;
    e->end_pos = qp->tx.half.cut_pos;
    qp->tx.sq.cut++;
    return IW_OK;
}

bool iw_qp_waits_for_copies_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    if (qp->end.error || qp->tx.sq.cut == qp->tx.sq.tail)
        return false;
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, qp->tx.sq.cut);
    return iw_sqe_is_local(e) && e->stage;
}

/** The message at sq.cut is cut: its immediate is next, or the next work request. */
static inline void advance_locked(struct iw_qp_tx *tx, struct iw_sqe *e)
{
    assert_held(&tx->lock);
    e->end_pos = tx->half.cut_pos;
    if (e->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && !e->stage) {
        e->stage = 1;
        e->cut = 0;
        e->begun = false;
        return;
    }
    uint32_t i = tx->sq.cut++;
    if (iw_sqe_is_request(e))
        iw_request_sent_locked(tx, i);
}

/** Cuts the work request at sq.cut, or goes on with it. @return IW_OK, or why it cannot be sent */
static enum iw_err cut_wr_locked(struct iw_qp *qp, bool *whole)
{
    struct iw_qp_tx *tx = &qp->tx;
    struct iw_sqe *e = iw_sq_at(&tx->sq, tx->sq.cut);
    struct iovec iov[IW_MAX_SGE];
    uint8_t hdr[RDMAP_ATOMIC_REQUEST_HDR];
    struct iwc_msg m = {.cut = e->cut, .begun = e->begun};
    const void *gone = NULL;

    *whole = true;
    if (iw_sqe_is_local(e))
        return cut_local_locked(qp);
    enum iw_err err = describe_locked(qp, tx->sq.cut, &m, iov, hdr);
    if (err) {
        e->status = iw_err_info(err)->status;
        return err;
    }
    if (!m.niov || (e->flags & IBV_SEND_INLINE))
        *whole = iwc_tx_cut(&tx->half, tx->batch, &m);
    else
        gone = iw_qp_cut_msg_locked(qp, &m, whole);
    e->cut = m.cut; /* nothing is cut twice */
    if (!*whole)    /* a byte that was just written would delay the look at its neighbours */
        e->begun = m.begun;
    if (gone)
        return gone_locked(qp, tx->sq.cut, &m, gone);
    if (m.opcode > RDMAP_TERMINATE)
        tx->sent_beyond |= (uint16_t)(1u << m.opcode);
    if (*whole)
        advance_locked(tx, e);
    return IW_OK;
}

/**
 * Whether the work request at sq.cut may go now: reads in flight hold fences and, at ORD, reads;
 * what is cut and unsent holds local operations, which may take away the memory it is gathered
 * from; copies that run hold one that took it away.
 */
static inline bool wr_may_go(struct iw_qp_tx *tx)
{
    bool draining = tx->state == IBV_QPS_SQD;
    if (tx->sq.cut == (draining ? tx->sq.drain : tx->sq.tail) ||
        (tx->state != IBV_QPS_RTS && tx->state != IBV_QPS_RTR && !draining))
        return false;
    const struct iw_sqe *e = iw_sq_at(&tx->sq, tx->sq.cut);
    uint32_t flying = tx->ord.tail - tx->ord.head;
    if (e->begun || e->stage)
        return !iw_sqe_is_local(e) || iw_grace_over(&tx->grace);
    if ((e->flags & IBV_SEND_FENCE) && flying)
        return false;
    if (iw_sqe_is_local(e))
        return tx->half.sent_pos == tx->half.cut_pos;
    return !iw_sqe_is_request(e) || flying < tx->ord.limit || tx->ord.limit == 0;
}

static bool is_small(const struct iw_sqe *e)
{
    return !iw_sqe_is_request(e) && !iw_sqe_is_local(e) && e->len < IWC_GATHER_MIN;
}

bool iw_qp_cut_small_locked(struct iw_qp *qp, size_t most)
{
    bool whole = true;
    while (whole && qp->tx.batch->unsent < most && wr_may_go(&qp->tx) &&
           is_small(iw_sq_at(&qp->tx.sq, qp->tx.sq.cut)))
        if (cut_wr_locked(qp, &whole))
            return false;
    return whole && qp->tx.sq.cut == qp->tx.sq.tail && qp->tx.batch->unsent < most;
}

static void cut_terminate_locked(struct iw_qp *qp)
{
    struct iwc_msg m = {
        .opcode = RDMAP_TERMINATE, .hdr = qp->end.term, .hdr_len = qp->end.term_len};
    if (iwc_tx_cut(&qp->tx.half, qp->tx.batch, &m))
        qp->end.term_queued = false;
}

/**
 * The RTR of RFC 6581 section 9.2, the first FPDU of an initiator. STag 0 is refused by cxgb4. The
 * tagged offset of a Write without bytes means nothing: to an anywarp it is the number of the QP.
 */
static void cut_rtr_locked(struct iw_qp *qp)
{
    static const struct rdmap_read_request nothing = {.sink_stag = IWC_NOTE_RTR,
                                                      .source_stag = IWC_NOTE_RTR};
    uint8_t hdr[RDMAP_READ_REQUEST_HDR];
    struct iwc_msg m = {
        .opcode = RDMAP_WRITE, .stag = IWC_NOTE_RTR, .to = qp->ext ? qp->pub.qp_num : 0};
    if (qp->tx.says & MPA_RTR_READ) {
        rdmap_read_request_encode(hdr, &nothing);
        m = (struct iwc_msg){
            .opcode = RDMAP_READ_REQUEST, .hdr = hdr, .hdr_len = RDMAP_READ_REQUEST_HDR};
        iw_rtr_sent_locked(&qp->tx);
    }
    iwc_tx_cut(&qp->tx.half, qp->tx.batch, &m);
    qp->tx.says &= (uint8_t)~RTRS;
}

/** What goes before everything else. @return false if nothing may follow it in this batch */
static bool cut_first_locked(struct iw_qp *qp)
{
    struct iw_qp_tx *tx = &qp->tx;
    assert_held(&tx->lock);
    if (tx->says & RTRS)
        cut_rtr_locked(qp);
    bool follows =
        !qp->end.error && (wr_may_go(tx) || tx->irq_cut != tx->ird.tail || iw_ack_due_locked(qp));
    return !(tx->says & IW_SAYS_SWITCH) || !follows || iw_rings_cut_locked(qp);
}

enum iw_err iw_qp_fill_locked(struct iw_qp *qp)
{
    bool whole = true, stranded = iw_qp_is_stranded_locked(qp);
    if (qp->tx.says && !stranded && !cut_first_locked(qp))
        return IW_OK;
    if (qp->ib && !qp->uc)
        iw_acks_cut_locked(qp, !stranded && wr_may_go(&qp->tx));
    while (whole) {
        if (qp->end.error || qp->end.term_queued) {
            if (qp->end.term_queued)
                cut_terminate_locked(qp);
            return IW_OK;
        }
        if (stranded) /* what TCP takes now is lost, and not complete */
            return IW_OK;
        bool wr = wr_may_go(&qp->tx);
        bool response = qp->tx.irq_cut != qp->tx.ird.tail;
        if (!wr && !response)
            return IW_OK;
        bool begun = wr && iw_sq_at(&qp->tx.sq, qp->tx.sq.cut)->begun;
        bool answer = response && !begun && (qp->tx.irq_next || !wr || iw_answer_begun(&qp->tx));
        enum iw_err err = answer ? iw_answer_cut_locked(qp, &whole) : cut_wr_locked(qp, &whole);
        if (err)
            return err;
        qp->tx.irq_next = !answer;
    }
    return IW_OK;
}

/** Whether bytes of the work request are cut, and not all of them sent. */
static bool is_under_way(const struct iw_qp_tx *tx, uint32_t i)
{
    const struct iw_sqe *e = iw_sq_at(&tx->sq, i);
    return !iw_sqe_is_request(e) && !iw_sqe_is_local(e) && (i != tx->sq.cut || e->begun) &&
           !(e->end_pos && e->end_pos <= tx->half.sent_pos);
}

/** @return the first address of the unsent bytes that cannot be read, as far as can be told */
static const uint8_t *unreadable(const struct iwc_batch *b)
{
    const uint8_t *own = b->copy;
    for (unsigned k = b->first; k < b->niov; k++) {
        const uint8_t *p = b->iov[k].iov_base, *end = p + b->iov[k].iov_len;
        bool copied = p >= own && p < own + sizeof(b->copy);
        for (; !copied && p < end; p += STEP - (uintptr_t)p % STEP)
            if (iw_probe_gone(p))
                return p;
    }
    return NULL;
}

enum iw_err iw_qp_gone_locked(struct iw_qp *qp)
{
    struct iovec iov[IW_MAX_SGE];
    struct iwc_msg m;
    const uint8_t *p = unreadable(qp->tx.batch);
    enum iw_err err = IW_OK;
    assert_held(&qp->tx.lock);
    iw_copy_begin(qp->pd);
    for (uint32_t i = qp->tx.sq.head; !err && i != qp->tx.sq.tail && i != qp->tx.sq.cut + 1; i++)
        if (is_under_way(&qp->tx, i) && !gather_locked(qp, i, &m, iov))
            err = gone_locked(qp, i, &m, p);
    if (!err)
        err = iw_answer_gone_locked(qp, p) ? IW_ERR_READ_GONE : IW_ERR_LOCAL_GONE;
    iw_copy_end();
    return err;
}

enum iw_err iw_qp_revalidate_locked(struct iw_qp *qp)
{
    struct iovec iov[IW_MAX_SGE];
    struct iwc_msg m;
    for (uint32_t i = qp->tx.sq.head; i != qp->tx.sq.tail && i != qp->tx.sq.cut + 1; i++) {
        struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
        if (!is_under_way(&qp->tx, i))
            continue;
        enum iw_err err = gather_locked(qp, i, &m, iov);
        if (err) {
            e->status = iw_err_info(err)->status;
            return err;
        }
    }
    return iw_answer_revalidate_locked(qp);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_answers.h"

#include "advice/placed.h"
#include "env/guard.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/tx_cut.h"

#define ATOMIC_BYTES sizeof(uint64_t)

/** In a section of the QP's domain. */
static enum iw_err check(struct iw_qp *qp, uint32_t stag, enum iw_use use, unsigned right,
                         uint64_t to, uint64_t len, uint8_t **p)
{
    enum iw_err err = iw_region_check(stag, &qp->accessor, use, to, len, p);
    if (!err && len && !iw_qp_allows(qp, right))
        err = IW_ERR_READ_ACCESS;
    if (err)
        iw_qp_explain_access(qp, err, stag, use, to, len);
    return err;
}

static enum iw_err source(struct iw_qp *qp, const struct rdmap_read_request *r, uint8_t **p)
{
    return check(qp, r->source_stag, IW_USE_READ, IBV_ACCESS_REMOTE_READ, r->source_to, r->size, p);
}

/** Soft-iWARP takes a depth for the next power of two, so as many requests are let pass. */
static uint32_t tolerated(uint32_t limit)
{
    return limit ? iw_ring_places(limit) : 0;
}

static bool is_full_locked(struct iw_qp *qp)
{
    uint32_t n = qp->tx.ird.tail - qp->tx.ird.head;
    if (n < tolerated(qp->tx.ird.limit))
        return false;
    iw_qp_explain(qp, IW_ERR_IRD_EXCEEDED, "%u are outstanding, %u were agreed", n,
                  qp->tx.ird.limit);
    return true;
}

static enum iw_err push_locked(struct iw_qp *qp, const struct iw_irq_entry *q)
{
    assert_held(&qp->tx.lock);
    if (is_full_locked(qp))
        return IW_ERR_IRD_EXCEEDED;
    qp->tx.irq[qp->tx.ird.tail++ & qp->tx.ird.mask] = *q;
    qp->rx.work = true;
    return IW_OK;
}

int iw_answer_read(struct iw_qp *qp, const struct rdmap_read_request *r)
{
    uint8_t *p;
    lock_get(&qp->tx.lock);
    iw_copy_begin(qp->pd);
    enum iw_err err = source(qp, r, &p);
    iw_copy_end();
    if (!err)
        err = push_locked(qp, &(struct iw_irq_entry){.read = *r});
    lock_put(&qp->tx.lock);
    return err;
}

struct application {
    const struct rdmap_atomic_request *r;
    struct iovec word;
    uint64_t old;
};

/** Atomic towards every other QP and towards the program's own atomics on the word. */
static void apply(void *arg)
{
    struct application *a = arg;
    uint64_t *word = a->word.iov_base;
    a->old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &a->old, rdmap_atomic_apply(a->r, a->old), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

static enum iw_err atomic_locked(struct iw_qp *qp, const struct rdmap_atomic_request *r)
{
    uint8_t *p;
    if (r->aop != RDMAP_AOP_FETCH_ADD && r->aop != RDMAP_AOP_CMP_SWAP) {
        iw_qp_explain(qp, IW_ERR_OPCODE, "atomic operation code %u", r->aop);
        return IW_ERR_OPCODE;
    }
    enum iw_err err =
        check(qp, r->stag, IW_USE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC, r->to, ATOMIC_BYTES, &p);
    if (err)
        return err;
    if ((uintptr_t)p % ATOMIC_BYTES) {
        iw_qp_explain_access(qp, IW_ERR_ATOMIC_ALIGN, r->stag, IW_USE_ATOMIC, r->to, ATOMIC_BYTES);
        return IW_ERR_ATOMIC_ALIGN;
    }
    struct iw_irq_entry q = {.is_atomic = true, .atomic.id = r->id};
    if (is_full_locked(qp))
        return IW_ERR_IRD_EXCEEDED;
    struct application a = {.r = r, .word = {.iov_base = p, .iov_len = ATOMIC_BYTES}};
    iw_placed(p, ATOMIC_BYTES);
    const void *gone = iw_guarded(apply, &a, &a.word, 1);
    iw_placed(p, ATOMIC_BYTES);
    if (gone) {
        iw_qp_explain_access(qp, IW_ERR_READ_GONE, r->stag, IW_USE_ATOMIC, r->to, ATOMIC_BYTES);
        return IW_ERR_READ_GONE;
    }
    q.atomic.original = a.old;
    return push_locked(qp, &q);
}

int iw_answer_atomic(struct iw_qp *qp, const struct rdmap_atomic_request *r)
{
    lock_get(&qp->tx.lock);
    iw_copy_begin(qp->pd);
    enum iw_err err = atomic_locked(qp, r);
    iw_copy_end();
    lock_put(&qp->tx.lock);
    return err;
}

static void explain_gone(struct iw_qp *qp, const struct rdmap_read_request *r)
{
    iw_qp_explain_access(qp, IW_ERR_READ_GONE, r->source_stag, IW_USE_READ, r->source_to, r->size);
}

bool iw_answer_begun(const struct iw_qp_tx *tx)
{
    return tx->irq_cut != tx->ird.tail && tx->irq[tx->irq_cut & tx->ird.mask].begun;
}

enum iw_err iw_answer_cut_locked(struct iw_qp *qp, bool *whole)
{
    struct iw_irq_entry *q = &qp->tx.irq[qp->tx.irq_cut & qp->tx.ird.mask];
    struct iwc_msg m = {.cut = q->cut, .begun = q->begun};
    uint8_t hdr[RDMAP_ATOMIC_RESPONSE_HDR];
    struct iovec iov = {0};
    assert_held(&qp->tx.lock);
    if (q->is_atomic) {
        rdmap_atomic_response_encode(hdr, &q->atomic);
        m.opcode = RDMAP_ATOMIC_RESPONSE;
        m.hdr = hdr;
        m.hdr_len = RDMAP_ATOMIC_RESPONSE_HDR;
    } else {
        uint8_t *p;
        enum iw_err err = source(qp, &q->read, &p);
        if (!err && q->begun && p != q->from)
            err = IW_ERR_READ_STAG;
        if (err)
            return err;
        q->from = p;
        iov = (struct iovec){.iov_base = p, .iov_len = q->read.size};
        m.opcode = RDMAP_READ_RESPONSE;
        m.stag = q->read.sink_stag;
        m.to = q->read.sink_to;
        m.iov = &iov;
        m.niov = 1;
        m.len = q->read.size;
    }
    if (iw_qp_cut_msg_locked(qp, &m, whole)) {
        explain_gone(qp, &q->read);
        return IW_ERR_READ_GONE;
    }
    q->cut = m.cut;
    q->begun = m.begun;
    if (*whole) {
        q->end_pos = qp->tx.half.cut_pos;
        qp->tx.irq_cut++;
    }
    return IW_OK;
}

void iw_answer_retire_locked(struct iw_qp_tx *tx)
{
    assert_held(&tx->lock);
    while (tx->ird.head != tx->irq_cut &&
           tx->irq[tx->ird.head & tx->ird.mask].end_pos <= tx->half.sent_pos)
        tx->ird.head++;
}

enum iw_err iw_answer_revalidate_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    for (uint32_t i = qp->tx.ird.head; i != qp->tx.ird.tail && i != qp->tx.irq_cut + 1; i++) {
        const struct iw_irq_entry *q = &qp->tx.irq[i & qp->tx.ird.mask];
        uint8_t *p;
        if (i == qp->tx.irq_cut && !q->begun)
            break;
        enum iw_err err = q->is_atomic ? IW_OK : source(qp, &q->read, &p);
        if (!err && !q->is_atomic && p != q->from)
            err = IW_ERR_READ_STAG;
        if (err)
            return err;
    }
    return IW_OK;
}

bool iw_answer_gone_locked(struct iw_qp *qp, const uint8_t *p)
{
    assert_held(&qp->tx.lock);
    for (uint32_t i = qp->tx.ird.head; i != qp->tx.ird.tail && i != qp->tx.irq_cut + 1; i++) {
        const struct iw_irq_entry *q = &qp->tx.irq[i & qp->tx.ird.mask];
        if (q->is_atomic || (i == qp->tx.irq_cut && !q->begun) || p < q->from ||
            p - q->from >= q->read.size)
            continue;
        explain_gone(qp, &q->read);
        return true;
    }
    return false;
}

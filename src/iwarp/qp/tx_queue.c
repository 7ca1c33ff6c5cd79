/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting: checks a work request, copies it into the send queue, and decides when it goes out. */
#include "qp/tx_queue.h"

#include "common/usdt.h"
#include "cq/counter.h"
#include "engine/engine.h"
#include "mem/mw.h"
#include "qp/end.h"
#include "qp/link.h"
#include "qp/pacing.h"
#include "qp/rings.h"
#include "qp/rx_stream.h"
#include "qp/section.h"
#include "qp/state.h"
#include "qp/tx_cork.h"
#include "qp/tx_quantum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_BYTES (256 * 1024) /* that go out before a poster may have to look at what came in */

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/** What a verbs opcode needs. */
static const struct verb {
    bool inline_ok;
    bool atomic;    /* an 8-byte answer comes into the scatter list */
    bool extension; /* only to an anywarp peer */
    bool local;     /* no data, nothing on the wire */
    bool uc;        /* UC has it */
    bool ud;        /* UD has it */
    enum ibv_wc_opcode wc;
} verbs[] = {
    [IBV_WR_SEND] = {.inline_ok = true, .uc = true, .ud = true, .wc = IBV_WC_SEND},
    [IBV_WR_SEND_WITH_INV] = {.inline_ok = true, .wc = IBV_WC_SEND},
    [IBV_WR_SEND_WITH_IMM] =
        {.inline_ok = true, .uc = true, .ud = true, .extension = true, .wc = IBV_WC_SEND},
    [IBV_WR_RDMA_WRITE] = {.inline_ok = true, .uc = true, .wc = IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {.inline_ok = true, .uc = true, .wc = IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_READ] = {.wc = IBV_WC_RDMA_READ},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {.atomic = true, .wc = IBV_WC_COMP_SWAP},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {.atomic = true, .wc = IBV_WC_FETCH_ADD},
    [IBV_WR_LOCAL_INV] = {.local = true, .wc = IBV_WC_LOCAL_INV},
    [IBV_WR_BIND_MW] = {.local = true, .wc = IBV_WC_BIND_MW},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

int iw_sq_init(struct iw_sq *sq, const struct ibv_qp_cap *cap, bool sig_all, bool datagrams)
{
    uint32_t size = iw_ring_places(cap->max_send_wr), max_inline = cap->max_inline_data;
    *sq = (struct iw_sq){.max_wr = cap->max_send_wr,
                         .max_sge = cap->max_send_sge,
                         .max_inline = max_inline,
                         .mask = size - 1,
                         .sig_all = sig_all};
    sq->slots = iw_slots_create();
    if (!sq->slots)
        return ENOMEM;
    if (sq->max_wr == 0)
        return 0;
    sq->ring = calloc(size, sizeof(*sq->ring));
    sq->sge = calloc((size_t)size * (sq->max_sge ? sq->max_sge : 1), sizeof(*sq->sge));
    sq->inline_data = calloc(size, max_inline ? max_inline : 1);
    if (datagrams)
        sq->routes = calloc(size, sizeof(*sq->routes));
    return sq->ring && sq->sge && sq->inline_data && (sq->routes || !datagrams) ? 0 : ENOMEM;
}

void iw_sq_fini(struct iw_sq *sq)
{
    iw_slots_release(sq->slots, 1);
    free(sq->ring);
    free(sq->sge);
    free(sq->inline_data);
    free(sq->routes);
}

enum ibv_wc_opcode iw_sq_wc_opcode(const struct iw_sqe *e)
{
    return verbs[e->opcode].wc;
}

/** The call that posts so. */
static const char *const calls[] = {
    [IW_POST_EACH] = "ibv_post_send",
    [IW_POST_ALL] = "ibv_wr_complete",
    [IW_POST_BIND_1] = "ibv_bind_mw",
};

#define refuse(qp, how, ...) iw_refuse_once(&(qp)->refused, calls[how], __VA_ARGS__)

static void total_length(const struct ibv_send_wr *wr, uint64_t *len)
{
    *len = 0;
    for (int i = 0; i < wr->num_sge; i++)
        *len += wr->sg_list[i].length;
}

static int check_local(struct iw_qp *qp, const struct ibv_send_wr *wr, enum iw_post how)
{
    enum ibv_mw_type type = how == IW_POST_BIND_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
    if (wr->send_flags & IBV_SEND_INLINE)
        return refuse(qp, how, INLINE_READ, wr->opcode);
    return wr->opcode == IBV_WR_BIND_MW ? iw_mw_check_wr(qp->pd, wr, type, calls[how]) : 0;
}

static int check_datagram(struct iw_qp *qp, const struct ibv_send_wr *wr, enum iw_post how,
                          uint64_t len)
{
    const struct ibv_ah *ah = wr->wr.ud.ah;
    if (!ah || iw_pd(ah->pd)->root != qp->pd)
        return refuse(qp, how, NO_HANDLE);
    if (len > qp->datagrams->max)
        return refuse(qp, how, DATAGRAM_LENGTH, (unsigned long long)len, qp->datagrams->max);
    return 0;
}

/** Whether a QP of this type has the opcode at all. */
static inline bool is_offered(const struct iw_qp *qp, unsigned opcode)
{
    return opcode < VERBS && (!qp->uc || verbs[opcode].uc) && (!qp->datagrams || verbs[opcode].ud);
}

static inline int check(struct iw_qp *qp, const struct ibv_send_wr *wr, enum iw_post how,
                        uint64_t *len)
{
    const struct iw_sq *sq = &qp->tx.sq;
    *len = 0;
    if (!is_offered(qp, wr->opcode))
        return refuse(qp, how, OPCODE, wr->opcode);
    if (verbs[wr->opcode].extension && !qp->ext && !qp->datagrams)
        return refuse(qp, how, EXTENSION);
    if (wr->send_flags & ~(unsigned)SEND_FLAGS)
        return refuse(qp, how, FLAGS, wr->send_flags);
    if (verbs[wr->opcode].local)
        return check_local(qp, wr, how);
    bool is_inline = wr->send_flags & IBV_SEND_INLINE;
    if (wr->num_sge < 0 || (!is_inline && (uint32_t)wr->num_sge > sq->max_sge))
        return refuse(qp, how, SEND_SGES, wr->num_sge, sq->max_sge);
    if (wr->num_sge > 0 && !wr->sg_list)
        return refuse(qp, how, NO_SGES, wr->num_sge);
    total_length(wr, len);
    if (*len > IW_MAX_MSG)
        return refuse(qp, how, SEND_LENGTH);
    if (verbs[wr->opcode].atomic && *len != sizeof(uint64_t))
        return refuse(qp, how, ATOMIC_LENGTH, (unsigned long long)*len);
    if (is_inline && !verbs[wr->opcode].inline_ok)
        return refuse(qp, how, INLINE_READ, wr->opcode);
    if (is_inline && *len > sq->max_inline)
        return refuse(qp, how, INLINE_LENGTH, (unsigned long long)*len, sq->max_inline);
    return qp->datagrams ? check_datagram(qp, wr, how, *len) : 0;
}

static void copy_inline(struct iw_sq *sq, uint32_t i, const struct ibv_send_wr *wr)
{
    uint8_t *p = iw_sq_inline(sq, i);
    for (int k = 0; k < wr->num_sge; k++) {
        const struct ibv_sge *sge = &wr->sg_list[k];
        if (sge->length) /* else the address may be anything */
            memcpy(p, (const void *)(uintptr_t)sge->addr, sge->length);
        p += sge->length;
    }
}

/** Copies what the opcode has beside its data. */
static void copy_operands(struct iw_sqe *e, const struct ibv_send_wr *wr)
{
    const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
    if (wr->opcode == IBV_WR_BIND_MW) {
        e->rkey = wr->bind_mw.rkey;
        e->bind.addr = info->addr;
        e->bind.length = info->length;
        e->bind.lkey = info->mr ? info->mr->lkey : 0;
        e->bind.access = info->mw_access_flags;
    } else if (verbs[wr->opcode].atomic) {
        e->rkey = wr->wr.atomic.rkey;
        e->remote_addr = wr->wr.atomic.remote_addr;
        e->compare_add = wr->wr.atomic.compare_add;
        e->swap = wr->wr.atomic.swap;
    } else {
        e->rkey = wr->wr.rdma.rkey;
        e->remote_addr = wr->wr.rdma.remote_addr;
        e->imm_or_inv = wr->invalidate_rkey;
    }
}

/** The program may destroy the address handle as soon as the work request is posted. */
static void copy_address(struct iw_sq *sq, uint32_t i, const struct ibv_send_wr *wr)
{
    sq->ring[i].remote_qpn = wr->wr.ud.remote_qpn;
    sq->ring[i].remote_qkey = wr->wr.ud.remote_qkey;
    sq->ring[i].imm_or_inv = wr->imm_data;
    sq->routes[i] = iw_ah(wr->wr.ud.ah)->route;
}

/** What "anywarp stat" shows of the queue. */
static void tell_use(struct iw_qp *qp)
{
    iw_stats_set(&qp->stats->sq.used, qp->tx.sq.tail - qp->tx.sq.head);
}

/** How many work requests can be posted now. */
static uint32_t room(const struct iw_sq *sq)
{
    return sq->max_wr - (sq->tail - sq->head) - iw_slots_held(sq->slots);
}

static int refuse_full(struct iw_qp *qp, enum iw_post how)
{
    if (!qp->tx.sq.max_wr)
        return refuse(qp, how, NO_SENDS);
    return refuse(qp, how, SEND_FULL, qp->tx.sq.max_wr, iw_slots_held(qp->tx.sq.slots));
}

static int push_locked(struct iw_qp *qp, const struct ibv_send_wr *wr, enum iw_post how)
{
    struct iw_sq *sq = &qp->tx.sq;
    uint64_t len;
    assert_held(&qp->tx.lock);
    int r = check(qp, wr, how, &len);
    if (r)
        return r;
    if (room(sq) == 0)
        return refuse_full(qp, how);
    uint32_t i = sq->tail & sq->mask;
    bool is_inline = wr->send_flags & IBV_SEND_INLINE;
    int nsge = is_inline || verbs[wr->opcode].local ? 0 : wr->num_sge;
    sq->ring[i] = (struct iw_sqe){
        .wr_id = wr->wr_id,
        .len = len,
        .opcode = wr->opcode,
        .flags = wr->send_flags | (sq->sig_all ? IBV_SEND_SIGNALED : 0),
        .nsge = (uint8_t)nsge,
    };
    if (sq->routes)
        copy_address(sq, i, wr);
    else
        copy_operands(&sq->ring[i], wr);
    if (is_inline)
        copy_inline(sq, i, wr);
    for (int k = 0; k < nsge; k++)
        iw_sq_sge(sq, i)[k] = wr->sg_list[k];
    sq->tail++;
    qp->tx.unflushed += len + IW_PACE_WR_WEIGHT;
    USDT4(post, qp->pub.qp_num, wr->wr_id, wr->opcode, len);
    return 0;
}

/* ---- when it goes out ---- */

/* Hints, as all of a poller. */

static uint32_t passes(const struct iw_cq *cq)
{
    return atomic_load_explicit(&cq->poller.passes, memory_order_relaxed);
}

static uint32_t empty_polls(const struct iw_cq *cq)
{
    return atomic_load_explicit(&cq->poller.empty, memory_order_relaxed);
}

/** A number that changes when that of a CQ of the QP does. */
static uint32_t sum(const struct iw_qp *qp, uint32_t (*of)(const struct iw_cq *))
{
    return (qp->send_cq ? of(qp->send_cq) : 0) + (qp->recv_cq ? of(qp->recv_cq) : 0);
}

/** There is one work request to send. @return whether it, and those before, came one by one */
static bool is_single_locked(struct iw_qp *qp)
{
    struct iw_singles *s = &qp->tx.singles;
    uint32_t taken =
        qp->send_cq ? atomic_load_explicit(&qp->send_cq->head, memory_order_relaxed) : 0;
    assert_held(&qp->tx.lock);
    if (qp->tx.sq.tail - qp->tx.sq.cut != 1 || taken == s->taken)
        s->n = 0;
    else if (s->n < IW_PACE_SINGLES)
        s->n++;
    s->taken = taken;
    return s->n == IW_PACE_SINGLES;
}

bool iw_qp_is_polled(const struct iw_qp *qp)
{
    return iw_engine_leased(iw_home_shard(&qp->tx.deferred.home)) &&
           !(qp->send_cq && iw_cq_is_armed(qp->send_cq)) &&
           !(qp->recv_cq && iw_cq_is_armed(qp->recv_cq));
}

void iw_sq_run_deferred(struct iw_deferred *d)
{
    struct iw_qp *qp = container_of(d, struct iw_qp, tx.deferred);
    struct iw_wakes w;
    uint64_t now = iw_now();
    iw_qp_enter(qp, &w);
    bool followed = atomic_load_explicit(&d->followed, memory_order_relaxed);
    bool corked = !followed && iw_cork_locked(qp, iw_qp_is_polled(qp), now, &w);
    if (!corked)
        iw_qp_transmit_locked(qp, &w);
    qp->tx.empty = sum(qp, empty_polls);
    bool failed = iw_qp_unlock(qp, &w);
    if (corked)
        iw_deferred_posted_again(d);
    iw_qp_finish(qp, &w, failed);
}

/**
 * Whether what was posted may wait for a poller's next empty poll. Not the first after the peer was
 * heard or looked for in vain: it may be the one that waits now.
 */
static bool may_wait_locked(struct iw_qp *qp)
{
    uint32_t before = qp->tx.empty;
    bool heard = atomic_load_explicit(&qp->hints.heard, memory_order_relaxed);
    assert_held(&qp->tx.lock);
    if (heard) {
        atomic_store_explicit(&qp->hints.heard, false, memory_order_relaxed);
        iw_cork_pull_locked(&qp->tx);
    }
    qp->tx.empty = sum(qp, empty_polls);
    struct iw_pace_facts f = {.heard = heard,
                              .passed = qp->tx.empty != before,
                              .single = is_single_locked(qp),
                              .cheap = iw_rings_take(qp),
                              .acked = qp->ib && !qp->uc,
                              .quiet = qp->tx.half.sent_pos - qp->tx.cork.quiet_from};
    if (iw_pace_is_awaited(&f)) /* a ping-pong has no time for more */
        return false;
    f.polled = iw_qp_is_polled(qp);
    f.unsent = qp->tx.unflushed;
    f.quantum = iw_quantum_bytes_locked(&qp->tx);
    return iw_pace_post(&f) == IW_PACE_DEFER && iw_deferred_pays(&qp->tx.deferred);
}

/**
 * Whether the poster is to look at what came in, as no poll did and nothing came in since it was
 * asked last. The QP is pinned then: its completions are out, and it may be destroyed.
 */
static bool check_due_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    if (!qp->tx.linked || qp->tx.half.sent_pos - qp->tx.checked.pos < LOOK_BYTES)
        return false;
    uint32_t before = qp->tx.checked.passes;
    bool heard = atomic_load_explicit(&qp->hints.looked_heard, memory_order_relaxed);
    qp->tx.checked.pos = qp->tx.half.sent_pos;
    qp->tx.checked.passes = sum(qp, passes);
    atomic_store_explicit(&qp->hints.looked_heard, false, memory_order_relaxed);
    bool due = qp->tx.checked.passes == before && !heard;
    if (due)
        atomic_fetch_add(&qp->pins, 1);
    return due;
}

/** Whether every one of the list can be posted. */
static int check_all_locked(struct iw_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t len;
    uint32_t left = room(&qp->tx.sq);
    int r = 0;
    assert_held(&qp->tx.lock);
    for (; wr && !r; wr = wr->next)
        r = left-- == 0 ? refuse_full(qp, IW_POST_ALL) : check(qp, wr, IW_POST_ALL, &len);
    return r;
}

/** In RTR, too, by number: perftest's server sends credits to an iWARP peer before it is in RTS. */
static bool may_post_locked(const struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    return qp->tx.state >= (qp->ib ? IBV_QPS_RTR : IBV_QPS_RTS);
}

/** What becomes of what was posted. */
enum turn {
    NOW,    /* it is sent, or flushed */
    LATER,  /* it is left to a pass */
    BEHIND, /* others are to be sent before it. The QP is pinned: another thread may send it, and it
               be destroyed */
};

static enum turn take_turn_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_deferred *d = &qp->tx.deferred;
    assert_held(&qp->tx.lock);
    if (qp->end.flushed) {
        iw_sq_flush_locked(qp, w);
        return NOW;
    }
    if (qp->tx.linked && may_wait_locked(qp)) {
        if (qp->tx.cork.on)
            iw_deferred_posted_again(d);
        else
            iw_deferred_posted(d);
        return LATER;
    }
    if (qp->tx.linked && iw_deferred_is_behind(d)) {
        atomic_fetch_add(&qp->pins, 1);
        return BEHIND;
    }
    iw_qp_transmit_locked(qp, w);
    return NOW;
}

/** As a poll would, if one is to be expected, and so the engine's thread leaves the sockets alone.
 */
static void look_in(struct iw_qp *qp)
{
    if (qp->send_cq && iw_qp_is_polled(qp))
        iw_engine_poll_in(iw_shard_of(&qp->send_cq->poller), &qp->send_cq->poller);
    else
        iw_rx_check(qp);
}

int iw_post_send(struct iw_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
                 enum iw_post how)
{
    struct iw_wakes w;
    struct iw_deferred *d = &qp->tx.deferred;
    iw_deferred_run_passed(d);
    iw_qp_enter(qp, &w);
    int r = 0;
    if (!may_post_locked(qp))
        r = refuse(qp, how, SEND_STATE, iw_qp_state_name(qp->tx.state));
    if (how == IW_POST_ALL && !r)
        r = check_all_locked(qp, wr);
    for (; wr && !r; wr = r ? wr : wr->next)
        r = push_locked(qp, wr, how);
    if (r)
        *bad_wr = wr;
    tell_use(qp);
    if (iw_qp_is_stranded_locked(qp))
        iw_qp_note_news(qp, IW_QP_NEWS_STRANDED, &w);
    enum turn turn = take_turn_locked(qp, &w);
    struct iw_shard *s = iw_home_shard(&d->home);
    bool look = check_due_locked(qp), failed = iw_qp_unlock(qp, &w);

    if (turn != LATER)
        iw_engine_sent(s);
    if (turn == BEHIND)
        iw_deferred_run_behind(d);
    iw_qp_finish(qp, &w, failed);
    if (look)
        look_in(qp);
    if (look || turn == BEHIND)
        atomic_fetch_sub(&qp->pins, (unsigned)look + (turn == BEHIND));
    return r;
}

int iw_post_bind(struct iw_qp *qp, struct iw_mw *mw, const struct ibv_mw_bind *bind)
{
    struct ibv_send_wr *bad_wr, wr = {
                                    .wr_id = bind->wr_id,
                                    .opcode = IBV_WR_BIND_MW,
                                    .send_flags = bind->send_flags,
                                    .bind_mw = {.mw = &mw->pub,
                                                .rkey = ibv_inc_rkey(mw->pub.rkey),
                                                .bind_info = bind->bind_info},
                                };
    int r = iw_post_send(qp, &wr, &bad_wr, IW_POST_BIND_1);
    if (!r)
        mw->pub.rkey = wr.bind_mw.rkey;
    return r;
}

/* ---- completion ---- */

static void count(struct iw_qp *qp, const struct iw_sqe *e, enum ibv_wc_status status)
{
    switch (iw_sq_wc_opcode(e)) {
    case IBV_WC_SEND:
        iw_counted(&qp->counters, IBV_QP_ATTACH_COMP_CNTR_OP_SEND, status, e->len);
        break;
    case IBV_WC_RDMA_WRITE:
        iw_counted(&qp->counters, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE, status, e->len);
        break;
    case IBV_WC_RDMA_READ:
        iw_counted(&qp->counters, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ, status, e->len);
        break;
    default: /* atomics, windows, keys: no counter asks for them */
        break;
    }
}

static void complete_locked(struct iw_qp *qp, const struct iw_sqe *e, enum ibv_wc_status status,
                            struct iw_wakes *w)
{
    count(qp, e, status);
    if (status == IBV_WC_SUCCESS && !(e->flags & IBV_SEND_SIGNALED))
        return;
    struct iw_cqe cqe = {
        .slots = qp->tx.sq.slots,
        .wc.wr_id = e->wr_id,
        .wc.status = status,
        .wc.vendor_err = status ? qp->end.error : 0,
        .wc.opcode = iw_sq_wc_opcode(e),
        .wc.byte_len = (uint32_t)e->len,
        .wc.qp_num = qp->pub.qp_num,
    };
    iw_slots_hold(qp->tx.sq.slots);
    iw_cq_add(qp->send_cq, &cqe, &w->cqs);
}

static bool done(const struct iw_qp *qp, const struct iw_sqe *e)
{
    const struct iw_qp_tx *tx = &qp->tx;
    if (iw_sqe_is_request(e))
        return e->answered;
    if (qp->ib && !qp->uc && !iw_sqe_is_local(e))
        return qp->acks.received >= e->end_pos;
    return tx->half.sent_pos >= e->end_pos || tx->cork.copied_pos >= e->end_pos;
}

void iw_sq_retire_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    while (sq->head != sq->cut && done(qp, iw_sq_at(sq, sq->head))) {
        complete_locked(qp, iw_sq_at(sq, sq->head), IBV_WC_SUCCESS, w);
        sq->head++;
    }
    tell_use(qp);
    if (qp->tx.state == IBV_QPS_SQD && sq->tell_drained && sq->head == sq->drain) {
        sq->tell_drained = false;
        iw_qp_note_event(qp, IBV_EVENT_SQ_DRAINED, w);
    }
}

/* The peer may have ended the connection because it met the key that is dead. */
void iw_sq_finish_local_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    if (sq->cut == sq->tail)
        return;
    const struct iw_sqe *e = iw_sq_at(sq, sq->cut);
    if (!iw_sqe_is_local(e) || !e->stage || !iw_grace_over(&qp->tx.grace))
        return;
    sq->cut++;
    iw_sq_retire_locked(qp, w);
}

void iw_sq_blame_locked(struct iw_sq *sq, enum ibv_wc_status status)
{
    if (sq->head != sq->tail)
        iw_sq_at(sq, sq->head)->status = (uint8_t)status;
}

void iw_sq_blame_at_locked(struct iw_sq *sq, uint64_t offset, enum ibv_wc_status status)
{
    uint32_t i = sq->head;
    while (i != sq->cut && iw_sq_at(sq, i)->end_pos <= offset)
        i++;
    if (i != sq->tail)
        iw_sq_at(sq, i)->status = (uint8_t)status;
}

static void complete_all_locked(struct iw_qp *qp, enum ibv_wc_status status, struct iw_wakes *w)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    for (; sq->head != sq->tail; sq->head++) {
        const struct iw_sqe *e = iw_sq_at(sq, sq->head);
        complete_locked(qp, e, e->status ? e->status : status, w);
    }
    sq->cut = sq->tail;
    tell_use(qp);
}

void iw_sq_flush_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    if (qp->tx.sq.cut != qp->tx.sq.tail)
        iw_grace_drop(&qp->tx.grace);
    complete_all_locked(qp, IBV_WC_WR_FLUSH_ERR, w);
}

void iw_sq_lose_locked(struct iw_qp *qp, struct iw_wakes *w)
{
    complete_all_locked(qp, IBV_WC_SUCCESS, w);
    iw_sq_retire_locked(qp, w); /* in SQD it is drained */
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/chaos.h"

#include "cq/cq.h"
#include "device/async.h"
#include "engine/poller.h"
#include "faults/chaos.h"
#include "faults/plight.h"
#include "faults/stream.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "qp/rx_late.h"
#include "qp/rx_shared.h"
#include "qp/rx_stream.h"
#include "verbs/export.h"
#include "verbs/late_recv.h"
#include "verbs/ops.h"

#include <anywarp/chaos.h>

#define LATE_POLLS   200 /* at most, that do not find a completion which is there */
#define BURST_POLLS  2000
#define BURST_COUNT  8
#define SINGLE_COUNT 32

static void raise_device(struct ibv_context *ctx, enum ibv_event_type type)
{
    struct ibv_async_event ev = {.event_type = type, .element.port_num = 1};
    iw_async_raise(iw_context(ctx), &ev, NULL);
}

/* ---- posting ---- */

static const struct failure {
    enum iw_fault fault;
    enum ibv_wc_status status;
} failures[] = {
    {IW_FAULT_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR},
    {IW_FAULT_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR},
    {IW_FAULT_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR},
    {IW_FAULT_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {IW_FAULT_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR},
    {IW_FAULT_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR},
    {IW_FAULT_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR},
    {IW_FAULT_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR},
    {IW_FAULT_WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR},
    {IW_FAULT_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR},
    {IW_FAULT_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR},
    {IW_FAULT_WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR},
    {IW_FAULT_WC_RESP_TIMEOUT_ERR, IBV_WC_RESP_TIMEOUT_ERR},
    {IW_FAULT_WC_FATAL_ERR, IBV_WC_FATAL_ERR},
    {IW_FAULT_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR},
};

static const struct failure recv_failures[] = {
    {IW_FAULT_RECV_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR},
    {IW_FAULT_RECV_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR},
    {IW_FAULT_RECV_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR},
    {IW_FAULT_RECV_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR},
};

static const struct {
    enum iw_fault fault;
    enum iw_chaos_cut how;
} cuts[] = {
    {IW_FAULT_FIN_AT_MESSAGE, IW_CUT_FIN},
    {IW_FAULT_RST_AT_MESSAGE, IW_CUT_RST},
    {IW_FAULT_SILENCE_AT_MESSAGE, IW_CUT_SILENCE},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** The connection ends now, and the QP's first send or receive that is flushed has another status.
 */
static void fail(struct ibv_qp *qp, enum ibv_wc_status status, bool recv)
{
    struct iw_plight *p = iw_plight(qp);
    if (!p || !iw_qp_was_linked(iw_qp(qp)))
        return;
    pthread_mutex_lock(&p->mutex);
    *(recv ? &p->recv_status : &p->status) = status;
    pthread_mutex_unlock(&p->mutex);
    iw_qp_lose(iw_qp(qp), -ETIMEDOUT);
}

static void cut(struct iw_qp *qp, enum iw_chaos_cut how)
{
    lock_get(&qp->rx.lock);
    lock_get(&qp->tx.lock);
    if (qp->stream)
        iw_chaos_cut(qp->stream, how);
    lock_put(&qp->tx.lock);
    lock_put(&qp->rx.lock);
    if (how != IW_CUT_SILENCE)
        iw_rx_check(qp); /* there is an end to be heard */
}

static int chaos_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    for (size_t i = 0; i < COUNT(failures); i++)
        if (iw_chaos_hit(failures[i].fault, qp))
            fail(qp, failures[i].status, false);
    for (size_t i = 0; i < COUNT(cuts); i++)
        if (iw_chaos_hit(cuts[i].fault, qp))
            cut(iw_qp(qp), cuts[i].how);
    if (iw_chaos_hit(IW_FAULT_DEVICE_FATAL, qp))
        raise_device(qp->context, IBV_EVENT_DEVICE_FATAL);
    if (iw_chaos_hit(IW_FAULT_PORT_FLAP, qp)) {
        raise_device(qp->context, IBV_EVENT_PORT_ERR);
        raise_device(qp->context, IBV_EVENT_PORT_ACTIVE);
    }
    if (iw_chaos_hit(IW_FAULT_POST_SEND, qp)) {
        *bad_wr = wr;
        return ENOMEM;
    }
    return iw_conf()->like ? op_post_send_like(qp, wr, bad_wr) : op_post_send(qp, wr, bad_wr);
}

static int chaos_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    for (size_t i = 0; i < COUNT(recv_failures); i++)
        if (iw_chaos_hit(recv_failures[i].fault, qp))
            fail(qp, recv_failures[i].status, true);
    if (iw_chaos_hit(IW_FAULT_POST_RECV, qp)) {
        *bad_wr = wr;
        return ENOMEM;
    }
    if (late_recv_keep(qp, wr, iw_chaos_hit(IW_FAULT_LATE_RECV, qp)))
        return 0;
    return op_post_recv(qp, wr, bad_wr);
}

static int chaos_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                               struct ibv_recv_wr **bad_wr)
{
    if (iw_chaos_hit(IW_FAULT_SRQ_LIMIT, srq)) {
        struct ibv_async_event ev = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED, .element.srq = srq};
        iw_async_raise(iw_context(srq->context), &ev, &iw_srq(srq)->async_events_read);
    }
    if (iw_chaos_hit(IW_FAULT_POST_SRQ_RECV, srq)) {
        *bad_wr = wr;
        return ENOMEM;
    }
    return op_post_srq_recv(srq, wr, bad_wr);
}

/* ---- polling ---- */

/* Counted by completions, not by polls: how many polls there are is a matter of time. */
static void decide_next(struct ibv_cq *cq, struct iw_plight *p)
{
    uint64_t hit, next = p->taken + 1;
    if (p->decided == next)
        return;
    p->decided = next;
    if ((hit = iw_chaos_hit_at(IW_FAULT_LATE, cq, next)))
        p->hold = 1 + (unsigned)(hit >> 16) % LATE_POLLS;
    if ((hit = iw_chaos_hit_at(IW_FAULT_BURST, cq, next))) {
        p->burst = 2 + (unsigned)(hit >> 16) % (BURST_COUNT - 1);
        p->hold = BURST_POLLS;
    }
    if ((hit = iw_chaos_hit_at(IW_FAULT_SINGLE, cq, next)))
        p->single = 1 + (unsigned)(hit >> 16) % SINGLE_COUNT;
    p->spurious |= iw_chaos_hit_at(IW_FAULT_SPURIOUS, cq, next) != 0;
    if (iw_chaos_hit_at(IW_FAULT_CQ_ERR, cq, next)) {
        struct ibv_async_event ev = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = cq};
        iw_async_raise(iw_context(cq->context), &ev, &iw_cq(cq)->async_events_read);
    }
}

/** Whether what is in the CQ is not shown yet. */
static bool keeps_back(struct iw_cq *cq, struct iw_plight *p)
{
    uint32_t there = atomic_load(&cq->tail) - atomic_load(&cq->head);
    if (!p->hold || !there)
        return false;
    p->hold = p->burst && there >= p->burst ? 0 : p->hold - 1;
    if (!p->hold)
        p->burst = 0;
    p->kept_back = true;
    return true;
}

/** The first work of a QP that failed on request has its status. */
static void dress(struct ibv_cq *cq, struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_WR_FLUSH_ERR)
        return;
    struct iw_qp *qp = iw_qp_find(cq->context, wc->qp_num, false);
    struct iw_plight *p = qp ? iw_plight(&qp->pub) : NULL;
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    enum ibv_wc_status *status = wc->opcode & IBV_WC_RECV ? &p->recv_status : &p->status;
    if (*status != IBV_WC_SUCCESS)
        wc->status = *status;
    *status = IBV_WC_SUCCESS;
    pthread_mutex_unlock(&p->mutex);
}

static int poll_locked(struct ibv_cq *cq, struct iw_plight *p, int n, struct ibv_wc *wc)
{
    decide_next(cq, p);
    if (p->hold && iw_cq_is_empty(iw_cq(cq))) {
        iw_engine_give_way();
        iw_engine_poll(&iw_cq(cq)->poller);
    }
    if (n > 0 && keeps_back(iw_cq(cq), p)) {
        iw_engine_polled(&iw_cq(cq)->poller);
        return 0;
    }
    /* One by one where something is planned: each has its own decision. */
    int got = 0;
    do {
        int r = op_poll_cq(cq, n > 0 ? 1 : n, wc + got);
        if (r <= 0)
            return got ? got : r;
        dress(cq, wc + got++);
        p->taken++;
        decide_next(cq, p);
        if (p->single) {
            p->single--;
            break;
        }
    } while (got < n && !p->hold && !iw_cq_is_empty(iw_cq(cq)));
    return got;
}

/* Who keeps back what a sleeper waits for tells him, or he sleeps for ever. */
static bool owes_event_locked(struct ibv_cq *cq, struct iw_plight *p)
{
    bool owes = p->kept_back && cq->channel && iw_cq_is_armed(iw_cq(cq));
    if (owes)
        p->kept_back = false;
    return owes;
}

static int chaos_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    struct iw_plight *p = iw_plight(cq);
    if (!p)
        return op_poll_cq(cq, n, wc);
    pthread_mutex_lock(&p->mutex);
    int got = poll_locked(cq, p, n, wc);
    bool owes = owes_event_locked(cq, p);
    pthread_mutex_unlock(&p->mutex);
    if (owes)
        iw_channel_raise(iw_cq(cq));
    if (got > 0)
        iw_late_land_all(); /* what a completion of another QP tells of has landed */
    return got;
}

static int chaos_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    if (iw_chaos_hit(IW_FAULT_REQ_NOTIFY_CQ, cq))
        return EINVAL;
    int r = op_req_notify_cq(cq, solicited_only);
    struct iw_plight *p = iw_plight(cq);
    if (!p)
        return r;
    pthread_mutex_lock(&p->mutex);
    bool owes = owes_event_locked(cq, p) || (p->spurious && cq->channel);
    p->spurious = false;
    pthread_mutex_unlock(&p->mutex);
    if (owes)
        iw_channel_raise(iw_cq(cq));
    return r;
}

static atomic_bool opened; /* a context that has the plain functions */

void verbs_chaos_fill_ops(struct verbs_context *v)
{
    if (!iw_chaos_on()) {
        atomic_store_explicit(&opened, true, memory_order_relaxed);
        return;
    }
    v->context.ops.post_send = chaos_post_send;
    v->context.ops.post_recv = chaos_post_recv;
    v->context.ops.post_srq_recv = chaos_post_srq_recv;
    v->context.ops.poll_cq = chaos_poll_cq;
    v->context.ops.req_notify_cq = chaos_req_notify_cq;
}

/** Whether it is asked for by a call that looks for faults at any time. */
static bool is_call(enum iw_fault fault)
{
    switch (fault) {
    case IW_FAULT_POST_SEND:
    case IW_FAULT_POST_RECV:
    case IW_FAULT_POST_SRQ_RECV:
    case IW_FAULT_REQ_NOTIFY_CQ:
        return false;
    default:
        return iw_fault_info(fault)->error != 0;
    }
}

VERBS_EXPORT int anywarp_chaos_next(const char *name, unsigned skip)
{
    enum iw_fault fault = name ? iw_fault_find(name) : IW_FAULTS;
    if (name && fault == IW_FAULTS)
        return ENOENT;
    if (name && !is_call(fault) && atomic_load_explicit(&opened, memory_order_relaxed))
        return EBUSY;
    iw_chaos_next(fault, skip);
    return 0;
}

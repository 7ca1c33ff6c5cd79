/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/record.h"

#include "observe/record.h"

#include <errno.h>

#define LIST_MAX 16 /* of a list, work requests that are told how they ended */

static struct ibv_context_ops under; /* what the slots had; the same in each context */

static uint64_t bytes_of(const struct ibv_sge *sge, int n)
{
    uint64_t sum = 0;
    for (int i = 0; sge && i < n; i++)
        sum += sge[i].length;
    return sum;
}

/* ---- posting ---- */

static struct iw_recorded begin_send(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t len = bytes_of(wr->sg_list, wr->num_sge);
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
        return iw_record(POST_RDMA, qp->qp_num, wr->opcode, wr->wr_id, len, wr->send_flags,
                         wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return iw_record(POST_RDMA, qp->qp_num, wr->opcode, wr->wr_id, len, wr->send_flags,
                         wr->wr.atomic.rkey, wr->wr.atomic.remote_addr);
    default:
        return iw_record(POST_SEND, qp->qp_num, wr->opcode, wr->wr_id, len, wr->send_flags);
    }
}

/* The work requests of one list: all of them begin before it is posted. */
struct posted {
    struct iw_recorded of[LIST_MAX];
    int n;
};

static void add(struct posted *l, struct iw_recorded r)
{
    if (l->n < LIST_MAX)
        l->of[l->n++] = r;
    else
        iw_record_end(r, 0);
}

/** @param good  how many were posted */
static void end_list(struct posted *l, int good, int result)
{
    for (int i = 0; i < l->n; i++)
        iw_record_end(l->of[i], i < good ? 0 : i == good ? result : ECANCELED);
}

static int record_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct posted l = {.n = 0};
    int good = 0;
    for (const struct ibv_send_wr *w = wr; w; w = w->next)
        add(&l, begin_send(qp, w));
    int r = under.post_send(qp, wr, bad_wr);
    for (const struct ibv_send_wr *w = wr; w && (!r || w != *bad_wr) && good < l.n; w = w->next)
        good++;
    end_list(&l, good, r);
    return r;
}

static int record_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct posted l = {.n = 0};
    int good = 0;
    for (const struct ibv_recv_wr *w = wr; w; w = w->next)
        add(&l, iw_record(POST_RECV, qp->qp_num, w->wr_id, bytes_of(w->sg_list, w->num_sge)));
    int r = under.post_recv(qp, wr, bad_wr);
    for (const struct ibv_recv_wr *w = wr; w && (!r || w != *bad_wr) && good < l.n; w = w->next)
        good++;
    end_list(&l, good, r);
    return r;
}

static int record_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                struct ibv_recv_wr **bad_wr)
{
    struct posted l = {.n = 0};
    int good = 0;
    for (const struct ibv_recv_wr *w = wr; w; w = w->next)
        add(&l,
            iw_record(POST_SRQ_RECV, (uintptr_t)srq, w->wr_id, bytes_of(w->sg_list, w->num_sge)));
    int r = under.post_srq_recv(srq, wr, bad_wr);
    for (const struct ibv_recv_wr *w = wr; w && (!r || w != *bad_wr) && good < l.n; w = w->next)
        good++;
    end_list(&l, good, r);
    return r;
}

void verbs_record_send(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    for (; wr; wr = wr->next)
        iw_record_end(begin_send(qp, wr), 0);
}

/* ---- polling ---- */

void verbs_record_completion(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
    iw_record_note(COMPLETION, (uintptr_t)cq, wc->qp_num, wc->wr_id, wc->status, wc->opcode,
                   wc->byte_len, wc->vendor_err);
}

static int record_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = under.poll_cq(cq, n, wc);
    for (int i = 0; i < got; i++)
        verbs_record_completion(cq, &wc[i]);
    if (!got)
        iw_record_empty(cq);
    return got;
}

static int record_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    struct iw_recorded r = iw_record(REQ_NOTIFY_CQ, (uintptr_t)cq, solicited_only != 0);
    return iw_record_end(r, under.req_notify_cq(cq, solicited_only));
}

/* ---- windows ---- */

static struct ibv_mw *record_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct iw_recorded r = iw_record(ALLOC_MW, 0, (uintptr_t)pd);
    struct ibv_mw *mw = under.alloc_mw(pd, type);
    iw_record_made(r, mw, mw ? mw->rkey : 0, errno);
    return mw;
}

static int record_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct iw_recorded r = iw_record(BIND_MW, mw->rkey, qp->qp_num, bind->wr_id);
    return iw_record_end(r, under.bind_mw(qp, mw, bind));
}

static int record_dealloc_mw(struct ibv_mw *mw)
{
    struct iw_recorded r = iw_record(DEALLOC_MW, mw->rkey);
    return iw_record_end(r, under.dealloc_mw(mw));
}

void verbs_record_fill_ops(struct verbs_context *v)
{
    if (!iw_record_on())
        return;
    under = v->context.ops;
    v->context.ops.post_send = record_post_send;
    v->context.ops.post_recv = record_post_recv;
    v->context.ops.post_srq_recv = record_post_srq_recv;
    v->context.ops.poll_cq = record_poll_cq;
    v->context.ops.req_notify_cq = record_req_notify_cq;
    v->context.ops.alloc_mw = record_alloc_mw;
    v->context.ops.bind_mw = record_bind_mw;
    v->context.ops.dealloc_mw = record_dealloc_mw;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests: the same ones in the words of verbs, a few at a time. What comes before one that
 * cannot be posted is posted.
 */
#include <errno.h>

#include "kverbs/ah.h"
#include "kverbs/dma.h"
#include "kverbs/mr.h"
#include "kverbs/qp.h"
#include "kverbs/srq.h"

enum { WRS = 8, SGES = 32 };

static const struct {
    enum ibv_wr_opcode verb;
    bool offered;
} opcodes[] = {
    [IB_WR_RDMA_WRITE] = {IBV_WR_RDMA_WRITE, true},
    [IB_WR_RDMA_WRITE_WITH_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, true},
    [IB_WR_SEND] = {IBV_WR_SEND, true},
    [IB_WR_SEND_WITH_IMM] = {IBV_WR_SEND_WITH_IMM, true},
    [IB_WR_RDMA_READ] = {IBV_WR_RDMA_READ, true},
    [IB_WR_ATOMIC_CMP_AND_SWP] = {IBV_WR_ATOMIC_CMP_AND_SWP, true},
    [IB_WR_ATOMIC_FETCH_AND_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, true},
    [IB_WR_SEND_WITH_INV] = {IBV_WR_SEND_WITH_INV, true},
    [IB_WR_LOCAL_INV] = {IBV_WR_LOCAL_INV, true},
    [IB_WR_REG_MR] = {IBV_WR_BIND_MW, true},
    [IB_WR_REG_SIG_MR] = {IBV_WR_SEND, false},
};

/* Entries of inline data have no key. */
static int convert_sges(struct kv_pd *pd, struct ibv_sge *to, const struct ib_sge *from, int n,
                        bool is_inline)
{
    for (int i = 0; i < n; i++) {
        to[i] = (struct ibv_sge){from[i].addr, from[i].length, from[i].lkey};
        if (is_inline || from[i].length == 0)
            continue;
        if (from[i].lkey != pd->ib.local_dma_lkey) {
            to[i].lkey = kv_mr_lkey(pd, from[i].lkey);
            continue;
        }
        struct ibv_mr *mr = kv_dma_region(pd, from[i].addr, from[i].length);
        if (!mr)
            return -EINVAL;
        to[i].lkey = mr->lkey;
    }
    return 0;
}

struct sends {
    struct kv_qp *qp;
    struct ib_send_wr **bad;
    struct ibv_send_wr wr[WRS];
    struct ib_send_wr *from[WRS];
    struct ibv_sge sge[SGES];
    int n, sges;
};

static int flush_sends(struct sends *s)
{
    if (s->n == 0)
        return 0;
    for (int i = 0; i + 1 < s->n; i++)
        s->wr[i].next = &s->wr[i + 1];
    struct ibv_send_wr *bad;
    int e = ibv_post_send(s->qp->verb, s->wr, &bad);
    if (e)
        *s->bad = s->from[bad - s->wr];
    s->n = s->sges = 0;
    return -e;
}

static int convert_send(struct kv_pd *pd, struct ibv_send_wr *v, const struct ib_send_wr *wr)
{
    if ((unsigned)wr->opcode >= ARRAY_SIZE(opcodes))
        return -EINVAL;
    if (!opcodes[wr->opcode].offered)
        return -EOPNOTSUPP;
    v->wr_id = wr->wr_id;
    v->opcode = opcodes[wr->opcode].verb;
    v->send_flags = (unsigned)wr->send_flags;
    v->imm_data = wr->ex.imm_data;
    switch (wr->opcode) {
    case IB_WR_RDMA_WRITE:
    case IB_WR_RDMA_WRITE_WITH_IMM:
    case IB_WR_RDMA_READ:
        v->wr.rdma.remote_addr = rdma_wr(wr)->remote_addr;
        v->wr.rdma.rkey = rdma_wr(wr)->rkey;
        return 0;
    case IB_WR_ATOMIC_CMP_AND_SWP:
    case IB_WR_ATOMIC_FETCH_AND_ADD:
        v->wr.atomic.remote_addr = atomic_wr(wr)->remote_addr;
        v->wr.atomic.compare_add = atomic_wr(wr)->compare_add;
        v->wr.atomic.swap = atomic_wr(wr)->swap;
        v->wr.atomic.rkey = atomic_wr(wr)->rkey;
        return 0;
    case IB_WR_LOCAL_INV:
        return kv_mr_invalidate(pd, &v->invalidate_rkey);
    case IB_WR_REG_MR:
        return kv_mr_bind(pd, reg_wr(wr), v);
    default:
        return 0;
    }
}

static int add_send(struct sends *s, struct ib_send_wr *wr)
{
    if (wr->num_sge < 0 || wr->num_sge > SGES)
        return -EINVAL;
    if (s->n == WRS || s->sges + wr->num_sge > SGES) {
        int ret = flush_sends(s);
        if (ret)
            return ret;
    }
    struct kv_pd *pd = kv_pd(s->qp->ib.pd);
    struct ibv_send_wr *v = &s->wr[s->n];
    *v = (struct ibv_send_wr){.sg_list = &s->sge[s->sges], .num_sge = wr->num_sge};
    int ret = convert_send(pd, v, wr);
    if (ret == 0 && s->qp->ib.qp_type == IB_QPT_UD) {
        if (!ud_wr(wr)->ah)
            return -EINVAL;
        v->wr.ud.ah = kv_ah(ud_wr(wr)->ah)->verb;
        v->wr.ud.remote_qpn = ud_wr(wr)->remote_qpn;
        v->wr.ud.remote_qkey = ud_wr(wr)->remote_qkey;
    }
    if (ret == 0)
        ret =
            convert_sges(pd, v->sg_list, wr->sg_list, wr->num_sge, wr->send_flags & IB_SEND_INLINE);
    if (ret)
        return ret;
    s->from[s->n++] = wr;
    s->sges += wr->num_sge;
    return 0;
}

int ib_post_send(struct ib_qp *qp, struct ib_send_wr *wr, struct ib_send_wr **bad)
{
    struct sends s = {.qp = kv_qp(qp), .bad = bad};
    for (; wr; wr = wr->next) {
        *bad = wr;
        int ret = add_send(&s, wr);
        if (ret) {
            int before = flush_sends(&s);
            return before ? before : ret;
        }
    }
    return flush_sends(&s);
}

struct receives {
    struct kv_pd *pd;
    struct ibv_qp *qp; /* NULL: the SRQ's */
    struct ibv_srq *srq;
    struct ib_recv_wr **bad;
    struct ibv_recv_wr wr[WRS];
    struct ib_recv_wr *from[WRS];
    struct ibv_sge sge[SGES];
    int n, sges;
};

static int flush_receives(struct receives *r)
{
    if (r->n == 0)
        return 0;
    for (int i = 0; i + 1 < r->n; i++)
        r->wr[i].next = &r->wr[i + 1];
    struct ibv_recv_wr *bad;
    int e = r->qp ? ibv_post_recv(r->qp, r->wr, &bad) : ibv_post_srq_recv(r->srq, r->wr, &bad);
    if (e)
        *r->bad = r->from[bad - r->wr];
    r->n = r->sges = 0;
    return -e;
}

static int add_receive(struct receives *r, struct ib_recv_wr *wr)
{
    if (wr->num_sge < 0 || wr->num_sge > SGES)
        return -EINVAL;
    if (r->n == WRS || r->sges + wr->num_sge > SGES) {
        int ret = flush_receives(r);
        if (ret)
            return ret;
    }
    struct ibv_recv_wr *v = &r->wr[r->n];
    *v = (struct ibv_recv_wr){
        .wr_id = wr->wr_id, .sg_list = &r->sge[r->sges], .num_sge = wr->num_sge};
    int ret = convert_sges(r->pd, v->sg_list, wr->sg_list, wr->num_sge, false);
    if (ret)
        return ret;
    r->from[r->n++] = wr;
    r->sges += wr->num_sge;
    return 0;
}

static int post_receives(struct receives *r, struct ib_recv_wr *wr)
{
    for (; wr; wr = wr->next) {
        *r->bad = wr;
        int ret = add_receive(r, wr);
        if (ret) {
            int before = flush_receives(r);
            return before ? before : ret;
        }
    }
    return flush_receives(r);
}

int ib_post_recv(struct ib_qp *qp, struct ib_recv_wr *wr, struct ib_recv_wr **bad)
{
    struct receives r = {.pd = kv_pd(qp->pd), .qp = kv_qp(qp)->verb, .bad = bad};
    return post_receives(&r, wr);
}

int ib_post_srq_recv(struct ib_srq *srq, struct ib_recv_wr *wr, struct ib_recv_wr **bad)
{
    struct receives r = {.pd = kv_pd(srq->pd), .srq = kv_srq(srq)->verb, .bad = bad};
    return post_receives(&r, wr);
}

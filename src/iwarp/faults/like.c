/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/like.h"

#include "env/adapter.h"
#include "env/conf.h"
#include "env/log.h"

#include <errno.h>

/** The limit of the adapter, or NULL: none is known. */
static const struct iw_adapter_limit *limit_of(enum iw_limit which)
{
    const struct iw_adapter *a = iw_conf()->like;
    return a && a->limit[which].source ? &a->limit[which] : NULL;
}

static void lower(int *value, enum iw_limit which)
{
    const struct iw_adapter_limit *l = limit_of(which);
    if (l && l->value < (uint32_t)*value)
        *value = (int)l->value;
}

void iw_like_attr(struct ibv_device_attr *a)
{
    lower(&a->max_qp_wr, IW_LIMIT_QP_WR);
    lower(&a->max_sge, IW_LIMIT_SEND_SGE);
    lower(&a->max_sge, IW_LIMIT_RECV_SGE);
    lower(&a->max_sge_rd, IW_LIMIT_READ_SGE);
    lower(&a->max_cqe, IW_LIMIT_CQE);
    lower(&a->max_srq, IW_LIMIT_SRQ);
    lower(&a->max_srq_wr, IW_LIMIT_SRQ);
    lower(&a->max_srq_wr, IW_LIMIT_SRQ_WR);
    lower(&a->max_srq_sge, IW_LIMIT_SRQ);
    lower(&a->max_srq_sge, IW_LIMIT_SRQ_SGE);
    lower(&a->max_mw, IW_LIMIT_MW);
    lower(&a->max_qp_rd_atom, IW_LIMIT_IRD);
    lower(&a->max_qp_init_rd_atom, IW_LIMIT_ORD);
    lower(&a->max_mcast_grp, IW_LIMIT_MCAST);
    lower(&a->max_mcast_qp_attach, IW_LIMIT_MCAST);
    lower(&a->max_total_mcast_qp_attach, IW_LIMIT_MCAST);
    if (!a->max_mw)
        a->device_cap_flags &= ~(unsigned)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    if (limit_of(IW_LIMIT_ATOMICS))
        a->atomic_cap = IBV_ATOMIC_NONE;
}

/** Whether @p asked is more than the adapter has of it; the log tells. */
static bool beyond(enum iw_limit which, uint64_t asked)
{
    const struct iw_adapter_limit *l = limit_of(which);
    if (!l || asked <= l->value)
        return false;
    iw_log(IW_LOG_WARN, "refused as %s would: %s %llu, it has %u (%s)", iw_conf()->like->name,
           iw_limit_name(which), (unsigned long long)asked, l->value, l->source);
    return true;
}

/** Whether the adapter does not have an object or operation at all. */
static bool lacks(enum iw_limit which)
{
    const struct iw_adapter_limit *l = limit_of(which);
    if (!l || l->value)
        return false;
    iw_log(IW_LOG_WARN, "refused as %s would: %s, it has none (%s)", iw_conf()->like->name,
           iw_limit_name(which), l->source);
    return true;
}

int iw_like_qp(const struct ibv_qp_init_attr *attr)
{
    const struct ibv_qp_cap *c = &attr->cap;
    bool own_rq = !attr->srq;
    enum iw_limit recv_wr = limit_of(IW_LIMIT_RECV_WR) ? IW_LIMIT_RECV_WR : IW_LIMIT_QP_WR;
    if (attr->qp_type == IBV_QPT_RC && lacks(IW_LIMIT_RC))
        return EOPNOTSUPP;
    return beyond(IW_LIMIT_QP_WR, c->max_send_wr) || (own_rq && beyond(recv_wr, c->max_recv_wr)) ||
                   beyond(IW_LIMIT_SEND_SGE, c->max_send_sge) ||
                   (own_rq && beyond(IW_LIMIT_RECV_SGE, c->max_recv_sge)) ||
                   beyond(IW_LIMIT_INLINE, c->max_inline_data)
               ? EINVAL
               : 0;
}

int iw_like_ops(uint64_t ops)
{
    const uint64_t atomics =
        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    return ((ops & atomics) && lacks(IW_LIMIT_ATOMICS)) ||
                   ((ops & IBV_QP_EX_WITH_SEND_WITH_IMM) && lacks(IW_LIMIT_SEND_IMM)) ||
                   ((ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) && lacks(IW_LIMIT_WRITE_IMM)) ||
                   ((ops & IBV_QP_EX_WITH_BIND_MW) && lacks(IW_LIMIT_MW))
               ? EOPNOTSUPP
               : 0;
}

int iw_like_cq(int64_t cqe)
{
    return cqe > 0 && beyond(IW_LIMIT_CQE, (uint64_t)cqe) ? EINVAL : 0;
}

int iw_like_srq(const struct ibv_srq_attr *attr)
{
    if (lacks(IW_LIMIT_SRQ))
        return EOPNOTSUPP;
    return beyond(IW_LIMIT_SRQ_WR, attr->max_wr) || beyond(IW_LIMIT_SRQ_SGE, attr->max_sge) ? EINVAL
                                                                                            : 0;
}

int iw_like_mw(void)
{
    return lacks(IW_LIMIT_MW) ? EOPNOTSUPP : 0;
}

int iw_like_mcast(void)
{
    return lacks(IW_LIMIT_MCAST) ? EOPNOTSUPP : 0;
}

int iw_like_send(const struct ibv_send_wr *wr)
{
    bool refused = false;
    switch (wr->opcode) {
    case IBV_WR_RDMA_READ:
        refused = wr->num_sge > 0 && beyond(IW_LIMIT_READ_SGE, (uint64_t)wr->num_sge);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        refused = lacks(IW_LIMIT_ATOMICS);
        break;
    case IBV_WR_SEND_WITH_IMM:
        refused = lacks(IW_LIMIT_SEND_IMM);
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        refused = lacks(IW_LIMIT_WRITE_IMM);
        break;
    case IBV_WR_BIND_MW:
        refused = lacks(IW_LIMIT_MW);
        break;
    default:
        break;
    }
    return refused ? EINVAL : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "advice/life.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "faults/plight.h"
#include "observe/record.h"
#include "qp/rx_shared.h"
#include "verbs/export.h"
#include "verbs/ops.h"

#define EX "ibv_create_srq_ex"

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (!pd || !attr)
        return null_errno(iw_refuse("ibv_create_srq", ARGUMENT));
    int r = iw_like_srq(&attr->attr);
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_CREATE_SRQ, NULL))
        return null_errno(ENOMEM);
    struct iw_srq *srq = iw_srq_create(iw_pd(pd), attr);
    if (!srq)
        return NULL;
    iw_plight_born(&srq->pub, "srq");
    iw_life_begin(&srq->pub, "SRQ");
    return &srq->pub;
}

VERBS_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct iw_recorded r = iw_record(CREATE_SRQ, 0, attr ? attr->attr.max_wr : 0);
    struct ibv_srq *srq = create_srq(pd, attr);
    iw_record_made(r, srq, (uintptr_t)srq, errno);
    return srq;
}

/* The header's inline turns the plain case into ibv_create_srq(); what is left needs XRC or tags.
 */
struct ibv_srq *op_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t plain = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    (void)context;
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
        return null_errno(iw_refuse(EX, VALUE, "no protection domain in comp_mask"));
    if ((attr->comp_mask & ~plain) ||
        ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC))
        return null_errno(iw_refuse(EX, ATTRIBUTE, "comp_mask or srq_type: no XRC, no tags"));
    return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    if (!srq || !attr)
        return iw_refuse("ibv_modify_srq", ARGUMENT);
    return iw_chaos(IW_FAULT_MODIFY_SRQ, NULL) ? ENOMEM : iw_srq_modify(iw_srq(srq), attr, mask);
}

VERBS_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    struct iw_recorded r = iw_record(MODIFY_SRQ, (uintptr_t)srq, (uint32_t)mask);
    return iw_record_end(r, modify_srq(srq, attr, mask));
}

VERBS_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    if (!srq || !attr)
        return iw_refuse(__func__, ARGUMENT);
    iw_srq_query(iw_srq(srq), attr);
    return 0;
}

static int destroy_srq(struct ibv_srq *srq)
{
    if (!srq)
        return iw_refuse("ibv_destroy_srq", ARGUMENT);
    int r = iw_life_over(srq, "ibv_destroy_srq");
    if (r)
        return r;
    unsigned users = atomic_load(&iw_srq(srq)->users);
    if (users)
        return iw_refuse("ibv_destroy_srq", SRQ_USED, users);
    settle_async_events(srq->context, srq,
                        &(struct async_acks){.call = "ibv_destroy_srq",
                                             .read = &iw_srq(srq)->async_events_read,
                                             .completed = &srq->events_completed,
                                             .mutex = &srq->mutex,
                                             .cond = &srq->cond});
    return iw_srq_destroy(iw_srq(srq));
}

VERBS_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct iw_recorded r = iw_record(DESTROY_SRQ, (uintptr_t)srq);
    return iw_record_end(r, destroy_srq(srq));
}

int op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    return iw_srq_post(iw_srq(srq), wr, bad_wr);
}

int op_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
    (void)srq;
    *bad_op = op;
    return iw_refuse("ibv_post_srq_ops", OFFERED);
}

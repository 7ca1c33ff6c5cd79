/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. Polling and arming are in post.c. */
#include "cq/cq.h"
#include "advice/life.h"
#include "advice/shadow.h"
#include "device/context.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "faults/plight.h"
#include "mem/pd.h"
#include "observe/record.h"
#include "qp/overrun.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/ops.h"

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                struct ibv_comp_channel *channel, int comp_vector)
{
    if (!context)
        return null_errno(iw_refuse("ibv_create_cq", ARGUMENT));
    int r = iw_like_cq(cqe);
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_CREATE_CQ, NULL))
        return null_errno(ENOMEM);
    struct iw_cq *cq = iw_cq_create(context, cqe, cq_context, channel, comp_vector, iw_qps_fail);
    if (!cq)
        return NULL;
    atomic_fetch_add(&iw_context(context)->users, 1);
    iw_plight_born(&cq->pub, "cq");
    verbs_check_cq(cq);
    return &cq->pub;
}

VERBS_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                          struct ibv_comp_channel *channel, int comp_vector)
{
    struct iw_recorded r = iw_record(CREATE_CQ, 0, (uint32_t)cqe, (uintptr_t)channel);
    struct ibv_cq *cq = create_cq(context, cqe, cq_context, channel, comp_vector);
    iw_record_made(r, cq, (uintptr_t)cq, errno);
    return cq;
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
    if (!cq)
        return iw_refuse("ibv_resize_cq", ARGUMENT);
    int r = iw_life_over(cq, "ibv_resize_cq");
    if (!r)
        r = iw_like_cq(cqe);
    if (!r && iw_chaos(IW_FAULT_RESIZE_CQ, NULL))
        r = ENOMEM;
    if (!r)
        r = iw_cq_resize(iw_cq(cq), cqe);
    if (!r)
        iw_shadow_cq_resized(iw_cq(cq)->shadow, cq->cqe);
    return r;
}

VERBS_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    struct iw_recorded r = iw_record(RESIZE_CQ, (uintptr_t)cq, (uint32_t)cqe);
    return iw_record_end(r, resize_cq(cq, cqe));
}

int op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    if (!attr->attr_mask)
        return iw_refuse("ibv_modify_cq", VALUE, "an attr_mask of 0");
    if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
        return iw_refuse("ibv_modify_cq", ATTRIBUTE, "attr_mask: only moderation");
    return iw_cq_moderate(iw_cq(cq), attr->moderate.cq_count, attr->moderate.cq_period);
}

static int destroy_cq(struct ibv_cq *cq)
{
    if (!cq)
        return iw_refuse("ibv_destroy_cq", ARGUMENT);
    int r = iw_life_over(cq, "ibv_destroy_cq");
    if (r)
        return r;
    struct iw_context *ctx = iw_context(cq->context);
    struct iw_pd *parent = iw_cq(cq)->parent;
    r = iw_cq_destroy(iw_cq(cq));
    if (!r)
        iw_context_put(ctx);
    if (!r && parent)
        atomic_fetch_sub(&parent->users, 1);
    return r;
}

VERBS_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct iw_recorded r = iw_record(DESTROY_CQ, (uintptr_t)cq);
    return iw_record_end(r, destroy_cq(cq));
}

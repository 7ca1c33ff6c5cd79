/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs. Posting is in post.c. */
#include "qp/qp.h"
#include "device/context.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "faults/plight.h"
#include "verbs/export.h"
#include "verbs/ops.h"

VERBS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init_attr)
{
    if (!pd || !init_attr)
        return null_errno(iw_refuse("ibv_create_qp", ARGUMENT));
    int r = iw_like_qp(init_attr);
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_CREATE_QP, NULL))
        return null_errno(ENOMEM);
    struct iw_qp *qp = iw_qp_create(iw_pd(pd), init_attr);
    if (!qp)
        return NULL;
    iw_plight_born(&qp->pub, "qp");
    return &qp->pub;
}

VERBS_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    if (!qp || !attr)
        return iw_refuse("ibv_modify_qp", ARGUMENT);
    return iw_chaos(IW_FAULT_MODIFY_QP, NULL) ? ENOMEM : iw_qp_modify(iw_qp(qp), attr, attr_mask);
}

VERBS_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                              struct ibv_qp_init_attr *init_attr)
{
    struct ibv_qp_init_attr unwanted;
    (void)attr_mask; /* more than asked for is always allowed */
    if (!qp || !attr)
        return iw_refuse("ibv_query_qp", ARGUMENT);
    iw_qp_query(iw_qp(qp), attr, init_attr ? init_attr : &unwanted);
    return 0;
}

VERBS_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    if (!qp)
        return iw_refuse("ibv_destroy_qp", ARGUMENT);
    iw_qp_stop(iw_qp(qp));
    /* Also those that the close itself raised. */
    settle_async_events(qp->context, qp,
                        &(struct async_acks){.call = "ibv_destroy_qp",
                                             .read = &iw_qp(qp)->async_events_read,
                                             .completed = &qp->events_completed,
                                             .mutex = &qp->mutex,
                                             .cond = &qp->cond});
    iw_qp_free(iw_qp(qp));
    return 0;
}

VERBS_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return qp && iw_qp(qp)->builder ? &iw_qp(qp)->pub_ex : NULL;
}

VERBS_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
                                            uint32_t flags)
{
    (void)qp, (void)op, (void)flags;
    return 0;
}

VERBS_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return errno = EOPNOTSUPP;
}

VERBS_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return errno = EOPNOTSUPP;
}

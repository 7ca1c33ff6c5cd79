/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs. Posting is in post.c. */
#include "rnic/qp.h"
#include "rnic/context.h"
#include "verbs/export.h"

VERBS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init_attr)
{
    if (!pd || !init_attr)
        return null_errno(EINVAL);
    struct iw_qp *qp = iw_qp_create(iw_pd(pd), init_attr);
    return qp ? &qp->pub : NULL;
}

VERBS_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    return qp && attr ? iw_qp_modify(iw_qp(qp), attr, attr_mask) : EINVAL;
}

VERBS_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                              struct ibv_qp_init_attr *init_attr)
{
    struct ibv_qp_init_attr unwanted;
    (void)attr_mask; /* more than asked for is always allowed */
    if (!qp || !attr)
        return EINVAL;
    iw_qp_query(iw_qp(qp), attr, init_attr ? init_attr : &unwanted);
    return 0;
}

/** Drops asynchronous events nobody has read, and waits until those read are acknowledged. */
static void settle_events(struct iw_qp *qp)
{
    struct iw_context *ctx = iw_context(qp->pub.context);
    int state;
    iw_async_drop(ctx, &qp->pub);
    lock_get(&ctx->lock);
    unsigned read = qp->async_events_read;
    lock_put(&ctx->lock);

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&qp->pub.mutex);
    while ((int)(qp->pub.events_completed - read) < 0)
        pthread_cond_wait(&qp->pub.cond, &qp->pub.mutex);
    pthread_mutex_unlock(&qp->pub.mutex);
    pthread_setcancelstate(state, &state);
}

VERBS_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    if (!qp)
        return EINVAL;
    iw_qp_stop(iw_qp(qp));
    settle_events(iw_qp(qp)); /* also those that the close itself raised */
    iw_qp_free(iw_qp(qp));
    return 0;
}

VERBS_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    (void)qp; /* only a QP made with send operations has that view */
    return NULL;
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

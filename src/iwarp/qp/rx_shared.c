/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_shared.h"

#include "advice/life.h"
#include "device/context.h"
#include "observe/stats.h"
#include "qp/rx_place.h"

#include <errno.h>
#include <stdlib.h>

struct iw_srq *iw_srq_create(struct iw_pd *pd, struct ibv_srq_init_attr *init)
{
    const struct ibv_srq_attr *a = &init->attr;
    if (a->max_wr == 0 || a->max_wr > IW_MAX_SRQ_WR || a->max_sge > IW_MAX_SGE ||
        a->srq_limit > a->max_wr) {
        errno = iw_refuse("ibv_create_srq", SRQ_SIZE, a->max_wr, IW_MAX_SRQ_WR, a->max_sge,
                          IW_MAX_SGE, a->srq_limit);
        return NULL;
    }
    struct iw_srq *srq = calloc(1, sizeof(*srq));
    if (!srq || iw_rq_init(&srq->rq, a->max_wr, a->max_sge)) {
        if (srq)
            iw_rq_fini(&srq->rq);
        free(srq);
        errno = ENOMEM;
        return NULL;
    }
    srq->pd = pd;
    srq->rq.srq = srq;
    srq->rq.limit = a->srq_limit;
    srq->pub.context = pd->pub.context;
    srq->pub.srq_context = init->srq_context;
    srq->pub.pd = &pd->pub;
    pthread_mutex_init(&srq->pub.mutex, NULL);
    pthread_cond_init(&srq->pub.cond, NULL);
    atomic_fetch_add(&pd->users, 1);
    iw_stats_gauge(STATS_srq, 1);
    return srq;
}

int iw_srq_destroy(struct iw_srq *srq)
{
    unsigned users = atomic_load(&srq->users);
    if (users)
        return iw_refuse("ibv_destroy_srq", SRQ_USED, users);
    iw_stats_gauge(STATS_srq, -1);
    atomic_fetch_sub(&srq->pd->users, 1);
    pthread_mutex_destroy(&srq->pub.mutex);
    pthread_cond_destroy(&srq->pub.cond);
    iw_rq_fini(&srq->rq);
    iw_life_end(srq);
    return 0;
}

int iw_srq_modify(struct iw_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
    if (mask & ~IBV_SRQ_LIMIT)
        return iw_refuse("ibv_modify_srq", SRQ_MODIFY);
    if (!(mask & IBV_SRQ_LIMIT))
        return 0;
    if (attr->srq_limit > srq->rq.max_wr)
        return iw_refuse("ibv_modify_srq", SRQ_LIMIT, attr->srq_limit, srq->rq.max_wr);
    lock_get(&srq->rq.lock);
    srq->rq.limit = attr->srq_limit;
    lock_put(&srq->rq.lock);
    return 0;
}

void iw_srq_query(struct iw_srq *srq, struct ibv_srq_attr *attr)
{
    lock_get(&srq->rq.lock);
    *attr = (struct ibv_srq_attr){
        .max_wr = srq->rq.max_wr,
        .max_sge = srq->rq.max_sge,
        .srq_limit = srq->rq.limit,
    };
    lock_put(&srq->rq.lock);
}

/** The QP that has waited longest, if there is something for it; pinned. It stays until it takes
 * that. */
static struct iw_qp *next_waiting(struct iw_rq *rq)
{
    struct iw_qp *qp = NULL;
    lock_get(&rq->lock);
    if (rq->head != rq->tail && !list_empty(&rq->waiting)) {
        qp = container_of(rq->waiting.next, struct iw_qp, rq_link);
        atomic_fetch_add(&qp->pins, 1);
    }
    lock_put(&rq->lock);
    return qp;
}

int iw_srq_post(struct iw_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct iw_qp *qp;
    int r = 0;
    lock_get(&srq->rq.lock);
    for (; wr && !r; wr = r ? wr : wr->next)
        r = iw_rq_push_locked(&srq->rq, wr);
    lock_put(&srq->rq.lock);
    if (r)
        *bad_wr = wr;
    while ((qp = next_waiting(&srq->rq))) {
        iw_recv_resume(qp);
        atomic_fetch_sub(&qp->pins, 1);
    }
    return r;
}

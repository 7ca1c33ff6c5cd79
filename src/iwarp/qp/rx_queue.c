/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct lock_class locks = LOCK_CLASS(locks, LOCK_RQ);

void iw_rq_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}

int iw_rq_init(struct iw_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
    uint32_t size = iw_ring_places(max_wr);
    *rq = (struct iw_rq){.max_wr = max_wr, .max_sge = max_sge, .mask = size - 1};
    lock_init_in(&rq->lock, &locks);
    list_init(&rq->waiting);
    rq->slots = iw_slots_create();
    if (!rq->slots)
        return ENOMEM;
    if (max_wr == 0)
        return 0;
    rq->ring = calloc(size, sizeof(*rq->ring));
    rq->sge = calloc((size_t)size * (max_sge ? max_sge : 1), sizeof(*rq->sge));
    return rq->ring && rq->sge ? 0 : ENOMEM;
}

void iw_rq_fini(struct iw_rq *rq)
{
    iw_slots_release(rq->slots, 1);
    free(rq->ring);
    free(rq->sge);
    lock_fini(&rq->lock);
}

static void tell_use_locked(struct iw_rq *rq)
{
    assert_held(&rq->lock);
    if (rq->used)
        iw_stats_set(rq->used, rq->tail - rq->head);
}

void iw_rq_clear(struct iw_rq *rq)
{
    lock_get(&rq->lock);
    rq->head = rq->tail;
    tell_use_locked(rq);
    lock_put(&rq->lock);
}

int iw_rq_push_locked(struct iw_rq *rq, const struct ibv_recv_wr *wr)
{
    assert_held(&rq->lock);
    const char *call = rq->srq ? "ibv_post_srq_recv" : "ibv_post_recv";
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
        return iw_refuse_once(&rq->refused, call, RECV_SGES, wr->num_sge, rq->max_sge);
    if (wr->num_sge > 0 && !wr->sg_list)
        return iw_refuse_once(&rq->refused, call, NO_SGES, wr->num_sge);
    uint32_t held = iw_slots_held(rq->slots);
    if (rq->tail - rq->head + held >= rq->max_wr)
        return rq->max_wr ? iw_refuse_once(&rq->refused, call, RECV_FULL, rq->max_wr, held)
                          : iw_refuse_once(&rq->refused, call, NO_RECVS);
    uint32_t i = rq->tail & rq->mask;
    rq->ring[i] = (struct iw_rqe){.wr_id = wr->wr_id, .nsge = wr->num_sge};
    for (int k = 0; k < wr->num_sge; k++)
        rq->sge[(size_t)i * rq->max_sge + k] = wr->sg_list[k];
    rq->tail++;
    tell_use_locked(rq);
    return 0;
}

/** Whether there is a receive, and nobody has waited for it longer. */
static bool is_next_locked(const struct iw_rq *rq, const struct iw_qp *qp)
{
    assert_held(&rq->lock);
    return rq->head != rq->tail && (list_empty(&rq->waiting) || rq->waiting.next == &qp->rq_link);
}

bool iw_rq_pop(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_rq *rq = qp->rq;
    struct iw_recv *out = &qp->rx.recv;
    lock_get(&rq->lock);
    bool any = is_next_locked(rq, qp);
    if (any) {
        uint32_t i = rq->head & rq->mask;
        out->taken = true;
        out->wr_id = rq->ring[i].wr_id;
        out->nsge = rq->ring[i].nsge;
        memcpy(out->sge, rq->sge + (size_t)i * rq->max_sge, out->nsge * sizeof(*out->sge));
        rq->head++;
        tell_use_locked(rq);
        iw_slots_hold(rq->slots);
        list_del(&qp->rq_link);
        if (rq->tail - rq->head < rq->limit) {
            rq->limit = 0;
            w->srq_limit = rq->srq;
        }
    }
    lock_put(&rq->lock);
    return any;
}

bool iw_rq_wait(struct iw_qp *qp)
{
    struct iw_rq *rq = qp->rq;
    lock_get(&rq->lock);
    bool any = is_next_locked(rq, qp);
    if (!any && rq->srq && list_empty(&qp->rq_link))
        list_add_tail(&rq->waiting, &qp->rq_link);
    lock_put(&rq->lock);
    return any;
}

void iw_rq_leave(struct iw_qp *qp)
{
    struct iw_rq *rq = qp->rq;
    if (!rq->srq)
        return;
    lock_get(&rq->lock);
    list_del(&qp->rq_link);
    lock_put(&rq->lock);
}

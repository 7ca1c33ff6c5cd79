/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs/ah.h"
#include "kverbs/census.h"
#include "kverbs/cm_port.h"
#include "kverbs/context.h"
#include "kverbs/cq.h"
#include "kverbs/mr.h"
#include "kverbs/srq.h"

void kv_qp_event(struct kv_qp *qp, struct ib_event *e)
{
    e->element.qp = &qp->ib;
    if (!qp->ib.event_handler)
        return;
    kv_interrupt_begin(qp);
    qp->ib.event_handler(e, qp->ib.qp_context);
    kv_interrupt_end();
}

static struct kv_qp **bucket(struct kv_device *d, u32 number)
{
    return &d->qps[number & (ARRAY_SIZE(d->qps) - 1)];
}

struct ib_qp *kv_qp_completed(struct kv_device *d, const struct ibv_wc *wc)
{
    pthread_mutex_lock(&d->qps_lock);
    struct kv_qp *qp = *bucket(d, wc->qp_num);
    while (qp && qp->ib.qp_num != wc->qp_num)
        qp = qp->next;
    if (qp && wc->status == IBV_WC_SUCCESS && wc->wc_flags & IBV_WC_WITH_INV)
        kv_mr_invalidated(kv_pd(qp->ib.pd), wc->invalidated_rkey);
    pthread_mutex_unlock(&d->qps_lock);
    return qp ? &qp->ib : NULL;
}

struct kv_qp *kv_qp_begin(struct ib_pd *pd, const struct ib_qp_init_attr *init,
                          struct ibv_qp_init_attr *v)
{
    if (init->create_flags || init->xrcd || init->cap.max_rdma_ctxs ||
        init->qp_type == IB_QPT_XRC_INI || init->qp_type == IB_QPT_XRC_TGT)
        return ERR_PTR(-EOPNOTSUPP);
    if (!init->send_cq || !init->recv_cq)
        return ERR_PTR(-EINVAL);
    struct kv_qp *qp = calloc(1, sizeof *qp);
    if (!qp)
        return ERR_PTR(-ENOMEM);
    qp->ib.device = pd->device;
    qp->ib.pd = pd;
    *v = (struct ibv_qp_init_attr){
        .qp_context = qp,
        .send_cq = kv_cq(init->send_cq)->verb,
        .recv_cq = kv_cq(init->recv_cq)->verb,
        .srq = init->srq ? kv_srq(init->srq)->verb : NULL,
        .cap = {.max_send_wr = init->cap.max_send_wr,
                .max_recv_wr = init->cap.max_recv_wr,
                .max_send_sge = init->cap.max_send_sge,
                .max_recv_sge = init->cap.max_recv_sge,
                .max_inline_data = init->cap.max_inline_data},
        .qp_type = (enum ibv_qp_type)init->qp_type,
        .sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR,
    };
    return qp;
}

static struct ib_qp_cap cap_from_verb(const struct ibv_qp_cap *v)
{
    return (struct ib_qp_cap){
        .max_send_wr = v->max_send_wr,
        .max_recv_wr = v->max_recv_wr,
        .max_send_sge = v->max_send_sge,
        .max_recv_sge = v->max_recv_sge,
        .max_inline_data = v->max_inline_data,
    };
}

static void use(const struct ib_qp *qp, int by)
{
    kv_pd_use(qp->pd, by);
    atomic_add(by, &qp->send_cq->usecnt);
    atomic_add(by, &qp->recv_cq->usecnt);
    if (qp->srq)
        atomic_add(by, &qp->srq->usecnt);
    kv_count(KV_QP, by);
}

void kv_qp_finish(struct kv_qp *qp, struct ibv_qp *verb, struct ib_qp_init_attr *init,
                  const struct ibv_qp_init_attr *v)
{
    struct ib_qp *ib = &qp->ib;
    struct kv_device *d = kv_device(ib->device);
    qp->verb = verb;
    ib->send_cq = init->send_cq;
    ib->recv_cq = init->recv_cq;
    ib->srq = init->srq;
    ib->real_qp = ib;
    ib->event_handler = init->event_handler;
    ib->qp_context = init->qp_context;
    ib->qp_num = verb->qp_num;
    ib->qp_type = init->qp_type;
    init->cap = cap_from_verb(&v->cap);
    use(ib, 1);
    pthread_mutex_lock(&d->qps_lock);
    qp->next = *bucket(d, ib->qp_num);
    *bucket(d, ib->qp_num) = qp;
    pthread_mutex_unlock(&d->qps_lock);
}

void kv_qp_abort(struct kv_qp *qp)
{
    free(qp);
}

void kv_qp_disown(struct kv_qp *qp)
{
    if (qp->held)
        *qp->held = NULL;
    qp->held = NULL;
    qp->port = NULL;
}

struct ib_qp *ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init)
{
    might_sleep();
    struct ibv_qp_init_attr v;
    struct kv_qp *qp = kv_qp_begin(pd, init, &v);
    if (IS_ERR(qp))
        return ERR_CAST(qp);
    struct ibv_qp *verb = ibv_create_qp(kv_pd(pd)->verb, &v);
    if (!verb) {
        int e = errno;
        kv_qp_abort(qp);
        return ERR_PTR(-e);
    }
    kv_qp_finish(qp, verb, init, &v);
    return &qp->ib;
}

static void forget(struct kv_qp *qp)
{
    struct kv_device *d = kv_device(qp->ib.device);
    pthread_mutex_lock(&d->qps_lock);
    struct kv_qp **at = bucket(d, qp->ib.qp_num);
    while (*at != qp)
        at = &(*at)->next;
    *at = qp->next;
    pthread_mutex_unlock(&d->qps_lock);
}

/* A number may be given again as soon as its QP is gone: the table forgets it before. */
static int destroy_verb(struct kv_qp *qp)
{
    forget(qp);
    if (qp->port) {
        cm_port_destroy_qp(qp->port);
        return 0;
    }
    return ibv_destroy_qp(qp->verb);
}

int ib_destroy_qp(struct ib_qp *ib)
{
    might_sleep();
    struct kv_qp *qp = kv_qp(ib);
    if (kv_interrupted_for() == qp) {
        printk(KERN_ERR "%s: a QP's handler destroys the QP\n", ib->device->name);
        return -EDEADLK;
    }
    WARN_ON(destroy_verb(qp) != 0);
    kv_qp_disown(qp);
    use(ib, -1);
    free(qp);
    return 0;
}

struct ib_qp_attr kv_qp_attr_from_verb(const struct ibv_qp_attr *v)
{
    return (struct ib_qp_attr){
        .qp_state = (enum ib_qp_state)v->qp_state,
        .cur_qp_state = (enum ib_qp_state)v->cur_qp_state,
        .path_mtu = (enum ib_mtu)v->path_mtu,
        .path_mig_state = (enum ib_mig_state)v->path_mig_state,
        .qkey = v->qkey,
        .rq_psn = v->rq_psn,
        .sq_psn = v->sq_psn,
        .dest_qp_num = v->dest_qp_num,
        .qp_access_flags = (int)v->qp_access_flags,
        .cap = cap_from_verb(&v->cap),
        .ah_attr = kv_ah_from_verb(&v->ah_attr),
        .alt_ah_attr = kv_ah_from_verb(&v->alt_ah_attr),
        .pkey_index = v->pkey_index,
        .alt_pkey_index = v->alt_pkey_index,
        .en_sqd_async_notify = v->en_sqd_async_notify,
        .sq_draining = v->sq_draining,
        .max_rd_atomic = v->max_rd_atomic,
        .max_dest_rd_atomic = v->max_dest_rd_atomic,
        .min_rnr_timer = v->min_rnr_timer,
        .port_num = v->port_num,
        .timeout = v->timeout,
        .retry_cnt = v->retry_cnt,
        .rnr_retry = v->rnr_retry,
        .alt_port_num = v->alt_port_num,
        .alt_timeout = v->alt_timeout,
        .rate_limit = v->rate_limit,
    };
}

static struct ibv_qp_attr to_verb(const struct ib_qp_attr *a)
{
    return (struct ibv_qp_attr){
        .qp_state = (enum ibv_qp_state)a->qp_state,
        .cur_qp_state = (enum ibv_qp_state)a->cur_qp_state,
        .path_mtu = (enum ibv_mtu)a->path_mtu,
        .path_mig_state = (enum ibv_mig_state)a->path_mig_state,
        .qkey = a->qkey,
        .rq_psn = a->rq_psn,
        .sq_psn = a->sq_psn,
        .dest_qp_num = a->dest_qp_num,
        .qp_access_flags = (unsigned)a->qp_access_flags,
        .cap = {.max_send_wr = a->cap.max_send_wr,
                .max_recv_wr = a->cap.max_recv_wr,
                .max_send_sge = a->cap.max_send_sge,
                .max_recv_sge = a->cap.max_recv_sge,
                .max_inline_data = a->cap.max_inline_data},
        .ah_attr = kv_ah_to_verb(&a->ah_attr),
        .alt_ah_attr = kv_ah_to_verb(&a->alt_ah_attr),
        .pkey_index = a->pkey_index,
        .alt_pkey_index = a->alt_pkey_index,
        .en_sqd_async_notify = a->en_sqd_async_notify,
        .sq_draining = a->sq_draining,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .min_rnr_timer = a->min_rnr_timer,
        .port_num = a->port_num,
        .timeout = a->timeout,
        .retry_cnt = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
        .alt_port_num = a->alt_port_num,
        .alt_timeout = a->alt_timeout,
        .rate_limit = a->rate_limit,
    };
}

int ib_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask)
{
    struct kv_qp *qp = kv_qp(ib);
    struct ibv_qp_attr v;
    struct ibv_qp_init_attr init;
    int e = ibv_query_qp(qp->verb, &v, IBV_QP_STATE, &init);
    if (e)
        return -e;
    enum ib_qp_state cur =
        mask & IB_QP_CUR_STATE ? attr->cur_qp_state : (enum ib_qp_state)v.qp_state;
    enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
    if (!ib_modify_qp_is_ok(cur, next, ib->qp_type, (enum ib_qp_attr_mask)mask,
                            IB_LINK_LAYER_ETHERNET))
        return -EINVAL;
    v = to_verb(attr);
    return -ibv_modify_qp(qp->verb, &v, mask);
}

int ib_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
    struct kv_qp *qp = kv_qp(ib);
    struct ibv_qp_attr v;
    struct ibv_qp_init_attr vi;
    int e = ibv_query_qp(qp->verb, &v, mask, &vi);
    if (e)
        return -e;
    *attr = kv_qp_attr_from_verb(&v);
    *init = (struct ib_qp_init_attr){
        .event_handler = ib->event_handler,
        .qp_context = ib->qp_context,
        .send_cq = ib->send_cq,
        .recv_cq = ib->recv_cq,
        .srq = ib->srq,
        .cap = cap_from_verb(&vi.cap),
        .sq_sig_type = vi.sq_sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
        .qp_type = ib->qp_type,
    };
    return 0;
}

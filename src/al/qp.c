/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/qp.h"

#include "al/access.h"
#include "al/ca.h"
#include "al/cq.h"
#include "al/pd.h"
#include "al/srq.h"
#include "al/status.h"
#include "al/work.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    struct al_qp *qp = container_of(o, struct al_qp, o);
    if (qp->verbs)
        ibv_destroy_qp(qp->verbs);
    pthread_mutex_destroy(&qp->lock);
}

const struct al_kind al_qp_kind = {
    .type = AL_QP,
    .invalid = IB_INVALID_QP_HANDLE,
    .release = release,
};

/* ---- create ---- */

static ib_api_status_t check_sizes(struct ibv_context *verbs, const ib_qp_create_t *how)
{
    struct ibv_device_attr device;
    if (ibv_query_device(verbs, &device) != 0)
        return IB_ERROR;
    uint32_t max_wrs = (uint32_t)device.max_qp_wr, max_sge = (uint32_t)device.max_sge;
    if (max_sge > AL_MAX_SGE)
        max_sge = AL_MAX_SGE;
    if (how->sq_depth > max_wrs || how->rq_depth > max_wrs)
        return IB_INVALID_MAX_WRS;
    if (how->sq_sge > max_sge || how->rq_sge > max_sge)
        return IB_INVALID_MAX_SGE;
    return IB_SUCCESS;
}

/* What it is made with, with a reference to each. */
struct parts {
    struct al_cq *sq_cq, *rq_cq;
    struct al_srq *srq;
};

static ib_api_status_t get_parts(const struct al_pd *pd, const ib_qp_create_t *how, struct parts *p)
{
    *p = (struct parts){
        .sq_cq = al_get(&al_cq_kind, how->h_sq_cq),
        .rq_cq = al_get(&al_cq_kind, how->h_rq_cq),
        .srq = how->h_srq ? al_get(&al_srq_kind, how->h_srq) : NULL,
    };
    if (!p->sq_cq || !p->rq_cq || p->sq_cq->o.parent != pd->o.parent ||
        p->rq_cq->o.parent != pd->o.parent)
        return IB_INVALID_CQ_HANDLE;
    if (how->h_srq && (!p->srq || p->srq->o.parent != &pd->o))
        return IB_INVALID_SRQ_HANDLE;
    return IB_SUCCESS;
}

static void put_parts(const struct parts *p)
{
    if (p->sq_cq)
        al_put(&p->sq_cq->o);
    if (p->rq_cq)
        al_put(&p->rq_cq->o);
    if (p->srq)
        al_put(&p->srq->o);
}

static ib_api_status_t depend(struct al_qp *qp, const struct parts *p)
{
    if (!al_depend(&qp->o, AL_QP_SQ_CQ, &p->sq_cq->o) ||
        !al_depend(&qp->o, AL_QP_RQ_CQ, &p->rq_cq->o))
        return IB_INVALID_CQ_HANDLE;
    if (p->srq && !al_depend(&qp->o, AL_QP_SRQ, &p->srq->o))
        return IB_INVALID_SRQ_HANDLE;
    return IB_SUCCESS;
}

static ib_api_status_t make(struct al_qp *qp, struct al_pd *pd, const ib_qp_create_t *how,
                            const struct parts *p)
{
    struct ibv_qp_init_attr init = {
        .qp_context = qp->o.handle,
        .send_cq = p->sq_cq->fifo.cq,
        .recv_cq = p->rq_cq->fifo.cq,
        .srq = p->srq ? p->srq->verbs : NULL,
        .cap =
            {
                .max_send_wr = how->sq_depth,
                .max_recv_wr = p->srq ? 0 : how->rq_depth,
                .max_send_sge = how->sq_sge,
                .max_recv_sge = p->srq ? 0 : how->rq_sge,
                .max_inline_data = how->sq_max_inline,
            },
        .qp_type = how->qp_type == IB_QPT_RELIABLE_CONN ? IBV_QPT_RC : IBV_QPT_UC,
        .sq_sig_all = !!how->sq_signaled,
    };
    ib_api_status_t status = depend(qp, p);
    if (status != IB_SUCCESS)
        return status;
    qp->verbs = ibv_create_qp(pd->verbs, &init);
    return qp->verbs ? IB_SUCCESS : al_status(errno, IB_INVALID_SETTING);
}

static ib_api_status_t create_with(struct al_pd *pd, const ib_qp_create_t *how,
                                   const struct parts *p, const void *context,
                                   ib_pfn_event_cb_t event_cb, ib_qp_handle_t *handle)
{
    struct al_qp *qp = calloc(1, sizeof *qp);
    if (qp) {
        qp->event_cb = event_cb;
        qp->type = how->qp_type;
        qp->sq_sge = how->sq_sge;
        qp->rq_sge = how->rq_sge;
        qp->sq_signaled = how->sq_signaled;
        pthread_mutex_init(&qp->lock, NULL);
    }
    ib_api_status_t status = al_add(qp ? &qp->o : NULL, &al_qp_kind, &pd->o, context);
    if (status != IB_SUCCESS)
        return status;
    status = make(qp, pd, how, p);
    if (status != IB_SUCCESS) {
        al_fail(&qp->o);
        return status;
    }
    *handle = qp->o.handle;
    al_put(&qp->o);
    return IB_SUCCESS;
}

static ib_api_status_t create(struct al_pd *pd, const ib_qp_create_t *how, const void *context,
                              ib_pfn_event_cb_t event_cb, ib_qp_handle_t *handle)
{
    if (!how || !handle)
        return IB_INVALID_PARAMETER;
    if ((unsigned)how->qp_type >= IB_QPT_UNKNOWN)
        return IB_INVALID_SETTING;
    if (how->qp_type != IB_QPT_RELIABLE_CONN && how->qp_type != IB_QPT_UNRELIABLE_CONN)
        return IB_UNSUPPORTED;
    ib_api_status_t status = check_sizes(pd->verbs->context, how);
    if (status != IB_SUCCESS)
        return status;
    struct parts p;
    status = get_parts(pd, how, &p);
    if (status == IB_SUCCESS)
        status = create_with(pd, how, &p, context, event_cb, handle);
    put_parts(&p);
    return status;
}

ib_api_status_t ib_create_qp(const ib_pd_handle_t h_pd, const ib_qp_create_t *const p_qp_create,
                             const void *const qp_context, const ib_pfn_event_cb_t pfn_qp_event_cb,
                             ib_qp_handle_t *const ph_qp)
{
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    ib_api_status_t status = create(pd, p_qp_create, qp_context, pfn_qp_event_cb, ph_qp);
    al_put(&pd->o);
    return status;
}

ib_api_status_t ib_destroy_qp(const ib_qp_handle_t h_qp, const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&al_qp_kind, h_qp, pfn_destroy_cb);
}

/* ---- query ---- */

static ib_qp_state_t state_of(const struct ibv_qp_attr *attr)
{
    static const ib_qp_state_t to[] = {
        [IBV_QPS_RESET] = IB_QPS_RESET, [IBV_QPS_INIT] = IB_QPS_INIT, [IBV_QPS_RTR] = IB_QPS_RTR,
        [IBV_QPS_RTS] = IB_QPS_RTS,     [IBV_QPS_SQD] = IB_QPS_SQD,   [IBV_QPS_SQE] = IB_QPS_SQERR,
        [IBV_QPS_ERR] = IB_QPS_ERROR,
    };
    if (attr->qp_state == IBV_QPS_SQD)
        return attr->sq_draining ? IB_QPS_SQD_DRAINING : IB_QPS_SQD_DRAINED;
    return (unsigned)attr->qp_state < sizeof to / sizeof *to ? to[attr->qp_state] : 0;
}

ib_qp_state_t al_qp_state(const struct al_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(qp->verbs, &attr, IBV_QP_STATE, &init) == 0 ? state_of(&attr) : 0;
}

static ib_api_status_t query(struct al_qp *qp, ib_qp_attr_t *to)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    int error = ibv_query_qp(qp->verbs, &attr, IBV_QP_STATE, &init);
    if (error)
        return al_status(error, IB_ERROR);
    *to = (ib_qp_attr_t){
        .h_pd = qp->o.parent->handle,
        .qp_type = qp->type,
        .access_ctrl = al_access_of_verbs((unsigned)attr.qp_access_flags),
        .pkey_index = attr.pkey_index,
        .sq_max_inline = init.cap.max_inline_data,
        .sq_depth = init.cap.max_send_wr,
        .rq_depth = init.cap.max_recv_wr,
        .sq_sge = init.cap.max_send_sge,
        .rq_sge = init.cap.max_recv_sge,
        .init_depth = attr.max_rd_atomic,
        .resp_res = attr.max_dest_rd_atomic,
        .h_sq_cq = qp->o.holds[AL_QP_SQ_CQ]->handle,
        .h_rq_cq = qp->o.holds[AL_QP_RQ_CQ]->handle,
        .h_srq = qp->o.holds[AL_QP_SRQ] ? qp->o.holds[AL_QP_SRQ]->handle : NULL,
        .sq_signaled = qp->sq_signaled,
        .state = state_of(&attr),
        .num = CL_HTON32(qp->verbs->qp_num),
        .dest_num = CL_HTON32(attr.dest_qp_num),
        .qkey = CL_HTON32(attr.qkey),
        .sq_psn = CL_HTON32(attr.sq_psn),
        .rq_psn = CL_HTON32(attr.rq_psn),
        .primary_port = AL_PORT,
        .apm_state = IB_APM_MIGRATED,
    };
    pthread_mutex_lock(&qp->lock);
    to->primary_av = qp->av;
    pthread_mutex_unlock(&qp->lock);
    return IB_SUCCESS;
}

ib_api_status_t ib_query_qp(const ib_qp_handle_t h_qp, ib_qp_attr_t *const p_qp_attr)
{
    struct al_qp *qp = al_get(&al_qp_kind, h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_api_status_t status = p_qp_attr ? query(qp, p_qp_attr) : IB_INVALID_PARAMETER;
    al_put(&qp->o);
    return status;
}

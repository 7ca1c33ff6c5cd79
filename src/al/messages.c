/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a connection that the program sends: ib_cm_req() to ib_cm_drep(). */
#include "al/address.h"
#include "al/connection.h"
#include "al/qp_modify.h"
#include "al/status.h"
#include "al/work.h"

#include <errno.h>
#include <string.h>

enum { RESOLVE_MS = 2000 };

static struct al_connection *get(ib_cm_handle_t h)
{
    return al_get_number(&al_connection_kind, CL_NTOH32(h.cid));
}

/* ---- the active side ---- */

static ib_api_status_t check_req(const ib_cm_req_t *req)
{
    if (!req->p_primary_path || !req->pfn_cm_rep_cb || !al_port_of(req->svc_id) ||
        req->req_length > IB_REQ_PDATA_SIZE || (req->req_length && !req->p_req_pdata))
        return IB_INVALID_PARAMETER;
    if (req->flags & IB_FLAGS_SYNC && event_thread_is_me())
        return IB_INVALID_SETTING;
    return IB_SUCCESS;
}

static void keep_req(struct al_connection *c, const ib_cm_req_t *req, struct al_qp *qp)
{
    c->qp = qp;
    c->verbs = qp->verbs->context;
    c->rep_cb = req->pfn_cm_rep_cb;
    c->rej_cb = req->pfn_cm_rej_cb;
    c->timeout_ms = req->timeout_ms ? (int)req->timeout_ms : RESOLVE_MS;
    if (req->req_length)
        memcpy(c->private_data, req->p_req_pdata, req->req_length);
    c->param = (struct rdma_conn_param){
        .private_data = req->req_length ? c->private_data : NULL,
        .private_data_len = req->req_length,
        .responder_resources = req->resp_res,
        .initiator_depth = req->init_depth,
        .retry_count = req->retry_cnt,
        .rnr_retry_count = req->rnr_retry_cnt,
        .srq = qp->verbs->srq != NULL,
        .qp_num = qp->verbs->qp_num,
    };
}

static int start(struct al_connection *c, struct al_layer *layer, const ib_gid_t *sgid,
                 struct sockaddr_storage *to)
{
    struct sockaddr_storage from;
    bool bound = al_address_of(sgid, 0, &from);
    c->id = al_cm_create_id(layer, c->o.handle);
    if (!c->id)
        return errno;
    return rdma_resolve_addr(c->id, bound ? (struct sockaddr *)&from : NULL, (struct sockaddr *)to,
                             c->timeout_ms) != 0
               ? errno
               : 0;
}

static ib_api_status_t request(struct al_qp *qp, const ib_cm_req_t *req)
{
    struct sockaddr_storage to;
    struct al_object *busy = al_child(&qp->o, &al_connection_kind);
    if (busy) {
        al_put(busy);
        return IB_INVALID_STATE;
    }
    if (qp->type != IB_QPT_RELIABLE_CONN)
        return IB_INVALID_SETTING;
    if (!al_address_of(&req->p_primary_path->dgid, al_port_of(req->svc_id), &to))
        return IB_INVALID_GID;
    ib_api_status_t status = al_qp_prepare(qp);
    if (status != IB_SUCCESS)
        return status;
    struct al_object *ca = qp->o.parent->parent;
    struct al_layer *layer = container_of(ca->parent, struct al_layer, o);
    struct al_connection *c = al_connection_new(layer, AL_CM_RESOLVING);
    if (c)
        keep_req(c, req, qp);
    status = al_add(c ? &c->o : NULL, &al_connection_kind, &qp->o, NULL);
    if (status != IB_SUCCESS)
        return status;
    bool answered = false, wait = req->flags & IB_FLAGS_SYNC;
    if (wait)
        al_answer_expect(&c->begin, &answered);
    int error = start(c, layer, &req->p_primary_path->sgid, &to);
    if (error) {
        al_answer_expect(&c->begin, NULL);
        al_fail(&c->o);
        return al_status(error, IB_INVALID_SETTING);
    }
    al_put(&c->o);
    if (wait)
        al_answer_await(&answered);
    return IB_SUCCESS;
}

ib_api_status_t ib_cm_req(const ib_cm_req_t *const p_cm_req)
{
    if (!p_cm_req)
        return IB_INVALID_PARAMETER;
    struct al_qp *qp = al_get(&al_qp_kind, p_cm_req->h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_api_status_t status = check_req(p_cm_req);
    if (status == IB_SUCCESS)
        status = request(qp, p_cm_req);
    al_put(&qp->o);
    return status;
}

static void leave_later(struct event_task *task)
{
    struct al_connection *c = container_of(task, struct al_connection, task);
    if (c->o.open)
        al_connection_tell_dreq(c);
    al_put(&c->o);
}

/* One that is in ERROR already needs no rights: the end of the connection is on its way. */
static ib_api_status_t allow(struct al_qp *qp, ib_access_t access)
{
    ib_api_status_t status = al_qp_allow(qp, access);
    return status != IB_SUCCESS && al_qp_state(qp) == IB_QPS_ERROR ? IB_SUCCESS : status;
}

static ib_api_status_t rtu(struct al_connection *c, const ib_cm_rtu_t *how)
{
    pthread_mutex_lock(&c->lock);
    bool ok = c->state == AL_CM_REPLIED, gone = ok && c->gone;
    if (ok) {
        c->dreq_cb = how->pfn_cm_dreq_cb;
        c->state = gone ? AL_CM_LEFT : AL_CM_CONNECTED;
    }
    pthread_mutex_unlock(&c->lock);
    if (!ok)
        return IB_INVALID_STATE;
    if (!gone)
        return allow(c->qp, how->access_ctrl);
    c->task.run = leave_later;
    al_hold(&c->o);
    event_thread_run(&c->task);
    return IB_SUCCESS;
}

ib_api_status_t ib_cm_rtu(const ib_cm_handle_t h_cm_rep, const ib_cm_rtu_t *const p_cm_rtu)
{
    struct al_connection *c = get(h_cm_rep);
    if (!c)
        return IB_INVALID_HANDLE;
    ib_api_status_t status = p_cm_rtu && p_cm_rtu->rtu_length <= IB_RTU_PDATA_SIZE
                                 ? rtu(c, p_cm_rtu)
                                 : IB_INVALID_PARAMETER;
    al_put(&c->o);
    return status;
}

/* ---- the passive side ---- */

static ib_api_status_t check_rep(const ib_cm_rep_t *rep)
{
    if (rep->rep_length > IB_REP_PDATA_SIZE || (rep->rep_length && !rep->p_rep_pdata))
        return IB_INVALID_PARAMETER;
    if (rep->flags & IB_FLAGS_SYNC && event_thread_is_me())
        return IB_INVALID_SETTING;
    return IB_SUCCESS;
}

static int accept_it(struct al_connection *c, struct al_qp *qp, const ib_cm_rep_t *rep)
{
    uint8_t depth = rep->init_depth < c->init_depth ? rep->init_depth : c->init_depth;
    struct rdma_conn_param param = {
        .private_data = rep->rep_length ? rep->p_rep_pdata : NULL,
        .private_data_len = rep->rep_length,
        .responder_resources = c->resp_res,
        .initiator_depth = depth,
        .rnr_retry_count = rep->rnr_retry_cnt,
        .srq = qp->verbs->srq != NULL,
        .qp_num = qp->verbs->qp_num,
    };
    int error = al_qp_is_moved(qp) ? 0 : al_qp_connect(qp, c->id);
    if (!error && rdma_accept(c->id, &param) != 0)
        error = errno;
    return error;
}

static ib_api_status_t prepare_rep(struct al_connection *c, struct al_qp *qp,
                                   const ib_cm_rep_t *rep)
{
    if (qp->verbs->context != c->id->verbs)
        return IB_INVALID_QP_HANDLE;
    if (qp->type != IB_QPT_RELIABLE_CONN)
        return IB_INVALID_SETTING;
    ib_api_status_t status = al_qp_prepare(qp);
    if (status == IB_SUCCESS)
        status = al_qp_allow(qp, rep->access_ctrl);
    if (status == IB_SUCCESS && rep->p_recv_wr)
        status = al_post_recv(qp, rep->p_recv_wr, rep->pp_recv_failure);
    return status;
}

/* Of several calls one has the Request to itself; one that fails before it adopts gives it back. */
static ib_api_status_t reply(struct al_connection *c, struct al_qp *qp, const ib_cm_rep_t *rep,
                             bool *answered)
{
    if (!al_connection_step(c, AL_CM_REQUESTED, AL_CM_ACCEPTING))
        return IB_INVALID_STATE;
    ib_api_status_t status = prepare_rep(c, qp, rep);
    if (status == IB_SUCCESS && !al_adopt(&c->o, &qp->o))
        status = IB_INVALID_QP_HANDLE;
    if (status != IB_SUCCESS) {
        al_connection_step(c, AL_CM_ACCEPTING, AL_CM_REQUESTED);
        return status;
    }
    c->qp = qp;
    c->rej_cb = rep->pfn_cm_rej_cb;
    c->rtu_cb = rep->pfn_cm_rtu_cb;
    c->dreq_cb = rep->pfn_cm_dreq_cb;
    al_answer_expect(&c->begin, answered);
    int error = accept_it(c, qp, rep);
    if (error) {
        al_connection_step(c, AL_CM_ACCEPTING, AL_CM_OVER);
        al_answer_expect(&c->begin, NULL);
        al_end(&c->o);
    }
    return al_status(error, IB_INVALID_STATE);
}

ib_api_status_t ib_cm_rep(const ib_cm_handle_t h_cm_req, const ib_cm_rep_t *const p_cm_rep)
{
    struct al_connection *c = get(h_cm_req);
    if (!c)
        return IB_INVALID_HANDLE;
    struct al_qp *qp = p_cm_rep ? al_get(&al_qp_kind, p_cm_rep->h_qp) : NULL;
    ib_api_status_t status = !p_cm_rep ? IB_INVALID_PARAMETER
                             : !qp     ? IB_INVALID_QP_HANDLE
                                       : check_rep(p_cm_rep);
    bool answered = false, wait = status == IB_SUCCESS && p_cm_rep->flags & IB_FLAGS_SYNC;
    if (status == IB_SUCCESS)
        status = reply(c, qp, p_cm_rep, wait ? &answered : NULL);
    if (qp)
        al_put(&qp->o);
    al_put(&c->o);
    if (status == IB_SUCCESS && wait)
        al_answer_await(&answered);
    return status;
}

/* ---- both ---- */

static ib_api_status_t reject(struct al_connection *c, const ib_cm_rej_t *rej)
{
    if (al_connection_step(c, AL_CM_REQUESTED, AL_CM_OVER))
        rdma_reject(c->id, rej->rej_length ? rej->p_rej_pdata : NULL, rej->rej_length);
    else if (al_connection_step(c, AL_CM_REPLIED, AL_CM_OVER))
        rdma_disconnect(c->id);
    else
        return IB_INVALID_STATE;
    al_end(&c->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_cm_rej(const ib_cm_handle_t h_cm, const ib_cm_rej_t *const p_cm_rej)
{
    struct al_connection *c = get(h_cm);
    if (!c)
        return IB_INVALID_HANDLE;
    ib_api_status_t status = p_cm_rej && p_cm_rej->rej_length <= IB_REJ_PDATA_SIZE &&
                                     (!p_cm_rej->rej_length || p_cm_rej->p_rej_pdata)
                                 ? reject(c, p_cm_rej)
                                 : IB_INVALID_PARAMETER;
    al_put(&c->o);
    return status;
}

static enum al_cm_state state_of(struct al_connection *c)
{
    pthread_mutex_lock(&c->lock);
    enum al_cm_state state = c->state;
    pthread_mutex_unlock(&c->lock);
    return state;
}

ib_api_status_t ib_cm_mra(const ib_cm_handle_t h_cm, const ib_cm_mra_t *const p_cm_mra)
{
    struct al_connection *c = get(h_cm);
    if (!c)
        return IB_INVALID_HANDLE;
    enum al_cm_state state = state_of(c);
    al_put(&c->o);
    if (!p_cm_mra || p_cm_mra->mra_length > IB_MRA_PDATA_SIZE)
        return IB_INVALID_PARAMETER;
    return state == AL_CM_REQUESTED || state == AL_CM_REPLIED ? IB_SUCCESS : IB_INVALID_STATE;
}

static ib_api_status_t disconnect(struct al_connection *c, const ib_cm_dreq_t *how, bool *answered)
{
    pthread_mutex_lock(&c->lock);
    bool ok = c->state == AL_CM_CONNECTED;
    if (ok) {
        c->drep_cb = how->pfn_cm_drep_cb;
        c->state = AL_CM_LEAVING;
        al_answer_expect(&c->end, answered);
    }
    pthread_mutex_unlock(&c->lock);
    if (!ok)
        return IB_INVALID_STATE;
    al_qp_disconnect(c->qp);
    rdma_disconnect(c->id); /* if the peer was first, the event is on its way */
    return IB_SUCCESS;
}

static ib_api_status_t dreq(struct al_qp *qp, const ib_cm_dreq_t *how)
{
    if (how->dreq_length > IB_DREQ_PDATA_SIZE)
        return IB_INVALID_PARAMETER;
    bool answered = false, wait = how->flags & IB_FLAGS_SYNC;
    if (wait && event_thread_is_me())
        return IB_INVALID_SETTING;
    struct al_connection *c = al_child(&qp->o, &al_connection_kind);
    if (!c)
        return IB_INVALID_STATE;
    ib_api_status_t status = disconnect(c, how, wait ? &answered : NULL);
    al_put(&c->o);
    if (status == IB_SUCCESS && wait)
        al_answer_await(&answered);
    return status;
}

ib_api_status_t ib_cm_dreq(const ib_cm_dreq_t *const p_cm_dreq)
{
    if (!p_cm_dreq)
        return IB_INVALID_PARAMETER;
    struct al_qp *qp = al_get(&al_qp_kind, p_cm_dreq->h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_api_status_t status = dreq(qp, p_cm_dreq);
    al_put(&qp->o);
    return status;
}

ib_api_status_t ib_cm_drep(const ib_cm_handle_t h_cm_dreq, const ib_cm_drep_t *const p_cm_drep)
{
    struct al_connection *c = get(h_cm_dreq);
    if (!c)
        return IB_INVALID_HANDLE;
    ib_api_status_t status = !p_cm_drep || p_cm_drep->drep_length > IB_DREP_PDATA_SIZE
                                 ? IB_INVALID_PARAMETER
                             : al_connection_step(c, AL_CM_LEFT, AL_CM_OVER) ? IB_SUCCESS
                                                                             : IB_INVALID_STATE;
    if (status == IB_SUCCESS)
        al_end(&c->o);
    al_put(&c->o);
    return status;
}

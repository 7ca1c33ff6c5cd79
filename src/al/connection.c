/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/connection.h"

#include "al/address.h"
#include "al/ca.h"
#include "al/pd.h"
#include "al/qp_modify.h"
#include "al/status.h"
#include "al/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVE_MS = 2000 };

/* Active: RESOLVING, REPLIED, then as passive: REQUESTED, ACCEPTING, then CONNECTED. */
enum state {
    RESOLVING, /* until there is a Reply or a Reject */
    REPLIED,   /* the program has to say that it is ready, or rejects */
    REQUESTED, /* the program has to reply, or rejects */
    ACCEPTING, /* its Reply is under way */
    CONNECTED,
    LEAVING, /* we have asked for the end */
    LEFT,    /* the peer has */
    OVER,
};

/* What a call waits for, one at a time. */
enum wait {
    BEGIN, /* the answer to a Request or Reply */
    END,   /* and to a Disconnect */
    WAITS
};

struct al_connection {
    struct al_object o;
    void *h_al;
    struct rdma_cm_id *id;
    struct ibv_context *verbs; /* active: of the queue pair */
    struct rdma_conn_param param;
    uint8_t private_data[IB_REQ_PDATA_SIZE];
    int timeout_ms;
    pthread_mutex_t lock; /* of what follows */
    enum state state;
    bool gone;        /* the peer left before the program said that it is ready */
    struct al_qp *qp; /* the parent, once there is one */
    uint8_t resp_res, init_depth;
    ib_pfn_cm_rep_cb_t rep_cb;
    ib_pfn_cm_rej_cb_t rej_cb;
    ib_pfn_cm_rtu_cb_t rtu_cb;
    ib_pfn_cm_dreq_cb_t dreq_cb;
    ib_pfn_cm_drep_cb_t drep_cb;
    struct event_task task; /* tells of a peer that is gone */
    bool *answered[WAITS];  /* who waits for the answer; its own lock */
};

static const uint8_t nothing[IB_RTU_PDATA_SIZE];

/* ---- who waits for an answer ---- */

static pthread_mutex_t answer_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answer_cond = PTHREAD_COND_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&answer_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&answer_lock);
}

/* Who waited is not in the child, and nobody there would wait for them to leave. */
static void in_child(void)
{
    pthread_mutex_init(&answer_lock, NULL);
    pthread_cond_init(&answer_cond, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void expect_answer(struct al_connection *c, enum wait which, bool *answered)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&answer_lock);
    c->answered[which] = answered;
    pthread_mutex_unlock(&answer_lock);
}

static void answer(struct al_connection *c, enum wait which)
{
    pthread_mutex_lock(&answer_lock);
    if (c->answered[which])
        *c->answered[which] = true;
    c->answered[which] = NULL;
    pthread_cond_broadcast(&answer_cond);
    pthread_mutex_unlock(&answer_lock);
}

static void await_answer(const bool *answered)
{
    pthread_mutex_lock(&answer_lock);
    while (!*answered)
        pthread_cond_wait(&answer_cond, &answer_lock);
    pthread_mutex_unlock(&answer_lock);
}

/* ---- life ---- */

static void release(struct al_object *o)
{
    struct al_connection *c = container_of(o, struct al_connection, o);
    if (c->id)
        rdma_destroy_id(c->id);
    answer(c, BEGIN);
    answer(c, END);
    pthread_mutex_destroy(&c->lock);
}

static const struct al_kind kind = {
    .type = AL_CONNECTION,
    .invalid = IB_INVALID_HANDLE,
    .release = release,
};

static struct al_connection *get(ib_cm_handle_t h)
{
    return al_get_number(&kind, CL_NTOH32(h.cid));
}

static ib_cm_handle_t handle_of(const struct al_connection *c)
{
    return (ib_cm_handle_t){
        .h_al = c->h_al,
        .h_qp = c->qp ? c->qp->o.handle : NULL,
        .cid = CL_HTON32(al_number(&c->o)),
    };
}

static struct al_connection *new_connection(struct al_layer *layer, enum state state)
{
    struct al_connection *c = calloc(1, sizeof *c);
    if (c) {
        c->h_al = layer->o.handle;
        c->state = state;
        pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

static enum state state_of(struct al_connection *c)
{
    pthread_mutex_lock(&c->lock);
    enum state state = c->state;
    pthread_mutex_unlock(&c->lock);
    return state;
}

/* @return whether it was in the first state, and is in the second now */
static bool step(struct al_connection *c, enum state from, enum state to)
{
    pthread_mutex_lock(&c->lock);
    bool ok = c->state == from;
    if (ok)
        c->state = to;
    pthread_mutex_unlock(&c->lock);
    return ok;
}

/* ---- what is told ---- */

/* The queue pair, for as long as the connection is its child, and the context of the program. */
static const void *qp_context(const struct al_connection *c)
{
    return c->qp ? c->qp->o.context : NULL;
}

static void *qp_handle(const struct al_connection *c)
{
    return c->qp ? c->qp->o.handle : NULL;
}

static void tell_rep(struct al_connection *c, const struct al_cm_event *event)
{
    ib_cm_rep_rec_t rec = {
        .p_rep_pdata = event->private_data,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .h_cm_rep = handle_of(c),
        .qp_context = qp_context(c),
        .resp_res = event->responder_resources,
        .flow_ctrl = TRUE,
    };
    c->rep_cb(&rec);
    answer(c, BEGIN);
}

static void tell_rej(struct al_connection *c, ib_rej_status_t status, const uint8_t *private_data)
{
    ib_cm_rej_rec_t rec = {
        .rej_status = status,
        .p_ari = nothing,
        .p_rej_pdata = private_data,
        .h_qp = qp_handle(c),
        .qp_context = qp_context(c),
    };
    if (c->rej_cb)
        c->rej_cb(&rec);
    al_end(&c->o);
    answer(c, BEGIN);
}

static void tell_rtu(struct al_connection *c)
{
    ib_cm_rtu_rec_t rec = {
        .p_rtu_pdata = nothing,
        .h_qp = qp_handle(c),
        .qp_context = qp_context(c),
    };
    if (c->rtu_cb)
        c->rtu_cb(&rec);
    answer(c, BEGIN);
}

static void tell_dreq(struct al_connection *c)
{
    ib_cm_dreq_rec_t rec = {
        .h_cm_dreq = handle_of(c),
        .p_dreq_pdata = nothing,
        .qp_context = qp_context(c),
    };
    if (c->dreq_cb)
        c->dreq_cb(&rec);
}

static void tell_drep(struct al_connection *c)
{
    ib_cm_drep_rec_t rec = {
        .cm_status = IB_SUCCESS,
        .p_drep_pdata = nothing,
        .h_qp = qp_handle(c),
        .qp_context = qp_context(c),
    };
    if (c->drep_cb)
        c->drep_cb(&rec);
    al_end(&c->o);
    answer(c, END);
}

/* ---- what rdma_cm says ---- */

static ib_rej_status_t reason_of(const struct al_cm_event *event)
{
    switch (event->type) {
    case RDMA_CM_EVENT_REJECTED:
        return event->private_len ? IB_REJ_USER_DEFINED : IB_REJ_INVALID_SID;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return IB_REJ_INVALID_GID;
    default:
        return IB_REJ_TIMEOUT;
    }
}

static void fail(struct al_connection *c, ib_rej_status_t status, const uint8_t *private_data)
{
    pthread_mutex_lock(&c->lock);
    enum state before = c->state;
    c->state = OVER;
    pthread_mutex_unlock(&c->lock);
    if (before == RESOLVING || before == ACCEPTING)
        tell_rej(c, status, private_data);
    else if (before != OVER)
        al_end(&c->o);
}

static void resolved(struct al_connection *c, const struct al_cm_event *event)
{
    (void)event;
    if (rdma_resolve_route(c->id, c->timeout_ms) != 0)
        fail(c, IB_REJ_INVALID_GID, nothing);
}

static void routed(struct al_connection *c, const struct al_cm_event *event)
{
    (void)event;
    if (c->id->verbs != c->verbs)
        fail(c, IB_REJ_INVALID_GID, nothing);
    else if (rdma_connect(c->id, &c->param) != 0)
        fail(c, IB_REJ_INSUF_RESOURCES, nothing);
}

static void established(struct al_connection *c, const struct al_cm_event *event)
{
    if (step(c, RESOLVING, REPLIED))
        tell_rep(c, event);
    else if (step(c, ACCEPTING, CONNECTED))
        tell_rtu(c);
}

/* The queue pair is the program's to move, and for it this is the program. */
static void responded(struct al_connection *c, const struct al_cm_event *event)
{
    if (al_qp_connect(c->qp, c->id) != 0 || rdma_establish(c->id) != 0)
        fail(c, IB_REJ_INSUF_RESOURCES, nothing);
    else
        established(c, event);
}

static void disconnected(struct al_connection *c, const struct al_cm_event *event)
{
    (void)event;
    pthread_mutex_lock(&c->lock);
    enum state before = c->state;
    if (before == CONNECTED)
        c->state = LEFT;
    else if (before == REPLIED)
        c->gone = true;
    else
        c->state = OVER;
    pthread_mutex_unlock(&c->lock);
    if (c->qp)
        al_qp_disconnect(c->qp);
    if (before == CONNECTED)
        tell_dreq(c);
    else if (before == LEAVING)
        tell_drep(c);
    else if (before == ACCEPTING)
        tell_rej(c, IB_REJ_STALE_CONN, nothing);
}

static void failed(struct al_connection *c, const struct al_cm_event *event)
{
    fail(c, reason_of(event), event->private_data);
}

void al_connection_event(const void *handle, const struct al_cm_event *event)
{
    static void (*const handlers[])(struct al_connection *, const struct al_cm_event *) = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = resolved,    [RDMA_CM_EVENT_ADDR_ERROR] = failed,
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = routed,     [RDMA_CM_EVENT_ROUTE_ERROR] = failed,
        [RDMA_CM_EVENT_CONNECT_ERROR] = failed,      [RDMA_CM_EVENT_UNREACHABLE] = failed,
        [RDMA_CM_EVENT_REJECTED] = failed,           [RDMA_CM_EVENT_ESTABLISHED] = established,
        [RDMA_CM_EVENT_DISCONNECTED] = disconnected, [RDMA_CM_EVENT_CONNECT_RESPONSE] = responded,
    };
    struct al_connection *c = al_get(&kind, handle);
    if (!c)
        return;
    if ((size_t)event->type < sizeof handlers / sizeof *handlers && handlers[event->type])
        handlers[event->type](c, event);
    al_put(&c->o);
}

bool al_connection_requested(struct al_layer *layer, const struct al_cm_event *event,
                             ib_cm_handle_t *handle)
{
    struct al_connection *c = new_connection(layer, REQUESTED);
    if (al_add(c ? &c->o : NULL, &kind, &layer->o, NULL) != IB_SUCCESS)
        return false;
    c->resp_res = event->responder_resources;
    c->init_depth = event->initiator_depth;
    c->id = event->id;
    c->id->context = c->o.handle;
    *handle = handle_of(c);
    al_put(&c->o);
    return true;
}

/* ---- calls: active ---- */

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

static int start(struct al_connection *c, struct al_layer *layer, const ib_cm_req_t *req)
{
    struct sockaddr_storage from, to;
    bool bound = al_address_of(&req->p_primary_path->sgid, 0, &from);
    al_address_of(&req->p_primary_path->dgid, al_port_of(req->svc_id), &to);
    c->id = al_cm_create_id(layer, c->o.handle);
    if (!c->id)
        return errno;
    return rdma_resolve_addr(c->id, bound ? (struct sockaddr *)&from : NULL, (struct sockaddr *)&to,
                             c->timeout_ms) != 0
               ? errno
               : 0;
}

static ib_api_status_t request(struct al_qp *qp, const ib_cm_req_t *req)
{
    struct sockaddr_storage to;
    struct al_object *busy = al_child(&qp->o, &kind);
    if (busy) {
        al_put(busy);
        return IB_INVALID_STATE;
    }
    if (qp->type != IB_QPT_RELIABLE_CONN)
        return IB_INVALID_SETTING;
    if (!al_address_of(&req->p_primary_path->dgid, 1, &to))
        return IB_INVALID_GID;
    ib_api_status_t status = al_qp_prepare(qp);
    if (status != IB_SUCCESS)
        return status;
    struct al_object *ca = qp->o.parent->parent;
    struct al_layer *layer = container_of(ca->parent, struct al_layer, o);
    struct al_connection *c = new_connection(layer, RESOLVING);
    if (c)
        keep_req(c, req, qp);
    status = al_add(c ? &c->o : NULL, &kind, &qp->o, NULL);
    if (status != IB_SUCCESS)
        return status;
    bool answered = false, wait = req->flags & IB_FLAGS_SYNC;
    if (wait)
        expect_answer(c, BEGIN, &answered);
    int error = start(c, layer, req);
    if (error) {
        expect_answer(c, BEGIN, NULL);
        al_fail(&c->o);
        return al_status(error, IB_INVALID_SETTING);
    }
    al_put(&c->o);
    if (wait)
        await_answer(&answered);
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
        tell_dreq(c);
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
    bool ok = c->state == REPLIED, gone = ok && c->gone;
    if (ok) {
        c->dreq_cb = how->pfn_cm_dreq_cb;
        c->state = gone ? LEFT : CONNECTED;
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

/* ---- calls: passive ---- */

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
    if (!step(c, REQUESTED, ACCEPTING))
        return IB_INVALID_STATE;
    ib_api_status_t status = prepare_rep(c, qp, rep);
    if (status == IB_SUCCESS && !al_adopt(&c->o, &qp->o))
        status = IB_INVALID_QP_HANDLE;
    if (status != IB_SUCCESS) {
        step(c, ACCEPTING, REQUESTED);
        return status;
    }
    c->qp = qp;
    c->rej_cb = rep->pfn_cm_rej_cb;
    c->rtu_cb = rep->pfn_cm_rtu_cb;
    c->dreq_cb = rep->pfn_cm_dreq_cb;
    expect_answer(c, BEGIN, answered);
    int error = accept_it(c, qp, rep);
    if (error) {
        step(c, ACCEPTING, OVER);
        expect_answer(c, BEGIN, NULL);
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
        await_answer(&answered);
    return status;
}

/* ---- calls: both ---- */

static ib_api_status_t reject(struct al_connection *c, const ib_cm_rej_t *rej)
{
    if (step(c, REQUESTED, OVER))
        rdma_reject(c->id, rej->rej_length ? rej->p_rej_pdata : NULL, rej->rej_length);
    else if (step(c, REPLIED, OVER))
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

ib_api_status_t ib_cm_mra(const ib_cm_handle_t h_cm, const ib_cm_mra_t *const p_cm_mra)
{
    struct al_connection *c = get(h_cm);
    if (!c)
        return IB_INVALID_HANDLE;
    enum state state = state_of(c);
    al_put(&c->o);
    if (!p_cm_mra || p_cm_mra->mra_length > IB_MRA_PDATA_SIZE)
        return IB_INVALID_PARAMETER;
    return state == REQUESTED || state == REPLIED ? IB_SUCCESS : IB_INVALID_STATE;
}

static ib_api_status_t disconnect(struct al_connection *c, const ib_cm_dreq_t *how, bool *answered)
{
    pthread_mutex_lock(&c->lock);
    bool ok = c->state == CONNECTED;
    if (ok) {
        c->drep_cb = how->pfn_cm_drep_cb;
        c->state = LEAVING;
        expect_answer(c, END, answered);
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
    struct al_connection *c = al_child(&qp->o, &kind);
    if (!c)
        return IB_INVALID_STATE;
    ib_api_status_t status = disconnect(c, how, wait ? &answered : NULL);
    al_put(&c->o);
    if (status == IB_SUCCESS && wait)
        await_answer(&answered);
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
                             : step(c, LEFT, OVER) ? IB_SUCCESS
                                                   : IB_INVALID_STATE;
    if (status == IB_SUCCESS)
        al_end(&c->o);
    al_put(&c->o);
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/connection.h"

#include "al/qp_modify.h"

#include <stdlib.h>

static const uint8_t nothing[IB_RTU_PDATA_SIZE];

/* ---- life ---- */

static void release(struct al_object *o)
{
    struct al_connection *c = container_of(o, struct al_connection, o);
    if (c->id)
        rdma_destroy_id(c->id);
    al_answer(&c->begin);
    al_answer(&c->end);
    pthread_mutex_destroy(&c->lock);
}

const struct al_kind al_connection_kind = {
    .type = AL_CONNECTION,
    .invalid = IB_INVALID_HANDLE,
    .release = release,
};

/* The queue pair, for as long as the connection is its child, and the context of the program. */
static const void *qp_context(const struct al_connection *c)
{
    return c->qp ? c->qp->o.context : NULL;
}

static void *qp_handle(const struct al_connection *c)
{
    return c->qp ? c->qp->o.handle : NULL;
}

static ib_cm_handle_t handle_of(const struct al_connection *c)
{
    return (ib_cm_handle_t){
        .h_al = c->h_al,
        .h_qp = qp_handle(c),
        .cid = CL_HTON32(al_number(&c->o)),
    };
}

struct al_connection *al_connection_new(struct al_layer *layer, enum al_cm_state state)
{
    struct al_connection *c = calloc(1, sizeof *c);
    if (c) {
        c->h_al = layer->o.handle;
        c->state = state;
        pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

bool al_connection_step(struct al_connection *c, enum al_cm_state from, enum al_cm_state to)
{
    pthread_mutex_lock(&c->lock);
    bool ok = c->state == from;
    if (ok)
        c->state = to;
    pthread_mutex_unlock(&c->lock);
    return ok;
}

/* ---- what is told ---- */

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
    al_answer(&c->begin);
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
    al_answer(&c->begin);
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
    al_answer(&c->begin);
}

void al_connection_tell_dreq(struct al_connection *c)
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
    al_answer(&c->end);
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
    enum al_cm_state before = c->state;
    c->state = AL_CM_OVER;
    pthread_mutex_unlock(&c->lock);
    if (before == AL_CM_RESOLVING || before == AL_CM_ACCEPTING)
        tell_rej(c, status, private_data);
    else if (before != AL_CM_OVER)
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
    if (al_connection_step(c, AL_CM_RESOLVING, AL_CM_REPLIED))
        tell_rep(c, event);
    else if (al_connection_step(c, AL_CM_ACCEPTING, AL_CM_CONNECTED))
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
    enum al_cm_state before = c->state;
    if (before == AL_CM_CONNECTED)
        c->state = AL_CM_LEFT;
    else if (before == AL_CM_REPLIED)
        c->gone = true;
    else
        c->state = AL_CM_OVER;
    pthread_mutex_unlock(&c->lock);
    if (c->qp)
        al_qp_disconnect(c->qp);
    if (before == AL_CM_CONNECTED)
        al_connection_tell_dreq(c);
    else if (before == AL_CM_LEAVING)
        tell_drep(c);
    else if (before == AL_CM_ACCEPTING)
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
    struct al_connection *c = al_get(&al_connection_kind, handle);
    if (!c)
        return;
    if ((size_t)event->type < sizeof handlers / sizeof *handlers && handlers[event->type])
        handlers[event->type](c, event);
    al_put(&c->o);
}

bool al_connection_requested(struct al_layer *layer, const struct al_cm_event *event,
                             ib_cm_handle_t *handle)
{
    struct al_connection *c = al_connection_new(layer, AL_CM_REQUESTED);
    if (al_add(c ? &c->o : NULL, &al_connection_kind, &layer->o, NULL) != IB_SUCCESS)
        return false;
    c->resp_res = event->responder_resources;
    c->init_depth = event->initiator_depth;
    c->id = event->id;
    c->id->context = c->o.handle;
    *handle = handle_of(c);
    al_put(&c->o);
    return true;
}

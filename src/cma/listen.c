/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening ids and the requests that come to them. */
#include "cma.h"

#include <stdlib.h>

#define BACKLOG_MAX 1024

static int listen_locked(struct cma_id *id, int backlog)
{
    int r = cma_may(id, CMA_CALL_LISTEN);
    if (r < 0)
        return r;
    if (!cma_connects(id))
        return -EOPNOTSUPP;
    if (id->state == CMA_IDLE) {
        struct sockaddr_storage any;
        cma_addr_wildcard(AF_INET, &any);
        r = cma_bind_locked(id, (struct sockaddr *)&any, false);
        if (r < 0)
            return r;
    }
    /* A port is shared for connections only. */
    id->reuseaddr = false;
    if (!cma_port_free(id, (struct sockaddr *)&id->bound))
        return -EADDRINUSE;
    if (backlog <= 0 || backlog > BACKLOG_MAX)
        backlog = BACKLOG_MAX;
    lock_get(&cma_events);
    id->backlog = backlog;
    lock_put(&cma_events);
    r = iw_cm_listen(id->cm, backlog);
    if (r < 0)
        return r;
    id->pub.route.addr.src_storage = id->bound;
    cma_set_state(id, CMA_CALL_LISTEN);
    return 0;
}

int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = listen_locked(id, backlog);
    lock_put(&id->lock);
    return cma_result(r);
}

/* Takes a place in the listener's queue. */
static bool reserve_place(struct cma_id *listener)
{
    lock_get(&cma_events);
    bool room = listener->pub.channel && listener->waiting < listener->backlog;
    if (room)
        listener->waiting++;
    lock_put(&cma_events);
    return room;
}

/* The id that a request brings; the program has not seen it yet. */
static struct cma_id *create_child(struct cma_id *listener, const struct iw_cm_event *from)
{
    struct cma_id *child = cma_id_alloc(CMA_CONN_RECV, listener->pub.ps, listener->pub.qp_type);
    if (!child)
        return NULL;
    struct rdma_addr *addr = &child->pub.route.addr;
    iw_cm_addresses(from->request, &addr->src_storage, &addr->dst_storage);
    cma_addr_unmap(&addr->src_storage);
    cma_addr_unmap(&addr->dst_storage);
    child->initiator_depth = from->initiator_depth;
    child->responder_resources = from->responder_resources;
    return child;
}

int cma_on_request(struct cma_id *listener, const struct iw_cm_event *from)
{
    struct cma_event *event = cma_event_create(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct cma_id *child = event ? create_child(listener, from) : NULL;
    if (!child || !reserve_place(listener)) {
        if (child)
            cma_id_free(child);
        free(event);
        return -1;
    }
    child->cm = from->request;
    iw_cm_set_handler(child->cm, cma_on_event, child);
    cma_event_fill(event, from);
    event->pub.id = &child->pub;
    event->pub.listen_id = &listener->pub;
    cma_event_queue(event);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when a program takes an event: the fields of the id change now, not when the event
 * was raised, so that a program finds them as the event says and never before it.
 */
#include "cma.h"

static void move(struct cma_id *id, enum cma_call outcome)
{
    /* An id that another thread destroys stays what it is. */
    if (cma_may(id, outcome) == 0)
        cma_set_state(id, outcome);
}

static void address_resolved(struct cma_id *id, struct rdma_cm_event *event)
{
    lock_get(&id->lock);
    int r = cma_device_get(id, (struct sockaddr *)&id->source);
    if (r < 0) {
        event->event = RDMA_CM_EVENT_ADDR_ERROR;
        event->status = r;
        move(id, CMA_CALL_ADDR_ERROR);
    } else {
        id->pub.route.addr.src_storage = id->source;
        if (cma_may(id, CMA_CALL_DESTROY) == 0)
            cma_host_watch(id, (struct sockaddr *)&id->source);
    }
    lock_put(&id->lock);
}

/* Completes the id of a request: from here on it is the program's. */
static int request(struct cma_id *child, struct cma_id *listener)
{
    int r = cma_device_get(child, &child->pub.route.addr.src_addr);
    if (r < 0)
        return r;
    child->pub.context = listener->pub.context;
    cma_host_watch(child, &child->pub.route.addr.src_addr);
    if (listener->sync)
        return cma_id_set_sync(child);
    lock_get(&cma_events);
    cma_channel_attach_locked(child, cma_channel(listener->pub.channel));
    lock_put(&cma_events);
    return 0;
}

static void established(struct cma_id *id)
{
    lock_get(&id->lock);
    id->established = true;
    lock_put(&id->lock);
}

/* The QP is in error already, or destroyed: the program may have done that behind the id's back. */
static void ended(struct cma_id *id)
{
    lock_get(&id->lock);
    move(id, CMA_CALL_ENDED);
    lock_put(&id->lock);
}

bool cma_deliver(struct cma_event *event)
{
    struct cma_id *id = cma_id(event->pub.id);
    switch (event->pub.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        address_resolved(id, &event->pub);
        return true;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (request(id, event->owner) < 0) {
            cma_id_free(id);
            return false;
        }
        return true;
    case RDMA_CM_EVENT_ESTABLISHED:
        established(id);
        return true;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DISCONNECTED:
        ended(id);
        return true;
    default:
        return true;
    }
}

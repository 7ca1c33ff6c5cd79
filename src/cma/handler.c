/* SPDX-License-Identifier: BSD-2-Clause */
/* What the transport tells of an id becomes an event. */
#include "cma.h"

#include <stdlib.h>

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
    if (from->datagrams)
        iw_sidr_addresses(from->datagrams, &addr->src_storage, &addr->dst_storage);
    else
        iw_cm_addresses(from->request, &addr->src_storage, &addr->dst_storage);
    cma_addr_unmap(&addr->src_storage);
    cma_addr_unmap(&addr->dst_storage);
    child->initiator_depth = from->initiator_depth;
    child->responder_resources = from->responder_resources;
    child->ib.on = from->ib;
    return child;
}

static int request(struct cma_id *listener, const struct iw_cm_event *from,
                   enum rdma_cm_event_type type)
{
    struct cma_event *event = cma_event_create(listener, type);
    struct cma_id *child = event ? create_child(listener, from) : NULL;
    if (!child || !reserve_place(listener)) {
        if (child)
            cma_id_free(child);
        free(event);
        return -1;
    }
    child->cm = from->request;
    child->sidr = from->datagrams;
    if (child->cm)
        iw_cm_set_handler(child->cm, cma_on_event, child);
    cma_event_fill(event, from);
    event->pub.id = &child->pub;
    event->pub.listen_id = &listener->pub;
    if (!cma_event_queue(event))
        cma_id_free(child);
    return 0;
}

static int outcome(struct cma_id *id, const struct iw_cm_event *from, enum rdma_cm_event_type type)
{
    lock_get(&cma_events);
    /* None put aside: a request that was not accepted yet, about which nothing is to be told. */
    struct cma_event *event = cma_event_spare_locked(id, from->private_data_len);
    if (event) {
        event->pub.event = type;
        cma_event_fill(event, from);
        if (cma_event_queue_locked(event))
            event = NULL;
    }
    lock_put(&cma_events);
    free(event);
    return 0;
}

/* A program that moves its QP itself has to do so now, on a RoCE device. */
static int established(struct cma_id *id, const struct iw_cm_event *from,
                       enum rdma_cm_event_type type)
{
    bool responds = from->ib && from->initiator && id->moves;
    return outcome(id, from, responds ? RDMA_CM_EVENT_CONNECT_RESPONSE : type);
}

static int stranger(struct cma_id *listener, const struct iw_cm_event *from,
                    enum rdma_cm_event_type unused)
{
    (void)unused;
    return listener->take_stranger(listener->pub.context, from->status);
}

int cma_on_event(void *owner, const struct iw_cm_event *from)
{
    static const struct {
        enum rdma_cm_event_type type;
        int (*tell)(struct cma_id *id, const struct iw_cm_event *from,
                    enum rdma_cm_event_type type);
    } events[] = {
        [IW_CM_CONNECT_REQUEST] = {RDMA_CM_EVENT_CONNECT_REQUEST, request},
        [IW_CM_ESTABLISHED] = {RDMA_CM_EVENT_ESTABLISHED, established},
        [IW_CM_REJECTED] = {RDMA_CM_EVENT_REJECTED, outcome},
        [IW_CM_UNREACHABLE] = {RDMA_CM_EVENT_UNREACHABLE, outcome},
        [IW_CM_CONNECT_ERROR] = {RDMA_CM_EVENT_CONNECT_ERROR, outcome},
        [IW_CM_DISCONNECTED] = {RDMA_CM_EVENT_DISCONNECTED, outcome},
        [IW_CM_STRANGER] = {.tell = stranger},
    };
    return events[from->type].tell(owner, from, events[from->type].type);
}

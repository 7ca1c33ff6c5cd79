/* SPDX-License-Identifier: BSD-2-Clause */
/* Events on their way from the transport to a channel's queue, and their acknowledgement. */
#include "cma.h"

#include <stdlib.h>
#include <string.h>

struct lock cma_events = LOCK(LOCK_CMA_EVENTS);

struct cma_event *cma_event_create(struct cma_id *id, enum rdma_cm_event_type type)
{
    struct cma_event *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->owner = id;
    event->pub.id = &id->pub;
    event->pub.event = type;
    list_init(&event->link);
    return event;
}

int cma_event_reserve(struct cma_id *id, int n)
{
    for (int i = 0; i < n; i++) {
        struct cma_event *event = cma_event_create(id, RDMA_CM_EVENT_CONNECT_ERROR);
        if (!event) {
            cma_event_unreserve(id);
            return -ENOMEM;
        }
        lock_get(&cma_events);
        list_add_tail(&id->spare, &event->link);
        lock_put(&cma_events);
    }
    return 0;
}

void cma_event_unreserve(struct cma_id *id)
{
    struct list *l;
    lock_get(&cma_events);
    while ((l = list_pop(&id->spare)))
        free(container_of(l, struct cma_event, link));
    lock_put(&cma_events);
}

bool cma_event_queue_locked(struct cma_event *event)
{
    assert_held(&cma_events);
    struct rdma_event_channel *channel = event->owner->pub.channel;
    if (!channel)
        return false;
    list_add_tail(&cma_channel(channel)->events, &event->link);
    iw_eventfd_raise(channel->fd);
    return true;
}

bool cma_event_queue(struct cma_event *event)
{
    lock_get(&cma_events);
    bool queued = cma_event_queue_locked(event);
    lock_put(&cma_events);
    if (!queued)
        cma_event_discard(event);
    return queued;
}

void cma_event_fill(struct cma_event *event, const struct iw_cm_event *from)
{
    struct rdma_conn_param *conn = &event->pub.param.conn;
    size_t len = from->private_data_len;
    if (len > sizeof event->private_data)
        len = sizeof event->private_data;
    if (len > 0) {
        memcpy(event->private_data, from->private_data, len);
        conn->private_data = event->private_data;
        conn->private_data_len = (uint8_t)len;
    }
    conn->initiator_depth = from->initiator_depth;
    conn->responder_resources = from->responder_resources;
    conn->qp_num = from->peer_qpn;
    event->pub.status = from->status;
}

static enum rdma_cm_event_type public_type(enum iw_cm_event_type type)
{
    switch (type) {
    case IW_CM_CONNECT_REQUEST:
        return RDMA_CM_EVENT_CONNECT_REQUEST;
    case IW_CM_ESTABLISHED:
        return RDMA_CM_EVENT_ESTABLISHED;
    case IW_CM_REJECTED:
        return RDMA_CM_EVENT_REJECTED;
    case IW_CM_UNREACHABLE:
        return RDMA_CM_EVENT_UNREACHABLE;
    case IW_CM_CONNECT_ERROR:
        return RDMA_CM_EVENT_CONNECT_ERROR;
    case IW_CM_DISCONNECTED:
        return RDMA_CM_EVENT_DISCONNECTED;
    }
    return RDMA_CM_EVENT_CONNECT_ERROR;
}

int cma_on_event(void *owner, const struct iw_cm_event *from)
{
    struct cma_id *id = owner;
    struct cma_event *event = NULL;

    if (from->type == IW_CM_CONNECT_REQUEST)
        return cma_on_request(id, from);
    lock_get(&cma_events);
    /* None put aside: a request that was not accepted yet, about which nothing is to be told. */
    struct list *spare = list_pop(&id->spare);
    if (spare) {
        event = container_of(spare, struct cma_event, link);
        event->pub.event = public_type(from->type);
        cma_event_fill(event, from);
        if (cma_event_queue_locked(event))
            event = NULL;
    }
    lock_put(&cma_events);
    free(event);
    return 0;
}

void cma_event_discard(struct cma_event *event)
{
    if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
        cma_id_free(cma_id(event->pub.id));
    free(event);
}

void cma_event_purge(struct cma_id *id)
{
    struct list gone, *l;
    list_init(&gone);

    lock_get(&cma_events);
    if (id->pub.channel) {
        struct cma_channel *channel = cma_channel(id->pub.channel);
        list_for_each_safe (it, &channel->events) {
            struct cma_event *event = container_of(it, struct cma_event, link);
            if (event->owner == id) {
                cma_event_unlink_locked(channel, event);
                list_add_tail(&gone, &event->link);
            }
        }
    }
    lock_put(&cma_events);

    while ((l = list_pop(&gone)))
        cma_event_discard(container_of(l, struct cma_event, link));
}

void cma_event_unlink_locked(struct cma_channel *channel, struct cma_event *event)
{
    assert_held(&cma_events);
    list_del(&event->link);
    if (list_empty(&channel->events))
        iw_eventfd_drain(channel->pub.fd);
}

void cma_event_wait_acked_locked(struct cma_id *id, uint32_t taken)
{
    int cancel;
    assert_held(&cma_events);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while ((int32_t)(id->acked - taken) < 0) {
        lock_mark_(&cma_events, false);
        pthread_cond_wait(&id->all_acked, &cma_events.mutex);
        lock_mark_(&cma_events, true);
    }
    pthread_setcancelstate(cancel, NULL);
}

int rdma_ack_cm_event(struct rdma_cm_event *pub)
{
    if (!pub)
        return cma_fail(EINVAL);
    struct cma_event *event = container_of(pub, struct cma_event, pub);

    lock_get(&cma_events);
    event->owner->acked++;
    pthread_cond_broadcast(&event->owner->all_acked);
    lock_put(&cma_events);
    free(event);
    return 0;
}

/* A synchronous id has no channel that its program knows, and would take the event for an answer.
 */
int rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type type, int status,
                        uint64_t arg)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);
    if (type != RDMA_CM_EVENT_USER || id->sync)
        return cma_fail(EINVAL);
    struct cma_event *event = cma_event_create(id, type);
    if (!event)
        return cma_fail(ENOMEM);
    event->pub.status = status;
    event->pub.param.arg = arg;

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_TELL);
    if (r == 0) {
        if (!cma_event_queue(event))
            r = -EINVAL; /* it is on no channel */
    } else {
        free(event);
    }
    lock_put(&id->lock);
    return cma_result(r);
}

void cma_event_adopt(struct rdma_cm_event *pub)
{
    struct cma_event *event = container_of(pub, struct cma_event, pub);
    struct cma_id *child = cma_id(pub->id);

    lock_get(&cma_events);
    event->owner->acked++;
    pthread_cond_broadcast(&event->owner->all_acked);
    event->owner = child;
    child->taken++;
    lock_put(&cma_events);
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
#define NAME(event) [event] = #event
    static const char *const names[] = {
        NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
        NAME(RDMA_CM_EVENT_ADDR_ERROR),
        NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
        NAME(RDMA_CM_EVENT_ROUTE_ERROR),
        NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
        NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
        NAME(RDMA_CM_EVENT_CONNECT_ERROR),
        NAME(RDMA_CM_EVENT_UNREACHABLE),
        NAME(RDMA_CM_EVENT_REJECTED),
        NAME(RDMA_CM_EVENT_ESTABLISHED),
        NAME(RDMA_CM_EVENT_DISCONNECTED),
        NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
        NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
        NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
        NAME(RDMA_CM_EVENT_ADDR_CHANGE),
        NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
        NAME(RDMA_CM_EVENT_ADDRINFO_RESOLVED),
        NAME(RDMA_CM_EVENT_ADDRINFO_ERROR),
        NAME(RDMA_CM_EVENT_USER),
        NAME(RDMA_CM_EVENT_INTERNAL),
    };
#undef NAME
    unsigned index = (unsigned)type;
    return index < sizeof names / sizeof names[0] ? names[index] : "UNKNOWN EVENT";
}

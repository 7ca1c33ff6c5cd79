/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when a program takes an event: the fields of the id change now, not when the event
 * was raised, so that a program finds them as the event says and never before it.
 */
#include "cma.h"

#include <stdlib.h>

static void move(struct cma_id *id, enum cma_call outcome)
{
    /* An id that another thread destroys stays what it is. */
    if (cma_may(id, outcome) == 0)
        cma_set_state(id, outcome);
}

static void address_resolved(struct cma_id *id, struct rdma_cm_event *event)
{
    lock_get(&id->lock);
    int r = cma_device_get(id, (struct sockaddr *)&id->source, IW_CM_ANY_DEVICE);
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

/* What the peer of an id on a RoCE device has said. */
static void note_peer(struct cma_id *id, const struct rdma_conn_param *said)
{
    if (!id->ib.on || cma_datagrams(id))
        return;
    id->ib.peer_qpn = said->qp_num;
    id->ib.rnr_retry = said->rnr_retry_count;
    id->initiator_depth = said->initiator_depth;
    id->responder_resources = said->responder_resources;
}

/* Completes the id of a request: from here on it is the program's. */
static int request(struct cma_id *child, struct cma_id *listener,
                   const struct rdma_conn_param *said)
{
    enum iw_cm_kind_of_device kind = child->ib.on ? IW_CM_ROCE_DEVICE : IW_CM_IWARP_DEVICE;
    int r = cma_device_get(child, &child->pub.route.addr.src_addr, kind);
    if (r == 0 && listener->pub.verbs && listener->pub.verbs != child->pub.verbs)
        r = -ENODEV;
    if (r < 0) {
        iw_refuse("rdma_listen", OTHER_KIND, child->ib.on ? "a RoCE" : "an iWARP");
        return r;
    }
    note_peer(child, said);
    child->ib.retry_count = said->retry_count;
    child->pub.context = listener->pub.context;
    cma_host_watch(child, &child->pub.route.addr.src_addr);
    if (listener->sync)
        return cma_channel_own(child);
    lock_get(&cma_events);
    cma_channel_attach_locked(child, cma_channel(listener->pub.channel));
    lock_put(&cma_events);
    return 0;
}

static void tell(struct cma_id *id, enum rdma_cm_event_type type)
{
    struct cma_event *event = cma_event_create(id, type);
    if (event)
        cma_event_queue(event);
}

static void established(struct cma_id *id, struct rdma_cm_event *event)
{
    if (cma_datagrams(id)) {
        cma_answered(id, event);
        return;
    }
    lock_get(&id->lock);
    note_peer(id, &event->param.conn);
    id->established = true;
    lock_put(&id->lock);
    if (iw_cm_chaos(IW_FAULT_ADDR_CHANGE, NULL))
        tell(id, RDMA_CM_EVENT_ADDR_CHANGE);
    if (iw_cm_chaos(IW_FAULT_DEVICE_REMOVAL, NULL))
        tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
}

/* The QP is in error already, or destroyed: the program may have done that behind the id's back. */
static void ended(struct cma_id *id)
{
    lock_get(&id->lock);
    move(id, CMA_CALL_ENDED);
    lock_put(&id->lock);
}

/* @return false if the event cannot be delivered: it is to be acknowledged, and the next taken */
static bool deliver(struct cma_event *event)
{
    struct cma_id *id = cma_id(event->pub.id);
    switch (event->pub.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        address_resolved(id, &event->pub);
        return true;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (request(id, event->owner, &event->pub.param.conn) < 0) {
            cma_id_free(id);
            return false;
        }
        return true;
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        established(id, &event->pub);
        return true;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
        cma_joined(id, event);
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

/* A child of fork() asks for events: its listeners go on. */
static void resume_locked(struct cma_channel *channel)
{
    assert_held(&cma_events);
    channel->rests = false;
    list_for_each (l, &channel->ids) {
        struct cma_id *id = container_of(l, struct cma_id, link);
        if (id->cm)
            iw_cm_resume(id->cm);
    }
}

static struct cma_event *take(struct cma_channel *channel)
{
    struct cma_event *event = NULL;
    lock_get(&cma_events);
    if (channel->rests)
        resume_locked(channel);
    if (channel->pub.fd >= 0 && !list_empty(&channel->events)) {
        event = container_of(channel->events.next, struct cma_event, link);
        cma_event_unlink_locked(channel, event);
        event->owner->taken++;
        if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            event->owner->waiting--;
    }
    lock_put(&cma_events);
    return event;
}

/* The next event that can be delivered, NULL if none waits. */
static struct cma_event *take_deliverable(struct cma_channel *channel)
{
    struct cma_event *event;
    int cancel;
    /* Once taken an event must reach the program: no cancellation until then. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while ((event = take(channel)) && !deliver(event))
        rdma_ack_cm_event(&event->pub);
    pthread_setcancelstate(cancel, NULL);
    return event;
}

#define GET "rdma_get_cm_event"

static int get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
    if (!channel)
        return cma_no_handle(GET);
    if (!out)
        return cma_fail(iw_refuse(GET, ARGUMENT));
    if (iw_cm_chaos(IW_FAULT_GET_CM_EVENT, NULL))
        return cma_fail(EINTR);
    for (;;) {
        /* Also behind a spin: who has cancelled this thread may have freed what out is in. */
        pthread_testcancel();
        struct cma_event *event = take_deliverable(cma_channel(channel));
        if (event) {
            iw_cm_life_begin(event, "CM event");
            cma_event_lend(event);
            *out = &event->pub;
            iw_cm_record_got(rdma_event_str(event->pub.event), event->pub.id, event->pub.status);
            return 0;
        }
        int fd = __atomic_load_n(&channel->fd, __ATOMIC_RELAXED);
        if (iw_eventfd_nonblocking(fd))
            return cma_fail(EAGAIN);
        int r = iw_cm_wait(fd);
        /* A channel that is being destroyed has no descriptor any more: its waiters sleep. It is
         * never freed, so that looking is all that needs to be safe. */
        bool destroyed = r == -EBADF && __atomic_load_n(&channel->fd, __ATOMIC_RELAXED) < 0;
        if (r < 0 && !destroyed)
            return cma_fail(-r);
    }
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
    struct iw_recorded recorded = iw_cm_record(GET, channel);
    int r = get_cm_event(channel, out);
    iw_cm_record_end(recorded, r ? errno : 0);
    return r;
}

int cma_complete(struct cma_id *id, int r)
{
    struct rdma_cm_id *pub = &id->pub;
    bool sync = id->sync;
    iw_cm_record_end(cma_recorded(id), -r);
    lock_put(&id->lock);
    if (r < 0 || !sync)
        return cma_result(r);
    cma_drop_held_event(id);
    if (rdma_get_cm_event(pub->channel, &pub->event)) {
        pub->event = NULL;
        return -1;
    }
    return cma_event_result(pub->event);
}

void cma_drop_held_event(struct cma_id *id)
{
    if (id->pub.event)
        rdma_ack_cm_event(id->pub.event);
    id->pub.event = NULL;
}

int cma_event_result(const struct rdma_cm_event *event)
{
    if (event->status == 0)
        return 0;
    if (event->event == RDMA_CM_EVENT_REJECTED)
        return cma_fail(ECONNREFUSED);
    return cma_fail(abs(event->status));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events on their way to a channel's queue, and their acknowledgement. */
#include "cma.h"

#include <stdlib.h>
#include <string.h>

struct lock cma_events = LOCK(LOCK_CMA_EVENTS);

static struct cma_event *create(struct cma_id *id, enum rdma_cm_event_type type, uint8_t room)
{
    struct cma_event *event = calloc(1, sizeof *event + room);
    if (!event)
        return NULL;
    event->room = room;
    event->owner = id;
    event->pub.id = &id->pub;
    event->pub.event = type;
    list_init(&event->link);
    return event;
}

struct cma_event *cma_event_create(struct cma_id *id, enum rdma_cm_event_type type)
{
    return create(id, type, CMA_PRIVATE_DATA_MAX);
}

static int put_aside(struct cma_id *id, uint8_t room)
{
    struct cma_event *event = create(id, RDMA_CM_EVENT_CONNECT_ERROR, room);
    if (!event)
        return -ENOMEM;
    lock_get(&cma_events);
    list_add_tail(&id->spare, &event->link);
    lock_put(&cma_events);
    return 0;
}

int cma_event_reserve(struct cma_id *id, bool ends)
{
    int r = put_aside(id, CMA_PRIVATE_DATA_MAX);
    if (r == 0 && ends)
        r = put_aside(id, 0);
    if (r < 0)
        cma_event_unreserve(id);
    return r;
}

struct cma_event *cma_event_spare_locked(struct cma_id *id, size_t private_data)
{
    assert_held(&cma_events);
    list_for_each (l, &id->spare) {
        struct cma_event *event = container_of(l, struct cma_event, link);
        if (private_data && !event->room)
            continue;
        list_del(&event->link);
        return event;
    }
    return NULL;
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
    iw_cm_record_raised(rdma_event_str(event->pub.event), event->pub.id, event->pub.status);
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
        free(event);
    return queued;
}

/* Private data has the same place in what is told of connections and of datagrams. */
_Static_assert(offsetof(struct rdma_ud_param, private_data) ==
                       offsetof(struct rdma_conn_param, private_data) &&
                   offsetof(struct rdma_ud_param, private_data_len) ==
                       offsetof(struct rdma_conn_param, private_data_len),
               "private data");

void cma_event_fill(struct cma_event *event, const struct iw_cm_event *from)
{
    struct rdma_conn_param *conn = &event->pub.param.conn;
    size_t len = from->private_data_len;
    if (len > event->room)
        len = event->room;
    if (len > 0) {
        memcpy(event->private_data, from->private_data, len);
        conn->private_data = event->private_data;
        conn->private_data_len = (uint8_t)len;
    }
    event->pub.status = from->status;
    if (cma_datagrams(event->owner)) {
        event->pub.param.ud.qp_num = from->peer_qpn;
        event->pub.param.ud.qkey = from->qkey;
        return;
    }
    conn->initiator_depth = from->initiator_depth;
    conn->responder_resources = from->responder_resources;
    conn->qp_num = from->peer_qpn;
    if (from->ib) {
        conn->flow_control = 1;
        conn->retry_count = from->terms.retry_count;
        conn->rnr_retry_count = from->terms.rnr_retry;
        conn->srq = from->terms.srq;
    }
}

void cma_event_lend(struct cma_event *event)
{
    struct rdma_conn_param *conn = &event->pub.param.conn;
    if (conn->private_data != event->private_data)
        return;
    event->lent = iw_cm_lend(event->private_data, conn->private_data_len);
    if (event->lent)
        conn->private_data = event->lent;
}

void cma_event_unlink_locked(struct cma_channel *channel, struct cma_event *event)
{
    assert_held(&cma_events);
    list_del(&event->link);
    if (list_empty(&channel->events))
        iw_eventfd_drain(channel->pub.fd);
}

void cma_events_move_locked(struct cma_id *id, struct list *to)
{
    assert_held(&cma_events);
    if (!id->pub.channel)
        return;
    struct cma_channel *channel = cma_channel(id->pub.channel);
    list_for_each_safe (it, &channel->events) {
        struct cma_event *event = container_of(it, struct cma_event, link);
        if (event->owner == id) {
            cma_event_unlink_locked(channel, event);
            list_add_tail(to, &event->link);
        }
    }
}

void cma_event_wait_acked_locked(struct cma_id *id)
{
    const uint32_t taken = id->taken;
    struct iw_unmet unmet = {0};
    while ((int32_t)(id->acked - taken) < 0) {
        bool over = lock_wait_ms(&cma_events, &id->all_acked, iw_cm_unmet_ms(&unmet));
        if (over && (int32_t)(id->acked - taken) < 0) {
            unmet.waited = true;
            iw_cm_advise(IW_FINDING_UNACKED_EVENT, "rdma_cm_id",
                         "rdma_destroy_id() or rdma_migrate_id() waits for the acknowledgement of "
                         "events that were taken");
            iw_cm_unmet("rdma_destroy_id, rdma_migrate_id: waits for acknowledgements of %u events "
                        "(rdma_ack_cm_event)",
                        taken - id->acked);
        }
    }
}

static void acked_locked(struct cma_event *event)
{
    assert_held(&cma_events);
    event->owner->acked++;
    lock_wake_all(&event->owner->all_acked);
}

int rdma_ack_cm_event(struct rdma_cm_event *pub)
{
    if (!pub)
        return cma_fail(iw_refuse(__func__, ARGUMENT));
    struct cma_event *event = container_of(pub, struct cma_event, pub);
    if (iw_cm_life_over(event, __func__))
        return cma_fail(EINVAL); /* told as a finding */

    iw_cm_record_end(iw_cm_record(__func__, pub->id), 0);
    lock_get(&cma_events);
    acked_locked(event);
    lock_put(&cma_events);
    iw_cm_lend_over(event->lent);
    iw_cm_life_end(event);
    return 0;
}

void cma_event_adopt(struct rdma_cm_event *pub)
{
    struct cma_event *event = container_of(pub, struct cma_event, pub);

    lock_get(&cma_events);
    acked_locked(event);
    event->owner = cma_id(pub->id);
    event->owner->taken++;
    lock_put(&cma_events);
}

/* A synchronous id has no channel that its program knows, and would take the event for an answer.
 */
static int write_locked(struct cma_id *id, enum rdma_cm_event_type type, int status, uint64_t arg)
{
    if (type != RDMA_CM_EVENT_USER || id->sync)
        return -iw_refuse("rdma_write_cm_event", VALUE,
                          "another type than USER, or an id without channel");
    struct cma_event *event = cma_event_create(id, type);
    if (!event)
        return -ENOMEM;
    event->pub.status = status;
    event->pub.param.arg = arg;
    bool queued = cma_event_queue(event);
    return queued ? 0 : -iw_refuse("rdma_write_cm_event", VALUE, "an id on no channel");
}

int rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type type, int status,
                        uint64_t arg)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_TELL);
    return id ? cma_leave(id, write_locked(id, type, status, arg)) : cma_refused(pub);
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

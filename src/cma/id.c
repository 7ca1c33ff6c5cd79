/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of an id. */
#include "cma.h"

#include <stdlib.h>

struct cma_id *cma_id_alloc(enum cma_state state, enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct cma_id *id = calloc(1, sizeof *id);
    if (!id)
        return NULL;
    id->pub.ps = ps;
    id->pub.qp_type = qp_type;
    id->state = state;
    id->afonly = -1;
    lock_init_in(&id->lock, &cma_ids);
    list_init(&id->link);
    list_init(&id->spare);
    list_init(&id->port);
    list_init(&id->host.link);
    pthread_cond_init(&id->all_acked, NULL);
    return id;
}

void cma_id_free(struct cma_id *id)
{
    if (id->cm)
        iw_cm_destroy(id->cm);
    cma_port_release(id);
    cma_host_unwatch(id);
    cma_event_unreserve(id);
    cma_device_put(id);
    free(id->request_qp);
    free(id->connect_data);
    pthread_cond_destroy(&id->all_acked);
    lock_fini(&id->lock);
    free(id);
}

int cma_id_set_sync(struct cma_id *id)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        return -errno;
    lock_get(&cma_events);
    cma_channel_attach_locked(id, cma_channel(channel));
    lock_put(&cma_events);
    id->sync = true;
    return 0;
}

/* The transport of a new id, and its channel. */
static int open_id(struct cma_id *id, struct rdma_event_channel *channel)
{
    int r = iw_cm_create(&id->cm, cma_on_event, id);
    if (r < 0)
        return r;
    if (!channel)
        return cma_id_set_sync(id);
    lock_get(&cma_events);
    cma_channel_attach_locked(id, cma_channel(channel));
    lock_put(&cma_events);
    return 0;
}

int cma_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                  enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    switch (ps) {
    case RDMA_PS_TCP:
    case RDMA_PS_UDP:
    case RDMA_PS_IB:
    case RDMA_PS_IPOIB:
        break;
    default:
        return cma_fail(EINVAL);
    }
    if (!iw_cm_contexts())
        return -1;
    struct cma_id *id = cma_id_alloc(CMA_IDLE, ps, qp_type);
    if (!id)
        return cma_fail(ENOMEM);
    id->pub.context = context;
    int r = open_id(id, channel);
    if (r < 0) {
        cma_id_free(id);
        return cma_fail(-r);
    }
    *out = &id->pub;
    return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
    if (!id)
        return cma_no_handle();
    bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
    return cma_id_create(channel, id, context, ps, datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(struct rdma_cm_id *pub)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_DESTROY);
    if (r == 0)
        cma_set_state(id, CMA_CALL_DESTROY);
    lock_put(&id->lock);
    if (r < 0)
        return cma_fail(-r);

    /* No handler runs after these, so no event can come behind the purge. */
    iw_cm_destroy(id->cm);
    id->cm = NULL;
    cma_host_unwatch(id);
    cma_lookup_end(id);
    cma_event_purge(id);
    if (id->sync)
        cma_drop_held_event(id);

    lock_get(&cma_events);
    struct rdma_event_channel *channel = pub->channel;
    cma_event_wait_acked_locked(id, id->taken);
    cma_channel_attach_locked(id, NULL);
    lock_put(&cma_events);

    if (id->sync)
        rdma_destroy_event_channel(channel);
    cma_id_free(id);
    return 0;
}

/* Moves the waiting events of an id from one queue to another, in order. */
static void move_events_locked(struct cma_id *id, struct cma_channel *from, struct cma_channel *to)
{
    list_for_each_safe (it, &from->events) {
        struct cma_event *event = container_of(it, struct cma_event, link);
        if (event->owner != id)
            continue;
        cma_event_unlink_locked(from, event);
        list_add_tail(&to->events, &event->link);
        iw_eventfd_raise(to->pub.fd);
    }
}

int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);
    bool was_sync = id->sync, sync = !channel;
    if (sync && was_sync)
        return cma_fail(EINVAL);
    if (sync && !(channel = rdma_create_event_channel()))
        return -1;
    if (was_sync)
        cma_drop_held_event(id);

    lock_get(&cma_events);
    struct rdma_event_channel *old = pub->channel;
    id->sync = sync;
    if (old && old != channel)
        move_events_locked(id, cma_channel(old), cma_channel(channel));
    cma_channel_attach_locked(id, cma_channel(channel));
    cma_event_wait_acked_locked(id, id->taken);
    lock_put(&cma_events);

    if (was_sync)
        rdma_destroy_event_channel(old);
    return 0;
}

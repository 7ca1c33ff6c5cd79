/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating, destroying and moving an id. */
#include "cma.h"

/* The transport of a new id, and its channel. */
static int open_id(struct cma_id *id, struct rdma_event_channel *channel)
{
    int r = cma_transport_open(id, cma_on_event);
    if (r < 0)
        return r;
    if (!channel)
        return cma_channel_own(id);
    cma_channel_attach(id, channel);
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
        return cma_fail(iw_refuse("rdma_create_id", PORT_SPACE, (unsigned)ps));
    }
    if (!iw_cm_contexts())
        return -1;
    if (iw_cm_chaos(IW_FAULT_CREATE_ID, NULL))
        return cma_fail(ENOMEM);
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
    iw_cm_record_end(iw_cm_record("rdma_create_id", *out), 0);
    return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
    if (!id) {
        iw_refuse("rdma_create_id", ARGUMENT);
        return cma_no_handle(__func__);
    }
    bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
    return cma_id_create(channel, id, context, ps, datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(struct rdma_cm_id *pub)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_DESTROY);
    if (!id)
        return cma_refused(pub);
    struct list gone = {&gone, &gone};
    struct iw_recorded recorded = cma_recorded(id);
    cma_set_state(id, CMA_CALL_DESTROY);
    lock_put(&id->lock);

    /* No handler runs after these, so no event can come behind those that go now. */
    cma_transport_close(id);
    cma_host_unwatch(id);
    cma_lookup_end(id);
    lock_get(&cma_events);
    cma_events_move_locked(id, &gone);
    lock_put(&cma_events);
    cma_events_discard(&gone);
    if (id->sync)
        cma_drop_held_event(id);

    lock_get(&cma_events);
    struct rdma_event_channel *channel = pub->channel;
    cma_event_wait_acked_locked(id);
    cma_channel_attach_locked(id, NULL);
    lock_put(&cma_events);

    if (id->sync)
        rdma_destroy_event_channel(channel);
    cma_id_free(id);
    iw_cm_record_end(recorded, 0);
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
    if (!pub)
        return cma_no_handle(__func__);
    struct cma_id *id = cma_id(pub);
    bool was_sync = id->sync, sync = !channel;
    if (iw_cm_chaos(IW_FAULT_MIGRATE_ID, NULL))
        return cma_fail(ENOMEM);
    if (sync && was_sync)
        return cma_fail(iw_refuse(__func__, VALUE, "no channel, and the id had none"));
    if (sync && !(channel = rdma_create_event_channel()))
        return -1;
    if (was_sync)
        cma_drop_held_event(id);

    struct list moved = {&moved, &moved}, *l;
    lock_get(&cma_events);
    struct rdma_event_channel *old = pub->channel;
    id->sync = sync;
    if (old != channel)
        cma_events_move_locked(id, &moved);
    cma_channel_attach_locked(id, cma_channel(channel));
    while ((l = list_pop(&moved)))
        cma_event_queue_locked(container_of(l, struct cma_event, link));
    cma_event_wait_acked_locked(id);
    lock_put(&cma_events);

    if (was_sync)
        rdma_destroy_event_channel(old);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels. */
#include "cma.h"

#include <stdlib.h>

/*
 * Destroyed channels, to be used again. Their memory stays, with descriptor -1: programs (rping
 * among them) destroy a channel while a thread of theirs is about to read it. That thread sleeps,
 * as one does that was already in read() when the kernel's descriptor was closed.
 */
static struct list destroyed = {&destroyed, &destroyed};

static struct cma_channel *channel_alloc(void)
{
    lock_get(&cma_events);
    struct list *l = list_pop(&destroyed);
    lock_put(&cma_events);
    struct cma_channel *channel = l ? container_of(l, struct cma_channel, events) : NULL;
    if (!channel)
        channel = malloc(sizeof *channel);
    if (!channel)
        return NULL;
    list_init(&channel->events);
    list_init(&channel->ids);
    channel->rests = false;
    return channel;
}

static void channel_free(struct cma_channel *channel)
{
    lock_get(&cma_events);
    __atomic_store_n(&channel->pub.fd, -1, __ATOMIC_RELAXED);
    list_add_tail(&destroyed, &channel->events);
    lock_put(&cma_events);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    if (!iw_cm_contexts())
        return NULL;
    if (iw_cm_chaos(IW_FAULT_CREATE_EVENT_CHANNEL, NULL)) {
        errno = EMFILE;
        return NULL;
    }
    struct cma_channel *channel = channel_alloc();
    if (!channel) {
        errno = ENOMEM;
        return NULL;
    }
    int fd = iw_eventfd_create();
    if (fd < 0) {
        channel_free(channel);
        errno = -fd;
        return NULL;
    }
    __atomic_store_n(&channel->pub.fd, fd, __ATOMIC_RELAXED);
    iw_cm_record_end(iw_cm_record("rdma_create_event_channel", channel), 0);
    return &channel->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
    if (!pub)
        return;
    struct cma_channel *channel = cma_channel(pub);
    struct list gone = {&gone, &gone}, *l;
    struct iw_recorded recorded = iw_cm_record(__func__, channel);

    lock_get(&cma_events);
    while (!list_empty(&channel->ids))
        cma_channel_attach_locked(container_of(channel->ids.next, struct cma_id, link), NULL);
    while ((l = list_pop(&channel->events)))
        list_add_tail(&gone, l);
    lock_put(&cma_events);

    cma_events_discard(&gone);
    iw_eventfd_close(pub->fd);
    channel_free(channel);
    iw_cm_record_end(recorded, 0);
}

void cma_channel_attach_locked(struct cma_id *id, struct cma_channel *channel)
{
    assert_held(&cma_events);
    list_del(&id->link);
    if (channel)
        list_add_tail(&channel->ids, &id->link);
    id->pub.channel = channel ? &channel->pub : NULL;
}

void cma_channel_attach(struct cma_id *id, struct rdma_event_channel *channel)
{
    lock_get(&cma_events);
    cma_channel_attach_locked(id, cma_channel(channel));
    lock_put(&cma_events);
}

int cma_channel_own(struct cma_id *id)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        return -errno;
    cma_channel_attach(id, channel);
    id->sync = true;
    return 0;
}

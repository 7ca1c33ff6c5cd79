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
    return &channel->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
    if (!pub)
        return;
    struct cma_channel *channel = cma_channel(pub);
    struct list gone, *l;
    list_init(&gone);

    lock_get(&cma_events);
    while (!list_empty(&channel->ids))
        cma_channel_attach_locked(container_of(channel->ids.next, struct cma_id, link), NULL);
    while ((l = list_pop(&channel->events)))
        list_add_tail(&gone, l);
    lock_put(&cma_events);

    while ((l = list_pop(&gone)))
        cma_event_discard(container_of(l, struct cma_event, link));
    iw_eventfd_close(pub->fd);
    channel_free(channel);
}

void cma_channel_attach_locked(struct cma_id *id, struct cma_channel *channel)
{
    assert_held(&cma_events);
    list_del(&id->link);
    if (channel)
        list_add_tail(&channel->ids, &id->link);
    id->pub.channel = channel ? &channel->pub : NULL;
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
    while ((event = take(channel)) && !cma_deliver(event))
        rdma_ack_cm_event(&event->pub);
    pthread_setcancelstate(cancel, NULL);
    return event;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
    if (!channel)
        return cma_no_handle();
    if (!out)
        return cma_fail(EINVAL);
    for (;;) {
        /* Also behind a spin: who has cancelled this thread may have freed what out is in. */
        pthread_testcancel();
        struct cma_event *event = take_deliverable(cma_channel(channel));
        if (event) {
            *out = &event->pub;
            return 0;
        }
        int fd = __atomic_load_n(&channel->fd, __ATOMIC_RELAXED);
        if (iw_eventfd_nonblocking(fd))
            return cma_fail(EAGAIN);
        int r = iw_cm_wait(fd);
        /* A channel that is being destroyed has no descriptor any more: its getters sleep. It is
         * never freed, so that looking is all that needs to be safe. */
        bool destroyed = r == -EBADF && __atomic_load_n(&channel->fd, __ATOMIC_RELAXED) < 0;
        if (r < 0 && !destroyed)
            return cma_fail(-r);
    }
}

int cma_complete_unlock(struct cma_id *id, int r)
{
    struct rdma_cm_id *pub = &id->pub;
    bool sync = id->sync;
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/cq.h"
#include "rnic/iwcm.h"

#include <errno.h>
#include <stdlib.h>

static struct lock_class locks = LOCK_CLASS(locks);

void iw_channel_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}

struct iw_channel *iw_channel_create(struct ibv_context *ctx)
{
    struct iw_channel *ch = calloc(1, sizeof(*ch));
    int fd = ch ? iw_eventfd_create() : -ENOMEM;
    if (fd < 0) {
        free(ch);
        errno = -fd;
        return NULL;
    }
    ch->pub.context = ctx;
    ch->pub.fd = fd;
    lock_init_in(&ch->lock, &locks);
    list_init(&ch->events);
    return ch;
}

int iw_channel_destroy(struct iw_channel *ch)
{
    lock_get(&ch->lock);
    bool busy = ch->pub.refcnt > 0;
    lock_put(&ch->lock);
    if (busy)
        return EBUSY;
    iw_eventfd_close(ch->pub.fd);
    lock_fini(&ch->lock);
    free(ch);
    return 0;
}

static void unqueue_locked(struct iw_channel *ch, struct iw_cq *cq)
{
    assert_held(&ch->lock);
    list_del(&cq->event_link);
    cq->event_queued = false;
    if (list_empty(&ch->events))
        iw_eventfd_drain(ch->pub.fd);
}

struct iw_cq *iw_channel_take(struct iw_channel *ch)
{
    struct iw_cq *cq = NULL;
    lock_get(&ch->lock);
    if (!list_empty(&ch->events)) {
        cq = container_of(ch->events.next, struct iw_cq, event_link);
        unqueue_locked(ch, cq);
        cq->events_read++;
    }
    lock_put(&ch->lock);
    return cq;
}

void iw_channel_raise(struct iw_cq *cq)
{
    struct iw_channel *ch = cq->channel;
    lock_get(&ch->lock);
    if (!cq->event_queued) {
        cq->event_queued = true;
        list_add_tail(&ch->events, &cq->event_link);
        iw_eventfd_raise(ch->pub.fd);
    }
    lock_put(&ch->lock);
}

unsigned iw_channel_drop(struct iw_cq *cq)
{
    struct iw_channel *ch = cq->channel;
    lock_get(&ch->lock);
    if (cq->event_queued)
        unqueue_locked(ch, cq);
    unsigned read = cq->events_read;
    ch->pub.refcnt--;
    lock_put(&ch->lock);
    return read;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/channel.h"

#include "advice/life.h"
#include "cq/cq.h"
#include "engine/waiter.h"
#include "env/eventfd.h"
#include "env/refuse.h"
#include "env/unmet.h"

#include <errno.h>
#include <stdlib.h>

#define AFTER_MS_MAX 64000 /* between two looks, of which each waits twice as long */
#define NS_PER_MS    1000000

static struct lock_class locks = LOCK_CLASS(locks, LOCK_CHANNEL);

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
    int users = ch->pub.refcnt;
    lock_put(&ch->lock);
    if (users > 0)
        return iw_refuse("ibv_destroy_comp_channel", CHANNEL_USED, users);
    iw_timer_cancel(&ch->unmet);
    iw_eventfd_close(ch->pub.fd);
    lock_fini(&ch->lock);
    iw_life_end(ch);
    return 0;
}

/** @p cq has no event left. */
static void unqueue_locked(struct iw_channel *ch, struct iw_cq *cq)
{
    assert_held(&ch->lock);
    list_del(&cq->event_link);
    cq->events_queued = 0;
    cq->event_told = false;
    if (list_empty(&ch->events) && ch->readable) {
        ch->readable = false;
        iw_eventfd_drain(ch->pub.fd);
    }
}

static void raise_locked(struct iw_channel *ch)
{
    assert_held(&ch->lock);
    ch->readable = true;
    iw_eventfd_raise(ch->pub.fd);
}

/** What this thread was to take, as it came upon it, is for others. */
static void leave_locked(struct iw_channel *ch)
{
    assert_held(&ch->lock);
    if (!list_empty(&ch->events) && !ch->readable)
        raise_locked(ch);
}

void iw_channel_leave(struct iw_channel *ch)
{
    lock_get(&ch->lock);
    leave_locked(ch);
    lock_put(&ch->lock);
}

struct iw_cq *iw_channel_take(struct iw_channel *ch)
{
    struct iw_cq *cq = NULL;
    lock_get(&ch->lock);
    if (!list_empty(&ch->events)) {
        cq = container_of(ch->events.next, struct iw_cq, event_link);
        cq->events_read++;
        ch->awaited = false;
        if (--cq->events_queued) { /* the others have their turn */
            list_del(&cq->event_link);
            list_add_tail(&ch->events, &cq->event_link);
        } else {
            unqueue_locked(ch, cq);
        }
    }
    leave_locked(ch); /* the rest */
    lock_put(&ch->lock);
    return cq;
}

/* ---- waits that may never end ---- */

static void silent(struct iw_timer *t);

static void time_locked(struct iw_channel *ch, unsigned ms)
{
    assert_held(&ch->lock);
    ch->timed = true;
    iw_timer_set(&ch->unmet, ms, silent);
}

static void silent(struct iw_timer *t)
{
    struct iw_channel *ch = container_of(t, struct iw_channel, unmet);
    lock_get(&ch->lock);
    unsigned waited_ms = (unsigned)((iw_now() - ch->since) / NS_PER_MS);
    bool due = ch->awaited && waited_ms >= IW_UNMET_MS;
    ch->timed = false;
    if (ch->awaited && !due)
        time_locked(ch, IW_UNMET_MS - waited_ms);
    lock_put(&ch->lock);
    if (!due)
        return;
    bool told = ch->look(ch);
    lock_get(&ch->lock);
    ch->told = told;
    if (!told)
        time_locked(ch, ch->after_ms);
    if (ch->after_ms < AFTER_MS_MAX)
        ch->after_ms *= 2;
    lock_put(&ch->lock);
}

void iw_channel_expect(struct iw_channel *ch, iw_channel_look *look)
{
    lock_get(&ch->lock);
    if (!ch->awaited) {
        ch->awaited = true;
        ch->look = look;
        ch->since = iw_now();
        ch->after_ms = IW_UNMET_MS;
    }
    if (!ch->timed && !ch->told)
        time_locked(ch, IW_UNMET_MS);
    lock_put(&ch->lock);
}

/* ---- events ---- */

bool iw_channel_queue(struct iw_cq *cq)
{
    struct iw_channel *ch = cq->channel;
    lock_get(&ch->lock);
    bool first = cq->events_queued++ == 0;
    if (first)
        list_add_tail(&ch->events, &cq->event_link);
    lock_put(&ch->lock);
    return first;
}

void iw_channel_tell(struct iw_cq *cq)
{
    struct iw_channel *ch = cq->channel;
    lock_get(&ch->lock);
    if (cq->events_queued && !cq->event_told) { /* else it is taken, or another thread was here */
        cq->event_told = true;
        if (!iw_engine_hears(ch->pub.fd))
            raise_locked(ch);
    }
    lock_put(&ch->lock);
}

void iw_channel_raise(struct iw_cq *cq)
{
    if (iw_channel_queue(cq))
        iw_channel_tell(cq);
}

unsigned iw_channel_drop(struct iw_cq *cq)
{
    struct iw_channel *ch = cq->channel;
    lock_get(&ch->lock);
    if (cq->events_queued)
        unqueue_locked(ch, cq);
    unsigned read = cq->events_read;
    ch->pub.refcnt--;
    lock_put(&ch->lock);
    return read;
}

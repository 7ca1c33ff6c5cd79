/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/async.h"

#include "engine/engine.h"
#include "env/eventfd.h"
#include "env/log.h"

#include <errno.h>
#include <stdlib.h>

void iw_async_raise(struct iw_context *ctx, const struct ibv_async_event *event, unsigned *reads)
{
    struct iw_async_event *e = malloc(sizeof(*e));
    if (!e) {
        iw_log(IW_LOG_ERR, "asynchronous event %d is lost: no memory", event->event_type);
        return;
    }
    e->event = *event;
    e->reads = reads;
    lock_get(&ctx->lock);
    list_add_tail(&ctx->async, &e->link);
    iw_eventfd_raise(ctx->vctx.context.async_fd);
    lock_put(&ctx->lock);
}

static void unqueue_locked(struct iw_context *ctx, struct iw_async_event *e)
{
    assert_held(&ctx->lock);
    list_del(&e->link);
    free(e);
    if (list_empty(&ctx->async))
        iw_eventfd_drain(ctx->vctx.context.async_fd);
}

static bool take(struct iw_context *ctx, struct ibv_async_event *event)
{
    lock_get(&ctx->lock);
    bool any = !list_empty(&ctx->async);
    if (any) {
        struct iw_async_event *e = container_of(ctx->async.next, struct iw_async_event, link);
        if (e->reads)
            ++*e->reads;
        *event = e->event;
        unqueue_locked(ctx, e);
    }
    lock_put(&ctx->lock);
    return any;
}

int iw_async_get(struct iw_context *ctx, struct ibv_async_event *event)
{
    int fd = ctx->vctx.context.async_fd;
    for (;;) {
        pthread_testcancel(); /* even if an event waits: it stays for the next one */
        if (take(ctx, event))
            return 0;
        iw_engine_start(); /* in a child of fork() it may not run yet */
        int r = iw_eventfd_nonblocking(fd) ? -EAGAIN : iw_eventfd_wait(fd);
        if (r) {
            errno = -r;
            return -1;
        }
    }
}

unsigned iw_async_drop(struct iw_context *ctx, const void *element)
{
    unsigned n = 0;
    lock_get(&ctx->lock);
    list_for_each_safe (link, &ctx->async) {
        struct iw_async_event *e = container_of(link, struct iw_async_event, link);
        if (e->reads && e->event.element.qp == element) {
            unqueue_locked(ctx, e);
            n++;
        }
    }
    lock_put(&ctx->lock);
    return n;
}

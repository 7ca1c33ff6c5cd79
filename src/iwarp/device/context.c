/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/context.h"

#include "device/async.h"
#include "env/eventfd.h"
#include "env/log.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static struct lock_class locks = LOCK_CLASS(locks, LOCK_CONTEXT);

void iw_context_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}

/** The port's state moved: an event says where to. */
static void look_at_port(struct iw_netwatch *w)
{
    struct iw_context *ctx = container_of(w, struct iw_context, watch);
    enum ibv_port_state before = ctx->port;
    ctx->port = iw_device_port_state(iw_device(ctx->vctx.context.device));
    if (before == IBV_PORT_NOP || before == ctx->port) /* NOP: the first look */
        return;
    struct ibv_async_event event = {
        .element.port_num = 1,
        .event_type = ctx->port == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
    };
    iw_async_raise(ctx, &event, NULL);
}

struct iw_context *iw_context_open(struct iw_device *dev, void (*fill)(struct verbs_context *))
{
    struct iw_context *ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return NULL;
    int fd = iw_eventfd_create();
    if (fd < 0) {
        free(ctx);
        errno = -fd;
        return NULL;
    }
    lock_init_in(&ctx->lock, &locks);
    list_init(&ctx->async);
    atomic_init(&ctx->users, 1);

    struct verbs_context *v = &ctx->vctx;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    fill(v);
    v->sz = sizeof(*v);
    v->context.device = &dev->pub;
    v->context.cmd_fd = fd; /* nothing to command, but programs expect a descriptor */
    v->context.async_fd = fd;
    v->context.num_comp_vectors = cpus > 0 ? (int)cpus : 1;
    pthread_mutex_init(&v->context.mutex, NULL);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    iw_netwatch_add(&ctx->watch, look_at_port);
    return ctx;
}

void iw_context_close(struct iw_context *ctx)
{
    unsigned objects = atomic_load(&ctx->users) - 1;
    if (objects)
        iw_log(IW_LOG_WARN, "a context is closed with %u objects in use: it stays", objects);
    iw_context_put(ctx);
}

void iw_context_put(struct iw_context *ctx)
{
    if (atomic_fetch_sub(&ctx->users, 1) != 1)
        return;
    iw_netwatch_del(&ctx->watch);
    for (struct list *l; (l = list_pop(&ctx->async));)
        free(container_of(l, struct iw_async_event, link));
    iw_eventfd_close(ctx->vctx.context.async_fd);
    pthread_mutex_destroy(&ctx->vctx.context.mutex);
    lock_fini(&ctx->lock);
    free(ctx);
}

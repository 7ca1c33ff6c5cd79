/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a context. */
#ifndef ANYWARP_DEVICE_ASYNC_H
#define ANYWARP_DEVICE_ASYNC_H

#include "device/context.h"

/** An asynchronous event that waits to be read. */
struct iw_async_event {
    struct list link;
    struct ibv_async_event event;
    unsigned *reads; /* where its object counts events read, under ctx->lock; NULL: no object */
};

/**
 * Queues an event; allocates, so it is for rare things only. Call with no QP lock held.
 * @param reads  where the object that it is about counts events read; NULL if it is about no object
 */
void iw_async_raise(struct iw_context *ctx, const struct ibv_async_event *event, unsigned *reads);

/**
 * Next event, waiting unless the descriptor is O_NONBLOCK; a cancellation point.
 * @return 0, or -1 with errno EAGAIN, EINTR
 */
int iw_async_get(struct iw_context *ctx, struct ibv_async_event *event);

/** Removes events about @p element (a QP, CQ or SRQ) that nobody has read yet. @return how many */
unsigned iw_async_drop(struct iw_context *ctx, const void *element);

#endif

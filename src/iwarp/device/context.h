/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opened contexts. Each ibv_open_device() makes its own; librdmacm shares one. Progress, STags and
 * QP numbers are the process's, protection domains are the context's.
 */
#ifndef ANYWARP_DEVICE_CONTEXT_H
#define ANYWARP_DEVICE_CONTEXT_H

#include "common/list.h"
#include "common/lock.h"
#include "device/device.h"
#include "device/netwatch.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

/**
 * What ibv_open_device() gives. The direct verbs of mlx4 and mana do not ask whose a context is:
 * they read and write where one of their own would have its fields (mlx4dv_set_context_attr() and
 * others), which must not be the memory of somebody else.
 */
struct iw_context {
    struct lock lock;  /* async */
    struct list async; /* struct iw_async_event */
    struct iw_netwatch watch;
    enum ibv_port_state port; /* as last seen by the watch */
    atomic_uint users;        /* PDs, CQs, channels, and the program until it closes it */
    struct verbs_context vctx;
    char provider_words[144 * 1024]; /* behind vctx; nobody touches it but they */
};

static inline struct iw_context *iw_context(struct ibv_context *c)
{
    return container_of(container_of(c, struct verbs_context, context), struct iw_context, vctx);
}

/**
 * Opens a context on @p dev. Its program may from now on wait on async_fd for events of the port:
 * this is where the watch of the interfaces, and with it the engine, starts. @p fill (layer verbs
 * gives it) fills every op slot; what it writes elsewhere in the struct does not count.
 * @return NULL and errno
 */
struct iw_context *iw_context_open(struct iw_device *dev, void (*fill)(struct verbs_context *));
/** The program closes it. Objects that are left go on, as their connections do. */
void iw_context_close(struct iw_context *ctx);
/** One user less: the last one frees it. */
void iw_context_put(struct iw_context *ctx);
/** What the module does about fork(); see process/atfork.h. */
void iw_context_fork(enum fork_step step);

#endif

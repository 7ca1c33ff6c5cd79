/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells that something changed among the host's interfaces or addresses: one rtnetlink socket for
 * the process, made for the first watch and served by the engine. What changed is not said: netif.h
 * tells how things are now, so that nothing depends on messages that got lost or came together.
 */
#ifndef ANYWARP_DEVICE_NETWATCH_H
#define ANYWARP_DEVICE_NETWATCH_H

#include "common/list.h"
#include "common/lock.h"

/** Embedded in its owner. */
struct iw_netwatch {
    struct list link;
    void (*changed)(struct iw_netwatch *w);
};

/**
 * Calls @p changed once before it returns, then after every change, in any thread that makes
 * progress, never twice at a time. No lock but the watch's own is held; changed() may neither add
 * nor delete watches. If the kernel allows no such socket there are no further calls, which the log
 * tells.
 */
void iw_netwatch_add(struct iw_netwatch *w, void (*changed)(struct iw_netwatch *));

/** Afterwards changed() is not called and does not run. Call once for each add. */
void iw_netwatch_del(struct iw_netwatch *w);

/**
 * What the module does about fork(); see process/atfork.h. The child gets a socket of its own under
 * the same number; it is watched once the engine runs there.
 */
void iw_netwatch_fork(enum fork_step step);

#endif

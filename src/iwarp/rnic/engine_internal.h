/* SPDX-License-Identifier: BSD-2-Clause */
/* Between engine.c, source.c and timer.c only. */
#ifndef ANYWARP_RNIC_ENGINE_INTERNAL_H
#define ANYWARP_RNIC_ENGINE_INTERNAL_H

#include "rnic/engine.h"

#include <sys/epoll.h>

/** The epoll set of all sources. */
int iw_engine_sockets(void);
/** Makes the thread look again: a timer is due earlier than it knows, or a lease ended. */
void iw_engine_kick(void);
/** Runs the source of one epoll event. @return whether there was one */
bool iw_source_run(const struct epoll_event *ev);
/** Runs the timers that are due. @return ns until the next one, -1 if there is none */
int64_t iw_timers_run(void);

#endif

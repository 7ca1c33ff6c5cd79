/* SPDX-License-Identifier: BSD-2-Clause */
/* Between engine.c, source.c and timer.c only. */
#ifndef ANYWARP_RNIC_ENGINE_INTERNAL_H
#define ANYWARP_RNIC_ENGINE_INTERNAL_H

#include "rnic/engine.h"

#include "common/lock.h"

#include <sys/epoll.h>

/** The epoll set of all sources. */
int iw_engine_sockets(void);
/** Makes the thread look again: a timer is due earlier than it knows, or a lease ended. */
void iw_engine_kick(void);
/** Runs the source of one epoll event. @return whether there was one */
bool iw_source_run(const struct epoll_event *ev);
/** Runs the timers that are due. @return ns until the next one, -1 if there is none */
int64_t iw_timers_run(void);

/** Between iw_engine_freeze() and iw_engine_thaw(): neither source, timer nor dirty work begins. */
bool iw_engine_frozen(void);
/** Frozen: waits until no ready() runs, or no fire(). */
void iw_sources_wait(void);
void iw_timers_wait(void);
/** Puts every source into a new epoll set. */
void iw_sources_restore(void);

/** What the modules do about fork(); see atfork.h. A child has no epoll sets. */
void iw_source_fork(enum fork_step step);
void iw_timer_fork(enum fork_step step);
void iw_engine_fork(enum fork_step step);

#endif

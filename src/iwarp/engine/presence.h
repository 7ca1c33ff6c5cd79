/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENGINE_PRESENCE_H
#define ANYWARP_ENGINE_PRESENCE_H

#include "common/lock.h"

#include <stdint.h>

struct iw_poller;
struct iw_shard;

/** The poller @p p takes the source out of the epoll set if it can, and runs it at each pass. */
void iw_adopt(struct iw_poller *p, uint64_t key);
/** The poller @p p has run its hot source. */
void iw_adopted_note(const struct iw_poller *p);
/** Puts back what @p by has adopted, or with NULL whoever has. */
void iw_adopted_put_back(const struct iw_poller *by);
/** Puts back what was adopted in shard @p s. */
void iw_adopted_leave(const struct iw_shard *s);
/** The same, unless it was run since the last call. */
void iw_adopted_check(const struct iw_shard *s);
/** For a look at all sources but that of QP @p but: puts it back, where the next look finds it, and
 * runs it. */
void iw_adopted_return(uint32_t but);
/** It is taken out of the table. */
void iw_adopted_gone(uint64_t key);

/** What the module does about fork(); see process/atfork.h. */
void iw_adopted_fork(enum fork_step step);

#endif

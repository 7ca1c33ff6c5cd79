/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources whose descriptor tells nothing while pollers look at them: rings in shared memory, which
 * are run at each pass, without a system call. A lease is needed, as for the adopted one: whoever
 * ends it puts them to rest, and so does the engine's thread when pollers make too few passes, or
 * one moved nothing for a millisecond. At rest the descriptor tells again, and the source keeps its
 * place as long as no other needs it: who looks at all connections finds it there.
 */
#ifndef ANYWARP_ENGINE_ACTIVE_H
#define ANYWARP_ENGINE_ACTIVE_H

#include "engine/source.h"

/**
 * Leaves a source, whose ready() this thread is inside of, to the pollers of its shard.
 * @return false if there are none, or they have enough: the caller puts it to rest
 */
bool iw_active_add(struct iw_source *s);

/** Runs those of a shard for a poller: see iw_source_poll(). @return whether bytes moved */
bool iw_active_poll(struct iw_shard *s);
/** Runs those of all shards, and those that rest, but that of QP @p but; 0: all. */
void iw_active_run_all(uint32_t but);

/** Puts all of a shard to rest, and those that move nothing. Only the engine's thread is the second
 * for. */
void iw_active_rest(struct iw_shard *s);
void iw_active_check(struct iw_shard *s, uint64_t now);

#endif

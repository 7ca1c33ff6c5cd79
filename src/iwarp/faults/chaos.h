/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on demand, ANYWARP_CHAOS. A place where one may happen asks iw_chaos(), which is a look at
 * the knobs where there is none. The answer depends on the seed, the name of the process, the
 * fault, the number of the object and that of the call, never on what threads do at the same time.
 *
 * Functions may be called with any lock held, but not from one another's callbacks: there are none.
 */
#ifndef ANYWARP_FAULTS_CHAOS_H
#define ANYWARP_FAULTS_CHAOS_H

#include "common/lock.h"
#include "env/conf.h"
#include "faults/plan.h"

#include <stdatomic.h>

/** A program has asked for faults itself; only iw_chaos_next() sets it. */
extern _Atomic bool iw_chaos_asked;

static inline bool iw_chaos_on(void)
{
    return __builtin_expect(iw_conf()->chaos[0] != '\0' ||
                                atomic_load_explicit(&iw_chaos_asked, memory_order_relaxed),
                            0);
}

/**
 * Has a fault happen once, after @p skip times that it could.
 * @param fault  IW_FAULTS: none, and what has not happened is forgotten
 */
void iw_chaos_next(enum iw_fault fault, unsigned skip);

/** A new object: numbered from 1 among those of its kind, a constant string. */
void iw_chaos_born(const void *object, const char *kind);

/** Asks for the next call of this kind on @p object, NULL: the process. As iw_chaos(). */
uint64_t iw_chaos_hit(enum iw_fault fault, const void *object);

/** The same for call @p call, counted by the caller from 1. */
uint64_t iw_chaos_hit_at(enum iw_fault fault, const void *object, uint64_t call);

/** @return 0, or the fault happens: a number by which its details are chosen; it is logged */
static inline uint64_t iw_chaos(enum iw_fault fault, const void *object)
{
    return iw_chaos_on() ? iw_chaos_hit(fault, object) : 0;
}

/** At exit: of what there is still some, as " pd 1 fd 7", for the log, if that wants it. */
void iw_chaos_left(const char *objects);
/** Whether it does. */
bool iw_chaos_wants_left(void);

/** What the module does about fork(); see process/atfork.h. */
void iw_chaos_fork(enum fork_step step);

#endif

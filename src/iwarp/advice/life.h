/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's objects, from their creation on. Those that are destroyed stay where they are for a
 * while, so that calls on them can be told from others; without a check they are freed at once.
 */
#ifndef ANYWARP_ADVICE_LIFE_H
#define ANYWARP_ADVICE_LIFE_H

#include "advice/advice.h"

#define IW_LIFE_KEPT 4096 /* of those that are over, the last ones */

/** With a check going on: an object is made, by the caller's caller. */
void iw_life_note(const void *object, const char *kind);

/** @param kind  a constant string, as "QP" */
static inline void iw_life_begin(const void *object, const char *kind)
{
    if (iw_advice_on())
        iw_life_note(object, kind);
}

/** Frees @p object, or whatever it is a part of, sooner or later. */
void iw_life_end(void *object);

/** As iw_life_over(), with a check going on. */
int iw_life_look(const void *object, const char *call);

/** @return 0; EINVAL: @p object is destroyed, and the finding is told */
static inline int iw_life_over(const void *object, const char *call)
{
    return iw_advice_on() ? iw_life_look(object, call) : 0;
}

/** The program called ibv_fork_init(). */
void iw_life_fork_safe(void);

/** At the end of the process: tells of those that are left, if the process made any. */
void iw_life_tell_left(void);

/** What the module does about fork(); see process/atfork.h. */
void iw_life_fork(enum fork_step step);

#endif

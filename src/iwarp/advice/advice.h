/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program does wrong although it works here, ANYWARP_CHECK: findings are appended to the
 * file of that name, for "anywarp check" to read. Where nobody asks, the branch behind
 * iw_advice_on() is all that there is, and none is on the data path: what is looked at there is in
 * verbs/check.c, whose functions take the op slots, but for one look at where bytes are placed.
 */
#ifndef ANYWARP_ADVICE_ADVICE_H
#define ANYWARP_ADVICE_ADVICE_H

#include "advice/finding.h"
#include "advice/stack.h"
#include "common/lock.h"
#include "env/conf.h"

#include <stdbool.h>

static inline bool iw_advice_on(void)
{
    return __builtin_expect(iw_conf()->check[0] != '\0', 0);
}

/**
 * Writes a finding, once for each @p stack and @p object of the process.
 * @param object  what it is about, as "QP 0x01c2d3"; empty: the process
 * @param stack   of the call at fault; NULL: none is known
 * Any lock may be held, but not that of a copy (mem/quiesce.h).
 */
void iw_advise(enum iw_finding finding, const char *object, const struct iw_stack *stack,
               const char *fmt, ...) __attribute__((cold, format(printf, 4, 5)));

/** What the module does about fork(); see process/atfork.h. */
void iw_advice_fork(enum fork_step step);

#endif

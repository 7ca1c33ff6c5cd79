/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for what another thread is about to do, without a lock. */
#ifndef ANYWARP_PATIENCE_H
#define ANYWARP_PATIENCE_H

#include "common/sys.h"

#include <sched.h>
#include <stdatomic.h>

#define PATIENCE_YIELDS 100   /* turns: after them that thread may have lost its processor */
#define PATIENCE_NAP_NS 50000 /* at least, of each turn from then on */

/** One turn of such a wait. @param turn  how many were before */
static inline void patience(unsigned turn)
{
    if (turn < PATIENCE_YIELDS)
        sched_yield();
    else
        sys_nap(PATIENCE_NAP_NS);
}

/** Waits for the threads that @p n counts. */
static inline void patience_for(const atomic_uint *n)
{
    for (unsigned i = 0; atomic_load(n); i++)
        patience(i);
}

#endif

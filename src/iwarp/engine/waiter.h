/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the program that wait for events, and make progress meanwhile. */
#ifndef ANYWARP_ENGINE_WAITER_H
#define ANYWARP_ENGINE_WAITER_H

#include "env/export.h"

/**
 * Waits until @p fd (an event descriptor) may be readable, doing the process's progress meanwhile:
 * first a spin of iw_conf()->spin_us, then asleep on the sockets. The caller looks whether its
 * event is there, and else waits again. The wait itself is a cancellation point, no lock is held in
 * it.
 * @return 0, or -EINTR by the rule of iw_eventfd_wait()
 */
int iw_engine_wait(int fd);

/**
 * As iw_eventfd_wait(), but makes progress itself for up to 4 * ANYWARP_SPIN_US before it sleeps.
 */
IW_CM_EXPORT int iw_cm_wait(int fd);

#endif

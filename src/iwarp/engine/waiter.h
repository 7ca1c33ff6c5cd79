/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the program that wait for events, and make progress meanwhile.
 *
 * A thread waits in the shard that it owns, or in the first. Of those that wait there at a time the
 * one that came last leads: it sleeps on its sockets and runs them, whoever they are for. The
 * others sleep on their events alone, so that a packet wakes one thread, however many wait. Who is
 * led by another stays so until its event is there: if the leader leaves, the sockets are the
 * engine's again, at once or, where leaders come and go, within 1 ms.
 */
#ifndef ANYWARP_ENGINE_WAITER_H
#define ANYWARP_ENGINE_WAITER_H

#include "env/export.h"

#include <stdbool.h>

/**
 * Waits until @p fd (an event descriptor) may be readable, doing the process's progress meanwhile:
 * first a spin of iw_conf()->spin_us, then asleep, on the sockets too if it leads. The caller looks
 * whether its event is there, and else waits again. The wait itself is a cancellation point, no
 * lock is held in it.
 * @return 0, or -EINTR by the rule of iw_eventfd_wait()
 */
int iw_engine_wait(int fd);

/**
 * An event is there for who waits for @p fd. If that is the calling thread, which is in
 * iw_engine_wait() and has come upon it, it returns; the descriptor needs not say so.
 * @return whether it is
 */
bool iw_engine_hears(int fd);

/**
 * As iw_eventfd_wait(), but makes progress itself for up to 4 * ANYWARP_SPIN_US before it sleeps.
 */
IW_CM_EXPORT int iw_cm_wait(int fd);

#endif

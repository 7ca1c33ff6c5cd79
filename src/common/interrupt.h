/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupting a thread that waits in a call of rsocket, for librspreload: a thread that the
 * program cancels would leave locks, references and places in queues behind, wherever it is. So its
 * calls run with cancellation off, and one that waits is told to return.
 */
#ifndef ANYWARP_COMMON_INTERRUPT_H
#define ANYWARP_COMMON_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>

#define RS_EXPORT __attribute__((visibility("default")))

/** Whether the calling thread may be interrupted from now on; until then, and at first, it may not.
 */
RS_EXPORT void rs_set_interruptible(bool may);

/**
 * No call of thread @p id waits any more: while it may be interrupted they end with EINTR instead.
 * Nothing if it has never said that it may, or has never waited.
 */
RS_EXPORT void rs_interrupt(pthread_t id);

#endif

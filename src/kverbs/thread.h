/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of a module, and those that only pass through it. Lock order: the list of threads,
 * then a wait queue's lock.
 */
#ifndef KVERBS_THREAD_H
#define KVERBS_THREAD_H

#include <stdbool.h>

#include <linux/wait.h>

/**
 * Where the caller will sleep, so that a signal or kthread_stop() finds it; NULL: it is awake.
 * @return false: one has come since it was awake, and is to be looked for once more
 */
bool kv_asleep(wait_queue_head_t *q);

/** A signal for the program and for threads that allow it: they are awake, and signal_pending(). */
void kv_signal(int sig);

/** Has a thread of the module returned an error? */
bool kv_thread_has_failed(void);

/** Frees threads that have ended and that nobody has stopped. */
void kv_forget_threads(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a library: signals are for those of the program. */
#ifndef ANYWARP_COMPAT_THREAD_H
#define ANYWARP_COMPAT_THREAD_H

#include <pthread.h>

/** As pthread_create(), with all signals blocked in the thread. @return 0, or errno */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif

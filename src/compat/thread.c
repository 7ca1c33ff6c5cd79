/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/thread.h"

#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

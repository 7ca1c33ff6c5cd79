/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_MUTEX_H
#define KVERBS_LINUX_MUTEX_H

#include <pthread.h>

#include <linux/kernel.h>

struct mutex {
    pthread_mutex_t mutex;
};

#define DEFINE_MUTEX(name) struct mutex name = {PTHREAD_MUTEX_INITIALIZER}

void mutex_init(struct mutex *m);
void kverbs_mutex_lock(struct mutex *m, const char *file, int line);
int mutex_trylock(struct mutex *m);
void mutex_unlock(struct mutex *m);

#define mutex_lock(m)    kverbs_mutex_lock((m), __FILE__, __LINE__)
#define mutex_destroy(m) pthread_mutex_destroy(&(m)->mutex)

#endif

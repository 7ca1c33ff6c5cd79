/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks: a spinlock is a mutex, too, whose holder may not sleep. */
#include "kverbs/context.h"

#include <linux/mutex.h>
#include <linux/spinlock.h>

void spin_lock_init(spinlock_t *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

void spin_lock(spinlock_t *l)
{
    pthread_mutex_lock(&l->mutex);
    kv_spin(1);
}

void spin_unlock(spinlock_t *l)
{
    kv_spin(-1);
    pthread_mutex_unlock(&l->mutex);
}

int spin_trylock(spinlock_t *l)
{
    if (pthread_mutex_trylock(&l->mutex) != 0)
        return 0;
    kv_spin(1);
    return 1;
}

void mutex_init(struct mutex *m)
{
    pthread_mutex_init(&m->mutex, NULL);
}

void kverbs_mutex_lock(struct mutex *m, const char *file, int line)
{
    kverbs_might_sleep(file, line);
    pthread_mutex_lock(&m->mutex);
}

int mutex_trylock(struct mutex *m)
{
    return pthread_mutex_trylock(&m->mutex) == 0;
}

void mutex_unlock(struct mutex *m)
{
    pthread_mutex_unlock(&m->mutex);
}

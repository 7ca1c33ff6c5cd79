/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SPINLOCK_H
#define KVERBS_LINUX_SPINLOCK_H

#include <pthread.h>

#include <linux/kernel.h>

/* Who holds one may not sleep: might_sleep() knows. */
typedef struct spinlock {
    pthread_mutex_t mutex;
} spinlock_t;

#define DEFINE_SPINLOCK(name) spinlock_t name = {PTHREAD_MUTEX_INITIALIZER}
#define __SPIN_LOCK_UNLOCKED(x)                                                                    \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER                                                                  \
    }

void spin_lock_init(spinlock_t *l);
void spin_lock(spinlock_t *l);
void spin_unlock(spinlock_t *l);
int spin_trylock(spinlock_t *l);

/* Interrupts are other threads: there are none to keep off. */
#define spin_lock_irq(l)   spin_lock(l)
#define spin_unlock_irq(l) spin_unlock(l)
#define spin_lock_bh(l)    spin_lock(l)
#define spin_unlock_bh(l)  spin_unlock(l)
#define spin_lock_irqsave(l, f)                                                                    \
    do {                                                                                           \
        (f) = 0;                                                                                   \
        spin_lock(l);                                                                              \
    } while (0)
#define spin_unlock_irqrestore(l, f)                                                               \
    do {                                                                                           \
        (void)(f);                                                                                 \
        spin_unlock(l);                                                                            \
    } while (0)

#endif

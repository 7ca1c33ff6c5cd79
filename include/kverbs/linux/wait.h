/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_WAIT_H
#define KVERBS_LINUX_WAIT_H

#include <pthread.h>

#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/* Sleepers of one queue: `turn` moves on with each wake-up, so that none between a look at the
 * condition and the sleep is lost. */
typedef struct wait_queue_head {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    unsigned long turn;
    unsigned sleepers;
} wait_queue_head_t;

#define __WAIT_QUEUE_HEAD_INITIALIZER(name)                                                        \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0                                  \
    }
#define DECLARE_WAIT_QUEUE_HEAD(name) wait_queue_head_t name = __WAIT_QUEUE_HEAD_INITIALIZER(name)

void init_waitqueue_head(wait_queue_head_t *q);
void wake_up(wait_queue_head_t *q);
int waitqueue_active(wait_queue_head_t *q);

#define wake_up_all(q)               wake_up(q)
#define wake_up_interruptible(q)     wake_up(q)
#define wake_up_interruptible_all(q) wake_up(q)

/** @return the turn to pass to kverbs_wait() if the condition does not hold now */
unsigned long kverbs_wait_turn(wait_queue_head_t *q);

/**
 * Sleeps until a wake-up after `turn`, a signal if `interruptible`, or the end of what is left of
 * `*left` jiffies (MAX_SCHEDULE_TIMEOUT: never).
 * @return 0: look again; -ERESTARTSYS: a signal
 */
int kverbs_wait(wait_queue_head_t *q, unsigned long turn, bool interruptible, long *left);

#define kverbs_wait_event(q, condition, interruptible, left, result)                               \
    do {                                                                                           \
        unsigned long kverbs_turn;                                                                 \
        might_sleep();                                                                             \
        for (;;) {                                                                                 \
            kverbs_turn = kverbs_wait_turn(&(q));                                                  \
            if (condition)                                                                         \
                break;                                                                             \
            if ((left) <= 0)                                                                       \
                break;                                                                             \
            (result) = kverbs_wait(&(q), kverbs_turn, (interruptible), &(left));                   \
            if (result)                                                                            \
                break;                                                                             \
        }                                                                                          \
    } while (0)

#define wait_event(q, condition)                                                                   \
    do {                                                                                           \
        int kverbs_result = 0;                                                                     \
        long kverbs_left = MAX_SCHEDULE_TIMEOUT;                                                   \
        kverbs_wait_event(q, condition, false, kverbs_left, kverbs_result);                        \
        (void)kverbs_result;                                                                       \
    } while (0)
#define wait_event_interruptible(q, condition)                                                     \
    ({                                                                                             \
        int kverbs_result = 0;                                                                     \
        long kverbs_left = MAX_SCHEDULE_TIMEOUT;                                                   \
        kverbs_wait_event(q, condition, true, kverbs_left, kverbs_result);                         \
        kverbs_result;                                                                             \
    })

/* 0: the time is over; else what is left of it, at least 1. */
#define wait_event_timeout(q, condition, timeout)                                                  \
    ({                                                                                             \
        int kverbs_result = 0;                                                                     \
        long kverbs_left = (timeout);                                                              \
        kverbs_wait_event(q, condition, false, kverbs_left, kverbs_result);                        \
        kverbs_left > 0 ? kverbs_left : (condition) ? 1L : 0L;                                     \
    })
#define wait_event_interruptible_timeout(q, condition, timeout)                                    \
    ({                                                                                             \
        int kverbs_result = 0;                                                                     \
        long kverbs_left = (timeout);                                                              \
        kverbs_wait_event(q, condition, true, kverbs_left, kverbs_result);                         \
        kverbs_result ? kverbs_result : kverbs_left > 0 ? kverbs_left : (condition) ? 1L : 0L;     \
    })

#endif

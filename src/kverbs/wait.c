/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait queues, and completions, which are made of them. */
#include <errno.h>

#include "kverbs/thread.h"
#include "kverbs/time.h"

#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/wait.h>

void init_waitqueue_head(wait_queue_head_t *q)
{
    *q = (wait_queue_head_t){.turn = 0};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->woken, NULL);
}

void wake_up(wait_queue_head_t *q)
{
    pthread_mutex_lock(&q->lock);
    q->turn++;
    pthread_cond_broadcast(&q->woken);
    pthread_mutex_unlock(&q->lock);
}

int waitqueue_active(wait_queue_head_t *q)
{
    pthread_mutex_lock(&q->lock);
    int active = q->sleepers > 0;
    pthread_mutex_unlock(&q->lock);
    return active;
}

unsigned long kverbs_wait_turn(wait_queue_head_t *q)
{
    pthread_mutex_lock(&q->lock);
    unsigned long turn = q->turn;
    pthread_mutex_unlock(&q->lock);
    return turn;
}

static int sleep_until(wait_queue_head_t *q, const struct timespec *end)
{
    return end ? pthread_cond_timedwait(&q->woken, &q->lock, end)
               : pthread_cond_wait(&q->woken, &q->lock);
}

int kverbs_wait(wait_queue_head_t *q, unsigned long turn, bool interruptible, long *left)
{
    bool timed = *left != MAX_SCHEDULE_TIMEOUT;
    unsigned long start = jiffies;
    struct timespec end = timed ? kv_deadline(*left) : (struct timespec){0};
    int e = 0;
    bool sleeps = kv_asleep(q);
    pthread_mutex_lock(&q->lock);
    q->sleepers++;
    while (sleeps && q->turn == turn && e != ETIMEDOUT &&
           !(interruptible && signal_pending(current)))
        e = sleep_until(q, timed ? &end : NULL);
    q->sleepers--;
    pthread_mutex_unlock(&q->lock);
    kv_asleep(NULL);
    if (timed) {
        long gone = (long)(jiffies - start);
        *left = e == ETIMEDOUT || gone >= *left ? 0 : *left - gone;
    }
    return interruptible && signal_pending(current) ? -ERESTARTSYS : 0;
}

void init_completion(struct completion *c)
{
    c->done = 0;
    init_waitqueue_head(&c->wait);
}

void reinit_completion(struct completion *c)
{
    pthread_mutex_lock(&c->wait.lock);
    c->done = 0;
    pthread_mutex_unlock(&c->wait.lock);
}

/* The waiter may be gone with its completion as soon as the lock is given. */
static void add_done(struct completion *c, unsigned n)
{
    pthread_mutex_lock(&c->wait.lock);
    c->done += n;
    c->wait.turn++;
    pthread_cond_broadcast(&c->wait.woken);
    pthread_mutex_unlock(&c->wait.lock);
}

void complete(struct completion *c)
{
    add_done(c, 1);
}

void complete_all(struct completion *c)
{
    add_done(c, ~0u / 2);
}

bool completion_done(struct completion *c)
{
    pthread_mutex_lock(&c->wait.lock);
    bool done = c->done > 0;
    pthread_mutex_unlock(&c->wait.lock);
    return done;
}

bool try_wait_for_completion(struct completion *c)
{
    pthread_mutex_lock(&c->wait.lock);
    bool done = c->done > 0;
    if (done && c->done < ~0u / 2)
        c->done--;
    pthread_mutex_unlock(&c->wait.lock);
    return done;
}

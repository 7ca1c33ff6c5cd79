/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/engine_internal.h"

#include "common/lock.h"
#include "common/sys.h"

#include <pthread.h>

static struct {
    struct lock lock;
    struct list due; /* by time; most are set with growing times, so the tail is near */
    struct iw_timer *firing;
    pthread_t thread; /* that fires */
    pthread_cond_t fired;
} timers = {
    .lock = {.mutex = PTHREAD_MUTEX_INITIALIZER},
    .due = {&timers.due, &timers.due},
    .fired = PTHREAD_COND_INITIALIZER,
};

uint64_t iw_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void unlink_locked(struct iw_timer *t)
{
    assert_held(&timers.lock);
    if (t->set)
        list_del(&t->link);
    t->set = false;
}

void iw_timer_set_us(struct iw_timer *t, uint64_t us, void (*fire)(struct iw_timer *))
{
    uint64_t due = iw_now() + us * 1000u;
    lock_get(&timers.lock);
    unlink_locked(t);
    t->due = due;
    t->fire = fire;
    t->set = true;
    struct list *after = timers.due.prev;
    while (after != &timers.due && container_of(after, struct iw_timer, link)->due > due)
        after = after->prev;
    list_add_tail(after->next, &t->link);
    bool first = timers.due.next == &t->link;
    lock_put(&timers.lock);
    if (first)
        iw_engine_kick();
}

void iw_timer_set(struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *))
{
    iw_timer_set_us(t, (uint64_t)ms * 1000u, fire);
}

void iw_timer_cancel(struct iw_timer *t)
{
    lock_get(&timers.lock);
    while (timers.firing == t && !pthread_equal(timers.thread, pthread_self()))
        lock_wait(&timers.lock, &timers.fired);
    unlink_locked(t); /* after the wait: fire() may have set it again */
    lock_put(&timers.lock);
}

int64_t iw_timers_run(void)
{
    int64_t rest = -1;
    lock_get(&timers.lock);
    timers.thread = pthread_self();
    while (!list_empty(&timers.due) && !iw_engine_frozen()) {
        struct iw_timer *t = container_of(timers.due.next, struct iw_timer, link);
        uint64_t now = iw_now();
        if (t->due > now) {
            rest = (int64_t)(t->due - now);
            break;
        }
        unlink_locked(t);
        timers.firing = t;
        lock_put(&timers.lock);
        t->fire(t);
        lock_get(&timers.lock);
        timers.firing = NULL;
        pthread_cond_broadcast(&timers.fired);
    }
    lock_put(&timers.lock);
    return rest;
}

/* ---- fork ---- */

void iw_timers_wait(void)
{
    lock_get(&timers.lock);
    while (timers.firing)
        lock_wait(&timers.lock, &timers.fired);
    lock_put(&timers.lock);
}

void iw_timer_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        pthread_cond_init(&timers.fired, NULL);
    lock_fork(&timers.lock, step);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/timer.h"

#include "common/sys.h"
#include "engine/engine.h"

#include <pthread.h>

static struct {
    struct lock lock;
    struct list due; /* by time */
    uint64_t wake;   /* when the engine is told to wake: when the first is due; 0: never */
    struct iw_timer *firing;
    pthread_t thread; /* that fires */
    struct lock_cond fired;
} timers = {
    .lock = LOCK(LOCK_TIMERS),
    .due = {&timers.due, &timers.due},
};

uint64_t iw_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t due_of(const struct list *l)
{
    return container_of(l, struct iw_timer, link)->due;
}

/** Has the engine wake for the first timer, or no more if there is none. */
static void wake_for_first_locked(void)
{
    assert_held(&timers.lock);
    bool none = list_empty(&timers.due);
    uint64_t due = none ? 0 : due_of(timers.due.next);
    if (due != timers.wake && iw_engine_wake_at(due))
        timers.wake = due;
}

static void unlink_locked(struct iw_timer *t)
{
    assert_held(&timers.lock);
    if (t->set)
        list_del(&t->link);
    t->set = false;
}

/** What comes behind a timer of that time, found from the nearer end of the list. */
static struct list *before_locked(uint64_t due)
{
    struct list *all = &timers.due, *l = all;
    assert_held(&timers.lock);
    if (list_empty(all))
        return all;
    uint64_t first = due_of(all->next), last = due_of(all->prev);
    if (due <= first || due - first < last - due) {
        for (l = all->next; l != all && due_of(l) <= due; l = l->next)
            ;
        return l;
    }
    while (l->prev != all && due_of(l->prev) > due)
        l = l->prev;
    return l;
}

static void set_locked(struct iw_timer *t, uint64_t due, void (*fire)(struct iw_timer *))
{
    assert_held(&timers.lock);
    unlink_locked(t);
    t->due = due;
    t->fire = fire;
    t->set = true;
    list_add_tail(before_locked(due), &t->link);
    wake_for_first_locked();
}

void iw_timer_set_us(struct iw_timer *t, uint64_t us, void (*fire)(struct iw_timer *))
{
    uint64_t due = iw_now() + us * 1000u;
    lock_get(&timers.lock);
    set_locked(t, due, fire);
    lock_put(&timers.lock);
}

void iw_timer_start_us(struct iw_timer *t, uint64_t us, void (*fire)(struct iw_timer *))
{
    uint64_t due = iw_now() + us * 1000u;
    lock_get(&timers.lock);
    if (!t->set)
        set_locked(t, due, fire);
    lock_put(&timers.lock);
}

void iw_timer_set(struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *))
{
    iw_timer_set_us(t, (uint64_t)ms * 1000u, fire);
}

void iw_timer_unset(struct iw_timer *t)
{
    lock_get(&timers.lock);
    unlink_locked(t);
    wake_for_first_locked();
    lock_put(&timers.lock);
}

void iw_timer_cancel(struct iw_timer *t)
{
    lock_get(&timers.lock);
    while (timers.firing == t && !pthread_equal(timers.thread, pthread_self()))
        lock_wait(&timers.lock, &timers.fired);
    unlink_locked(t); /* after the wait: fire() may have set it again */
    wake_for_first_locked();
    lock_put(&timers.lock);
}

/** What is due, taken off the list. @return NULL if nothing is */
static struct iw_timer *take_due_locked(void)
{
    assert_held(&timers.lock);
    if (list_empty(&timers.due) || iw_engine_frozen())
        return NULL;
    struct iw_timer *t = container_of(timers.due.next, struct iw_timer, link);
    if (t->due > iw_now())
        return NULL;
    unlink_locked(t);
    return t;
}

void iw_timers_run(void)
{
    struct iw_timer *t;
    lock_get(&timers.lock);
    timers.thread = pthread_self();
    while ((t = take_due_locked())) {
        void (*fire)(struct iw_timer *) = t->fire;
        timers.firing = t;
        lock_put(&timers.lock);
        fire(t);
        lock_get(&timers.lock);
        timers.firing = NULL;
        lock_wake_all(&timers.fired);
    }
    wake_for_first_locked();
    lock_put(&timers.lock);
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
    if (step == FORK_CHILD) {
        timers.fired = (struct lock_cond){0};
        timers.wake = 0;
    }
    lock_fork(&timers.lock, step);
}

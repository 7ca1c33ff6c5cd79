/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "compat/thread.h"
#include "kverbs/time.h"
#include "kverbs/work.h"

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/workqueue.h>

/*
 * Works and queues of all are under one lock: they are few, and what they do is long. Whether a
 * work is pending, and where, is read without it by who asks, as in the kernel.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER; /* some work runs or waits no more */
static LIST_HEAD(queues);

enum { NAME = 16 };

struct workqueue_struct {
    struct list_head entry;
    struct list_head works, delayed; /* delayed: the earliest first */
    struct work_struct *running;
    pthread_cond_t changed;
    pthread_t thread;
    bool ending;
    char name[NAME];
};

static struct workqueue_struct *system_queue;

static void queue_locked(struct workqueue_struct *wq, struct work_struct *w)
{
    list_add_tail(&w->entry, &wq->works);
    pthread_cond_broadcast(&wq->changed);
}

/* @return jiffies until the next one is due; negative: there is none */
static long take_due_locked(struct workqueue_struct *wq)
{
    while (!list_empty(&wq->delayed)) {
        struct delayed_work *d = list_first_entry(&wq->delayed, struct delayed_work, work.entry);
        long left = (long)(d->due - jiffies);
        if (left > 0)
            return left;
        list_move_tail(&d->work.entry, &wq->works);
    }
    return -1;
}

static void wait_locked(struct workqueue_struct *wq, long left)
{
    if (left < 0) {
        pthread_cond_wait(&wq->changed, &lock);
        return;
    }
    struct timespec end = kv_deadline(left);
    pthread_cond_timedwait(&wq->changed, &lock, &end);
}

static void *live(void *arg)
{
    struct workqueue_struct *wq = arg;
    pthread_setname_np(pthread_self(), wq->name);
    pthread_mutex_lock(&lock);
    for (;;) {
        long left = take_due_locked(wq);
        if (list_empty(&wq->works)) {
            if (wq->ending)
                break;
            wait_locked(wq, left);
            continue;
        }
        struct work_struct *w = list_first_entry(&wq->works, struct work_struct, entry);
        list_del(&w->entry);
        WRITE_ONCE(w->pending, false); /* it may queue itself, or free itself */
        wq->running = w;
        pthread_mutex_unlock(&lock);
        w->func(w);
        pthread_mutex_lock(&lock);
        wq->running = NULL;
        pthread_cond_broadcast(&freed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct workqueue_struct *start(const char *name)
{
    struct workqueue_struct *wq = calloc(1, sizeof *wq);
    if (!wq)
        return NULL;
    INIT_LIST_HEAD(&wq->works);
    INIT_LIST_HEAD(&wq->delayed);
    pthread_cond_init(&wq->changed, NULL);
    snprintf(wq->name, sizeof wq->name, "%s", name);
    if (thread_start(&wq->thread, live, wq) != 0) {
        free(wq);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    list_add_tail(&wq->entry, &queues);
    pthread_mutex_unlock(&lock);
    return wq;
}

struct workqueue_struct *kverbs_alloc_workqueue(const char *format, ...)
{
    might_sleep();
    char name[NAME];
    va_list ap;
    va_start(ap, format);
    vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    return start(name);
}

static void take_out_locked(struct work_struct *w)
{
    list_del(&w->entry);
    WRITE_ONCE(w->pending, false);
    pthread_cond_broadcast(&freed);
}

static void drop_delayed_locked(struct workqueue_struct *wq)
{
    struct work_struct *w, *next;
    list_for_each_entry_safe(w, next, &wq->delayed, entry) take_out_locked(w);
}

void destroy_workqueue(struct workqueue_struct *wq)
{
    might_sleep();
    pthread_mutex_lock(&lock);
    drop_delayed_locked(wq);
    wq->ending = true;
    pthread_cond_broadcast(&wq->changed);
    pthread_mutex_unlock(&lock);
    pthread_join(wq->thread, NULL);
    pthread_mutex_lock(&lock);
    drop_delayed_locked(wq); /* what its last works have queued */
    list_del(&wq->entry);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&wq->changed);
    free(wq);
}

struct workqueue_struct *kverbs_system_wq(void)
{
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (!system_queue)
        system_queue = start("events");
    pthread_mutex_unlock(&first);
    BUG_ON(!system_queue);
    return system_queue;
}

void kv_end_system_wq(void)
{
    if (system_queue)
        destroy_workqueue(system_queue);
    system_queue = NULL;
}

/* One that is being cancelled does not queue itself meanwhile. */
static bool may_queue_locked(const struct work_struct *w)
{
    return !w->pending && w->cancellers == 0;
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *w)
{
    pthread_mutex_lock(&lock);
    bool queued = may_queue_locked(w);
    if (queued) {
        WRITE_ONCE(w->pending, true);
        WRITE_ONCE(w->wq, wq);
        queue_locked(wq, w);
    }
    pthread_mutex_unlock(&lock);
    return queued;
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *d, unsigned long delay)
{
    if (delay == 0)
        return queue_work(wq, &d->work);
    pthread_mutex_lock(&lock);
    bool queued = may_queue_locked(&d->work);
    if (queued) {
        WRITE_ONCE(d->work.pending, true);
        WRITE_ONCE(d->work.wq, wq);
        d->due = jiffies + delay;
        struct list_head *at = wq->delayed.next;
        while (at != &wq->delayed &&
               time_after_eq(d->due, list_entry(at, struct delayed_work, work.entry)->due))
            at = at->next;
        list_add_tail(&d->work.entry, at);
        pthread_cond_broadcast(&wq->changed);
    }
    pthread_mutex_unlock(&lock);
    return queued;
}

/*
 * Where it runs, but not in this thread: a work that waits for its own end would do so forever. The
 * queue that it was in last may be gone, and it may run in one while it waits in another.
 */
static bool runs_elsewhere_locked(const struct work_struct *w)
{
    struct workqueue_struct *wq;
    list_for_each_entry(wq, &queues, entry)
    {
        if (wq->running == w && !pthread_equal(pthread_self(), wq->thread))
            return true;
    }
    return false;
}

static bool cancel(struct work_struct *w, bool wait)
{
    pthread_mutex_lock(&lock);
    bool was = w->pending, runs = wait && runs_elsewhere_locked(w);
    if (was)
        take_out_locked(w);
    if (runs) {
        w->cancellers++;
        while (runs_elsewhere_locked(w))
            pthread_cond_wait(&freed, &lock);
        w->cancellers--;
    }
    pthread_mutex_unlock(&lock);
    return was;
}

bool cancel_work_sync(struct work_struct *w)
{
    might_sleep();
    return cancel(w, true);
}

bool cancel_delayed_work(struct delayed_work *d)
{
    return cancel(&d->work, false);
}

bool cancel_delayed_work_sync(struct delayed_work *d)
{
    might_sleep();
    return cancel(&d->work, true);
}

bool flush_work(struct work_struct *w)
{
    might_sleep();
    pthread_mutex_lock(&lock);
    bool busy = w->pending || runs_elsewhere_locked(w);
    while (w->pending)
        pthread_cond_wait(&freed, &lock);
    while (runs_elsewhere_locked(w))
        pthread_cond_wait(&freed, &lock);
    pthread_mutex_unlock(&lock);
    return busy;
}

struct barrier {
    struct work_struct work;
    struct completion passed;
};

static void pass(struct work_struct *w)
{
    complete(&container_of(w, struct barrier, work)->passed);
}

void flush_workqueue(struct workqueue_struct *wq)
{
    struct barrier b;
    INIT_WORK(&b.work, pass);
    init_completion(&b.passed);
    queue_work(wq, &b.work);
    wait_for_completion(&b.passed);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compat/thread.h"
#include "kverbs/census.h"

#include <linux/kthread.h>
#include <linux/list.h>

enum life { WAITS, RUNS, ENDED };

struct task {
    struct task_struct ib;
    struct list_head entry;
    int (*fn)(void *); /* NULL: not a thread of the module's making */
    void *data;
    pthread_t thread;
    enum life life;
    bool should_stop, joined;
    int result;
    unsigned long signals; /* allowed, bit by bit */
    bool signalled;
    wait_queue_head_t *asleep;
    bool poked;            /* while it was awake, and may have been about to sleep */
    wait_queue_head_t own; /* for schedule() */
    unsigned long turn;
    int state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lives = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(tasks);
static __thread struct task *mine;
static pthread_key_t passers_by;
static bool failed;

static struct task *new_task(void)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    init_waitqueue_head(&t->own);
    pthread_mutex_lock(&lock);
    list_add_tail(&t->entry, &tasks);
    pthread_mutex_unlock(&lock);
    return t;
}

static void free_task(void *arg)
{
    struct task *t = arg;
    pthread_mutex_lock(&lock);
    list_del(&t->entry);
    pthread_mutex_unlock(&lock);
    free(t);
}

static void make_key(void)
{
    pthread_key_create(&passers_by, free_task);
}

/* The program's own threads take part as what talks to the module: signals are for them. */
static struct task *me(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (mine)
        return mine;
    pthread_once(&once, make_key);
    struct task *t = new_task();
    if (!t)
        kverbs_bug(__FILE__, __LINE__, "no memory for a thread");
    t->life = RUNS;
    t->signals = ~0UL;
    t->ib.pid = (int)syscall(SYS_gettid);
    pthread_getname_np(pthread_self(), t->ib.comm, sizeof t->ib.comm);
    pthread_setspecific(passers_by, t);
    return mine = t;
}

struct task_struct *kverbs_current(void)
{
    return &me()->ib;
}

bool kv_asleep(wait_queue_head_t *q)
{
    struct task *t = me();
    pthread_mutex_lock(&lock);
    bool poked = t->poked && q != &t->own; /* of that the turn tells */
    t->asleep = q;
    t->poked = false;
    pthread_mutex_unlock(&lock);
    return !poked;
}

static void poke_locked(struct task *t)
{
    wake_up(&t->own);
    t->poked = !t->asleep;
    if (t->asleep)
        wake_up(t->asleep);
}

int signal_pending(struct task_struct *t)
{
    return __atomic_load_n(&container_of(t, struct task, ib)->signalled, __ATOMIC_SEQ_CST);
}

void flush_signals(struct task_struct *t)
{
    __atomic_store_n(&container_of(t, struct task, ib)->signalled, false, __ATOMIC_SEQ_CST);
}

void allow_signal(int sig)
{
    struct task *t = me();
    pthread_mutex_lock(&lock);
    t->signals |= 1UL << sig;
    pthread_mutex_unlock(&lock);
}

void kv_signal(int sig)
{
    struct task *t;
    pthread_mutex_lock(&lock);
    list_for_each_entry(t, &tasks, entry)
    {
        if (t->life == RUNS && t->signals >> sig & 1) {
            __atomic_store_n(&t->signalled, true, __ATOMIC_SEQ_CST);
            poke_locked(t);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void *live(void *arg)
{
    struct task *t = mine = arg;
    t->ib.pid = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    while (t->life == WAITS && !t->should_stop)
        pthread_cond_wait(&lives, &lock);
    bool runs = t->life == RUNS;
    pthread_mutex_unlock(&lock);
    int result = runs ? t->fn(t->data) : -EINTR;
    pthread_mutex_lock(&lock);
    t->result = result;
    failed = failed || (runs && result < 0);
    t->life = ENDED;
    pthread_mutex_unlock(&lock);
    kv_count(KV_THREAD, -1);
    return NULL;
}

struct task_struct *kthread_create(int (*fn)(void *data), void *data, const char *name, ...)
{
    might_sleep();
    struct task *t = new_task();
    if (!t)
        return ERR_PTR(-ENOMEM);
    t->fn = fn;
    t->data = data;
    va_list ap;
    va_start(ap, name);
    vsnprintf(t->ib.comm, sizeof t->ib.comm, name, ap);
    va_end(ap);
    kv_count(KV_THREAD, 1);
    int e = thread_start(&t->thread, live, t);
    if (e) {
        kv_count(KV_THREAD, -1);
        free_task(t);
        return ERR_PTR(-e);
    }
    pthread_setname_np(t->thread, t->ib.comm);
    return &t->ib;
}

int wake_up_process(struct task_struct *task)
{
    struct task *t = container_of(task, struct task, ib);
    pthread_mutex_lock(&lock);
    if (t->life == WAITS) {
        t->life = RUNS;
        pthread_cond_broadcast(&lives);
    } else {
        poke_locked(t);
    }
    pthread_mutex_unlock(&lock);
    return 1;
}

int kthread_stop(struct task_struct *task)
{
    struct task *t = container_of(task, struct task, ib);
    might_sleep();
    pthread_mutex_lock(&lock);
    __atomic_store_n(&t->should_stop, true, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&lives);
    poke_locked(t);
    t->joined = true;
    pthread_mutex_unlock(&lock);
    pthread_join(t->thread, NULL);
    int result = t->result;
    free_task(t);
    return result;
}

bool kthread_should_stop(void)
{
    return __atomic_load_n(&me()->should_stop, __ATOMIC_SEQ_CST);
}

bool kv_thread_has_failed(void)
{
    pthread_mutex_lock(&lock);
    bool has = failed;
    pthread_mutex_unlock(&lock);
    return has;
}

static struct task *ended_one(void)
{
    struct task *t, *found = NULL;
    pthread_mutex_lock(&lock);
    list_for_each_entry(t, &tasks, entry)
    {
        if (t->fn && t->life == ENDED && !t->joined)
            found = t;
    }
    if (found)
        found->joined = true;
    pthread_mutex_unlock(&lock);
    return found;
}

void kv_forget_threads(void)
{
    struct task *t;
    while ((t = ended_one())) {
        pthread_join(t->thread, NULL);
        free_task(t);
    }
}

void set_current_state(int state)
{
    struct task *t = me();
    if (state != TASK_RUNNING)
        t->turn = kverbs_wait_turn(&t->own);
    t->state = state;
}

long schedule_timeout(long timeout)
{
    struct task *t = me();
    might_sleep();
    long left = timeout;
    if (t->state == TASK_RUNNING)
        sched_yield();
    else
        kverbs_wait(&t->own, t->turn, t->state == TASK_INTERRUPTIBLE, &left);
    t->state = TASK_RUNNING;
    return left > 0 ? left : 0;
}

void schedule(void)
{
    schedule_timeout(MAX_SCHEDULE_TIMEOUT);
}

void cond_resched(void)
{
    sched_yield();
}

long schedule_timeout_interruptible(long timeout)
{
    set_current_state(TASK_INTERRUPTIBLE);
    return schedule_timeout(timeout);
}

long schedule_timeout_uninterruptible(long timeout)
{
    set_current_state(TASK_UNINTERRUPTIBLE);
    return schedule_timeout(timeout);
}

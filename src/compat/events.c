/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/events.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "compat/handle.h"
#include "compat/thread.h"

enum { SOURCE = 1 };

/* A thread and what it serves. One that was told to end by itself outlives what the library knows.
 */
struct life {
    pthread_t thread;
    int epoll, bell;
    bool ending, alone; /* alone: nobody joins it */
    struct handle_table sources;
    struct event_source *running;
    struct event_task *tasks, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* some life has nothing running */
static struct life *now;
static unsigned users;
static __thread struct life *mine;

static void bury(struct life *l)
{
    close(l->epoll);
    close(l->bell);
    handle_fini(&l->sources);
    free(l);
}

static void ring(const struct life *l)
{
    while (write(l->bell, &(uint64_t){1}, sizeof(uint64_t)) < 0 && errno == EINTR)
        continue;
}

static void run_tasks_locked(struct life *l)
{
    struct event_task *t;
    while ((t = l->tasks)) {
        l->tasks = t->next;
        if (!l->tasks)
            l->last = &l->tasks;
        pthread_mutex_unlock(&lock);
        t->run(t);
        pthread_mutex_lock(&lock);
    }
}

static void run_source_locked(struct life *l, uint32_t number)
{
    struct event_source *s = handle_get(&l->sources, SOURCE, number);
    if (!s)
        return; /* forgotten since epoll found it */
    l->running = s;
    pthread_mutex_unlock(&lock);
    s->ready(s);
    pthread_mutex_lock(&lock);
    l->running = NULL;
    pthread_cond_broadcast(&idle);
}

static void *live(void *arg)
{
    struct life *l = mine = arg;
    pthread_mutex_lock(&lock);
    while (!l->ending || l->tasks) {
        run_tasks_locked(l);
        if (l->ending)
            continue;
        pthread_mutex_unlock(&lock);
        struct epoll_event e = {0};
        int n = epoll_wait(l->epoll, &e, 1, -1);
        if (n == 1 && e.data.u32 == 0) {
            uint64_t rung;
            (void)!read(l->bell, &rung, sizeof rung);
        }
        pthread_mutex_lock(&lock);
        if (n == 1)
            run_source_locked(l, e.data.u32);
    }
    bool alone = l->alone;
    pthread_mutex_unlock(&lock);
    if (alone)
        bury(l);
    return NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Who has forked in a callback goes on in it: then the thread, the child's first, ends. */
static void leave_behind(struct life *l)
{
    l->ending = l->alone = true;
    l->tasks = NULL;
}

static void in_child(void)
{
    if (now && now != mine)
        bury(now);
    if (mine)
        leave_behind(mine);
    now = NULL;
    users = 0;
    mine = NULL;
    pthread_cond_init(&idle, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

static int start(struct life *l, const char *name)
{
    l->last = &l->tasks;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    if (l->epoll < 0 || l->bell < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->bell, &e) != 0)
        return errno;
    int error = thread_start(&l->thread, live, l);
    if (error == 0)
        pthread_setname_np(l->thread, name);
    return error;
}

int event_thread_get(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    int error = 0;
    pthread_mutex_lock(&lock);
    if (!now) {
        struct life *l = calloc(1, sizeof *l);
        error = l ? start(l, name) : ENOMEM;
        if (!error)
            now = l;
        else if (l)
            bury(l);
    }
    users += !error;
    pthread_mutex_unlock(&lock);
    return error;
}

void event_thread_put(void)
{
    struct life *ends = NULL;
    pthread_mutex_lock(&lock);
    if (users > 0 && --users == 0) {
        ends = now;
        now = NULL;
        ends->ending = true;
        ends->alone = mine == ends;
        if (ends->alone)
            pthread_detach(ends->thread);
        else
            ring(ends);
    }
    pthread_mutex_unlock(&lock);
    if (!ends || mine == ends)
        return;
    pthread_join(ends->thread, NULL);
    bury(ends);
}

bool event_thread_is_me(void)
{
    return mine;
}

int event_thread_watch(struct event_source *s)
{
    pthread_mutex_lock(&lock);
    int error = now ? 0 : EINVAL;
    s->number = error ? 0 : handle_add(&now->sources, SOURCE, s);
    if (!error && !s->number)
        error = ENOMEM;
    if (!error) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = s->number};
        if (epoll_ctl(now->epoll, EPOLL_CTL_ADD, s->fd, &e) != 0) {
            error = errno;
            handle_remove(&now->sources, s->number);
            s->number = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

void event_thread_forget(struct event_source *s)
{
    pthread_mutex_lock(&lock);
    struct life *l = now;
    if (l && handle_get(&l->sources, SOURCE, s->number) == s) {
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
        handle_remove(&l->sources, s->number);
        s->number = 0;
        while (l->running == s && mine != l)
            pthread_cond_wait(&idle, &lock);
    }
    pthread_mutex_unlock(&lock);
}

void event_thread_run(struct event_task *t)
{
    pthread_mutex_lock(&lock);
    struct life *l = mine ? mine : now;
    t->next = NULL;
    *l->last = t;
    l->last = &t->next;
    if (l != mine)
        ring(l);
    pthread_mutex_unlock(&lock);
}

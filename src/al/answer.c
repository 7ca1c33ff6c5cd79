/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/answer.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Who waited is not in the child, and nobody there would wait for them to leave. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&come, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

void al_answer_expect(struct al_answer *a, bool *told)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    a->told = told;
    pthread_mutex_unlock(&lock);
}

void al_answer(struct al_answer *a)
{
    pthread_mutex_lock(&lock);
    if (a->told)
        *a->told = true;
    a->told = NULL;
    pthread_cond_broadcast(&come);
    pthread_mutex_unlock(&lock);
}

void al_answer_await(const bool *told)
{
    pthread_mutex_lock(&lock);
    while (!*told)
        pthread_cond_wait(&come, &lock);
    pthread_mutex_unlock(&lock);
}

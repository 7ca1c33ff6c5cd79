/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that wait, each with its eventfd. */
#include "common/interrupt.h"

#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdlib.h>

/** A thread that waits, or has waited, or may be interrupted. */
struct thread {
    struct list link;
    pthread_t id;
    int wake;            /* eventfd */
    atomic_bool may;     /* be interrupted now: its own alone */
    atomic_bool is_over; /* it was interrupted, and will wait no more */
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list threads = {&threads, &threads};

static void leave(void *value)
{
    struct thread *t = value;
    pthread_mutex_lock(&threads_lock);
    list_del(&t->link);
    pthread_mutex_unlock(&threads_lock);
    sys_close(t->wake);
    free(t);
}

static void init(void)
{
    has_key = pthread_key_create(&key, leave) == 0;
}

/** @return NULL if this thread has not waited, or cannot */
static struct thread *known(void)
{
    pthread_once(&once, init);
    return has_key ? pthread_getspecific(key) : NULL;
}

/** @return NULL if there are no more descriptors or keys, or no memory */
static struct thread *self(void)
{
    struct thread *t = known();
    if (t || !has_key || !(t = calloc(1, sizeof *t)))
        return t;
    t->wake = (int)sys_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (t->wake < 0 || pthread_setspecific(key, t)) {
        if (t->wake >= 0)
            sys_close(t->wake);
        free(t);
        return NULL;
    }
    t->id = pthread_self();
    pthread_mutex_lock(&threads_lock);
    list_add_tail(&threads, &t->link);
    pthread_mutex_unlock(&threads_lock);
    return t;
}

int rs_wake_fd(void)
{
    struct thread *t = self();
    return t ? t->wake : -1;
}

void rs_wake_forked(void)
{
    struct thread *t = known();
    pthread_mutex_init(&threads_lock, NULL);
    list_init(&threads);
    if (!t)
        return;
    pthread_setspecific(key, NULL);
    sys_close(t->wake);
    free(t);
}

RS_EXPORT void rs_set_interruptible(bool may)
{
    struct thread *t = self();
    if (t)
        atomic_store_explicit(&t->may, may, memory_order_relaxed);
}

RS_EXPORT void rs_interrupt(pthread_t id)
{
    pthread_mutex_lock(&threads_lock);
    for (struct list *l = threads.next; l != &threads; l = l->next) {
        struct thread *t = container_of(l, struct thread, link);
        if (pthread_equal(t->id, id)) {
            atomic_store(&t->is_over, true);
            rs_wake(t->wake);
        }
    }
    pthread_mutex_unlock(&threads_lock);
}

bool rs_is_interrupted(void)
{
    const struct thread *t = known();
    return t && atomic_load_explicit(&t->may, memory_order_relaxed) && atomic_load(&t->is_over);
}

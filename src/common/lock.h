/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex that knows, in debug builds, who holds it: functions named *_locked assert it. */
#ifndef ANYWARP_LOCK_H
#define ANYWARP_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
#ifndef NDEBUG
    pthread_t owner;
    bool held;
#endif
};

static inline void lock_init(struct lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
#ifndef NDEBUG
    l->held = false;
#endif
}

static inline void lock_fini(struct lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static inline void lock_mark_(struct lock *l, bool held)
{
#ifndef NDEBUG
    l->held = held;
    l->owner = pthread_self();
#else
    (void)l, (void)held;
#endif
}

static inline void lock_get(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
    lock_mark_(l, true);
}

static inline bool lock_try(struct lock *l)
{
    if (pthread_mutex_trylock(&l->mutex) != 0)
        return false;
    lock_mark_(l, true);
    return true;
}

static inline void lock_put(struct lock *l)
{
    lock_mark_(l, false);
    pthread_mutex_unlock(&l->mutex);
}

/** Waits for @p cond. No cancellation point: who is cancelled here would keep the lock. */
static inline void lock_wait(struct lock *l, pthread_cond_t *cond)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    lock_mark_(l, false);
    pthread_cond_wait(cond, &l->mutex);
    lock_mark_(l, true);
    pthread_setcancelstate(state, &state);
}

#ifndef NDEBUG
#define assert_held(l) assert((l)->held &&pthread_equal((l)->owner, pthread_self()))
#else
#define assert_held(l) ((void)(l))
#endif

#endif

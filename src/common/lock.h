/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex that knows, in builds with a sanitizer, who holds it: functions named *_locked assert it.
 *
 * Around fork() every lock of the library is held by the thread that forks, so that a child finds
 * none that belongs to a thread it does not have, and all that they protect whole. The locks of
 * objects are found through their class.
 */
#ifndef ANYWARP_LOCK_H
#define ANYWARP_LOCK_H

#include "common/list.h"
#include "common/sanitizer.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#if defined(ANYWARP_ASAN) || defined(ANYWARP_TSAN)
#define LOCK_OWNERS
#endif

/** All locks of one kind. Their place in the order of locks is the kind's. */
struct lock_class {
    pthread_mutex_t mutex; /* of the list; taken before any lock in it */
    struct list locks;     /* struct lock.link */
};

#define LOCK_CLASS(name)                                                                           \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER,                                                                 \
        {                                                                                          \
            &(name).locks, &(name).locks                                                           \
        }                                                                                          \
    }

struct lock {
    pthread_mutex_t mutex;
    struct lock_class *class; /* NULL: it is known by name, or the program's to hold */
    struct list link;
#ifdef LOCK_OWNERS
    pthread_t owner;
    bool held;
#endif
};

static inline void lock_init(struct lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->class = NULL;
#ifdef LOCK_OWNERS
    l->held = false;
#endif
}

/** Makes a lock of class @p c. Call with no lock held that comes after that class. */
static inline void lock_init_in(struct lock *l, struct lock_class *c)
{
    lock_init(l);
    l->class = c;
    pthread_mutex_lock(&c->mutex);
    list_add_tail(&c->locks, &l->link);
    pthread_mutex_unlock(&c->mutex);
}

static inline void lock_fini(struct lock *l)
{
    if (l->class) {
        pthread_mutex_lock(&l->class->mutex);
        list_del(&l->link);
        pthread_mutex_unlock(&l->class->mutex);
        l->class = NULL;
    }
    pthread_mutex_destroy(&l->mutex);
}

#ifdef LOCK_OWNERS
/* Of this thread; a library has one, whichever of its files it comes from. */
__attribute__((weak, visibility("hidden"))) __thread bool lock_barred_;
#endif

#ifdef LOCK_OWNERS
#define assert_not_barred() assert(!lock_barred_)
#else
#define assert_not_barred() ((void)0)
#endif

/** From here on, until it is called with false, this thread takes no lock but leaves. */
static inline void lock_bar(bool barred)
{
#ifdef LOCK_OWNERS
    assert(lock_barred_ != barred);
    lock_barred_ = barred;
#else
    (void)barred;
#endif
}

static inline void lock_mark_(struct lock *l, bool held)
{
#ifdef LOCK_OWNERS
    l->held = held;
    l->owner = pthread_self();
#else
    (void)l, (void)held;
#endif
}

/** For a lock under which nobody waits for anything: it may be taken anywhere. */
static inline void lock_get_leaf(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
    lock_mark_(l, true);
}

static inline void lock_get(struct lock *l)
{
    assert_not_barred();
    lock_get_leaf(l);
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

/** The three times at which a module has something to do about fork(). */
enum fork_step { FORK_PREPARE, FORK_PARENT, FORK_CHILD };

/** Takes the lock before fork(), releases it after. */
static inline void lock_fork(struct lock *l, enum fork_step step)
{
    if (step == FORK_PREPARE)
        lock_get(l);
    else
        lock_put(l);
}

/** The same for all locks of a class; none is made or destroyed meanwhile. */
static inline void lock_class_fork(struct lock_class *c, enum fork_step step)
{
    if (step == FORK_PREPARE)
        pthread_mutex_lock(&c->mutex);
    list_for_each (link, &c->locks)
        lock_fork(container_of(link, struct lock, link), step);
    if (step != FORK_PREPARE)
        pthread_mutex_unlock(&c->mutex);
}

#ifdef LOCK_OWNERS
#define assert_held(l) assert((l)->held &&pthread_equal((l)->owner, pthread_self()))
#else
#define assert_held(l) ((void)(l))
#endif

#endif

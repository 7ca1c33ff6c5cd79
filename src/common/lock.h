/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex that knows, in builds with a sanitizer, who holds it: functions named *_locked assert it.
 * Each has a place in the order of locks (lock_rank.h), which is asserted there, too.
 *
 * Around fork() every lock of the library is held by the thread that forks, so that a child finds
 * none that belongs to a thread it does not have, and all that they protect whole. The locks of
 * objects are found through their class.
 */
#ifndef ANYWARP_LOCK_H
#define ANYWARP_LOCK_H

#include "common/list.h"
#include "common/lock_rank.h"
#include "common/sanitizer.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#if (defined(ANYWARP_ASAN) || defined(ANYWARP_TSAN)) && !defined(LOCK_OWNERS)
#define LOCK_OWNERS 1
#endif

/** All locks of one kind. */
struct lock_class {
    enum lock_rank rank;
    pthread_mutex_t mutex; /* of the list; taken before any lock in it */
    struct list locks;     /* struct lock.link */
};

#define LOCK_CLASS(name, rank)                                                                     \
    {                                                                                              \
        rank, PTHREAD_MUTEX_INITIALIZER,                                                           \
        {                                                                                          \
            &(name).locks, &(name).locks                                                           \
        }                                                                                          \
    }

struct lock {
    pthread_mutex_t mutex;
    struct lock_class *class; /* NULL: it is known by name, or the program's to hold */
    struct list link;
    enum lock_rank rank; /* its place in the order of locks */
#ifdef LOCK_OWNERS
    pthread_t owner;
    bool held;
#endif
};

/** Of a lock that is known by name. */
#define LOCK(r)                                                                                    \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (r)                                            \
    }

static inline void lock_init(struct lock *l, enum lock_rank rank)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->class = NULL;
    l->rank = rank;
#ifdef LOCK_OWNERS
    l->held = false;
#endif
}

/** Makes a lock of class @p c. Call with no lock held that comes after that class. */
static inline void lock_init_in(struct lock *l, struct lock_class *c)
{
    lock_init(l, c->rank);
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
/* Of this thread; each library has its own, of lock.c. */
extern __attribute__((visibility("hidden"))) __thread bool lock_barred_;
extern __attribute__((visibility("hidden"))) __thread unsigned lock_held_[LOCK_RANKS];

#define assert_held(l)      assert((l)->held &&pthread_equal((l)->owner, pthread_self()))
#define assert_not_barred() assert(!lock_barred_)

/** From here on, until it is called with false, this thread takes no lock but leaves. */
static inline void lock_bar(bool barred)
{
    assert(lock_barred_ != barred);
    lock_barred_ = barred;
}

/** Asserts that this thread holds no lock that comes after @p rank, or beside it. */
static inline void assert_in_order(enum lock_rank rank)
{
    for (unsigned r = rank + (rank == LOCK_PROGRAM); r < LOCK_RANKS; r++)
        assert(!lock_held_[r]);
}

static inline void lock_mark_(struct lock *l, bool held)
{
    lock_held_[l->rank] += held ? 1 : -1u;
    l->held = held;
    l->owner = pthread_self();
}
#else
#define assert_held(l)        ((void)(l))
#define assert_not_barred()   ((void)0)
#define lock_bar(barred)      ((void)(barred))
#define assert_in_order(rank) ((void)(rank))
#define lock_mark_(l, held)   ((void)(l))
#endif

static inline void lock_take_(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
    lock_mark_(l, true);
}

/** For a lock under which nobody waits for anything: it may be taken while others are barred. */
static inline void lock_get_leaf(struct lock *l)
{
    assert_in_order(l->rank);
    lock_take_(l);
}

static inline void lock_get(struct lock *l)
{
    assert_not_barred();
    lock_get_leaf(l);
}

/**
 * In any order: who does not wait cannot be waited for in a circle. What is taken afterwards comes
 * after it again.
 */
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

/**
 * Around what waits for a condition with the mutex of @p l. No cancellation point: who is cancelled
 * here would keep the lock. @return for lock_wait_end()
 */
static inline int lock_wait_begin(struct lock *l)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    lock_mark_(l, false);
    assert_in_order(l->rank);
    return state;
}

static inline void lock_wait_end(struct lock *l, int state)
{
    lock_mark_(l, true);
    pthread_setcancelstate(state, &state);
}

static inline void lock_wait(struct lock *l, pthread_cond_t *cond)
{
    int state = lock_wait_begin(l);
    pthread_cond_wait(cond, &l->mutex);
    lock_wait_end(l, state);
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
    if (step == FORK_PREPARE) {
        assert_in_order(c->rank);
        pthread_mutex_lock(&c->mutex);
    }
    list_for_each (link, &c->locks) {
        struct lock *l = container_of(link, struct lock, link);
        if (step == FORK_PREPARE)
            lock_take_(l); /* beside each other: no other thread takes two of them */
        else
            lock_put(l);
    }
    if (step != FORK_PREPARE)
        pthread_mutex_unlock(&c->mutex);
}

#endif

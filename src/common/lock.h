/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex that knows, in builds with a sanitizer, who holds it: functions named *_locked assert it.
 * Each has a place in the order of locks (lock_rank.h), which is asserted there, too.
 *
 * fork() happens while no other thread holds a lock of the library, so that a child finds none that
 * belongs to a thread it does not have, and all that they protect whole. The forking thread takes
 * the locks that have a name. Those of objects are of a class, which it closes: who holds one of
 * them goes on until it gives it back, who comes for one waits. Not one of them is written then:
 * fork() shares each page with the child, and the first write to it copies it, which for every
 * object of a large program takes longer than fork() itself.
 */
#ifndef ANYWARP_LOCK_H
#define ANYWARP_LOCK_H

#include "common/list.h"
#include "common/lock_rank.h"
#include "common/sanitizer.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if (defined(ANYWARP_ASAN) || defined(ANYWARP_TSAN)) && !defined(LOCK_OWNERS)
#define LOCK_OWNERS 1
#endif

#define LOCK_HIDDEN __attribute__((visibility("hidden")))

/** All locks of one kind. */
struct lock_class {
    enum lock_rank rank;
    _Atomic uint32_t forking; /* 1: closed; who waits for its end, waits here */
    pthread_mutex_t mutex;    /* of the list; taken before any lock in it */
    struct list locks;        /* struct lock.link */
};

#define LOCK_CLASS(name, r)                                                                        \
    {                                                                                              \
        .rank = (r), .mutex = PTHREAD_MUTEX_INITIALIZER, .locks = { &(name).locks, &(name).locks } \
    }

enum lock_word {
    LOCK_FREE,
    LOCK_TAKEN,
    LOCK_WANTED, /* taken, and somebody may sleep until it is free */
};

struct lock {
    _Atomic uint32_t word;    /* enum lock_word */
    enum lock_rank rank;      /* its place in the order of locks */
    struct lock_class *class; /* NULL: it is known by name, or the program's to hold */
    struct list link;
#ifdef LOCK_OWNERS
    pthread_t owner;
    bool held;
#endif
};

/** What threads wait for under a lock; zero when it begins. */
struct lock_cond {
    _Atomic uint32_t turn; /* of waking */
    uint32_t waiters;      /* under the lock */
};

/** Of a lock that is known by name. */
#define LOCK(r)                                                                                    \
    {                                                                                              \
        .rank = (r)                                                                                \
    }

static inline void lock_init(struct lock *l, enum lock_rank rank)
{
    atomic_init(&l->word, LOCK_FREE);
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
    if (!l->class)
        return;
    pthread_mutex_lock(&l->class->mutex);
    list_del(&l->link);
    pthread_mutex_unlock(&l->class->mutex);
    l->class = NULL;
}

#ifdef LOCK_OWNERS
/* Of this thread; each library has its own, of lock.c. */
extern LOCK_HIDDEN __thread bool lock_barred_;
extern LOCK_HIDDEN __thread unsigned lock_held_[LOCK_RANKS];

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

/* What has to wait, or to wake; lock.c. */
LOCK_HIDDEN void lock_take_slowly_(struct lock *l);
LOCK_HIDDEN void lock_wake_(struct lock *l);

/** Makes it free. */
static inline void lock_free_(struct lock *l)
{
    if (atomic_exchange_explicit(&l->word, LOCK_FREE, memory_order_release) == LOCK_WANTED)
        lock_wake_(l);
}

/**
 * Whether fork() stands before the lock, whose word the caller has changed: then it is not the
 * caller's. Both sides are sequentially consistent, so that either the caller sees that the class
 * is closed, or who closes it sees that the lock is taken.
 */
static inline bool lock_is_closed_(const struct lock *l)
{
    return l->class && __builtin_expect(atomic_load(&l->class->forking) != 0, 0);
}

static inline bool lock_take_at_once_(struct lock *l)
{
    uint32_t free = LOCK_FREE;
    if (!atomic_compare_exchange_strong(&l->word, &free, LOCK_TAKEN))
        return false;
    if (!lock_is_closed_(l))
        return true;
    lock_free_(l);
    return false;
}

static inline void lock_take_(struct lock *l)
{
    if (__builtin_expect(!lock_take_at_once_(l), 0))
        lock_take_slowly_(l);
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
    if (!lock_take_at_once_(l))
        return false;
    lock_mark_(l, true);
    return true;
}

/** Whether a thread has it, or is about to. Behind false, all that was done under it is seen. */
static inline bool lock_is_taken(const struct lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_acquire) != LOCK_FREE;
}

static inline void lock_put(struct lock *l)
{
    lock_mark_(l, false);
    lock_free_(l);
}

/**
 * Gives the lock back until lock_wake_all(), or for @p ms; @p ms < 0: for as long as it takes. It
 * may end without either, and is no cancellation point.
 * @return whether that time is over
 */
LOCK_HIDDEN bool lock_wait_ms(struct lock *l, struct lock_cond *cond, int ms);

static inline void lock_wait(struct lock *l, struct lock_cond *cond)
{
    lock_wait_ms(l, cond, -1);
}

/** Call with the lock of those who wait. */
LOCK_HIDDEN void lock_wake_all(struct lock_cond *cond);

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

/**
 * The same for all locks of a class, by closing it; none is made or destroyed meanwhile. The
 * caller has them all, but must neither take nor give back one.
 */
LOCK_HIDDEN void lock_class_fork(struct lock_class *c, enum fork_step step);

#endif

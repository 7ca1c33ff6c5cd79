/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/lock.h"

#include "common/sys.h"

#include <limits.h>

#ifdef LOCK_OWNERS
__thread bool lock_barred_;
__thread unsigned lock_held_[LOCK_RANKS];
#endif

static void take_open(struct lock *l)
{
    while (atomic_exchange_explicit(&l->word, LOCK_WANTED, memory_order_seq_cst) != LOCK_FREE)
        sys_futex_wait((uint32_t *)&l->word, LOCK_WANTED, -1);
}

void lock_take_slowly_(struct lock *l)
{
    for (;;) {
        take_open(l);
        if (!lock_is_closed_(l))
            return;
        lock_free_(l);
        sys_futex_wait((uint32_t *)&l->class->forking, 1, -1);
    }
}

void lock_wake_(struct lock *l)
{
    sys_futex_wake((uint32_t *)&l->word, 1);
}

bool lock_wait_ms(struct lock *l, struct lock_cond *cond, int ms)
{
    uint32_t turn = atomic_load(&cond->turn);
    cond->waiters++;
    lock_put(l);
    assert_in_order(l->rank);
    bool over = sys_futex_wait((uint32_t *)&cond->turn, turn, ms) == -ETIMEDOUT;
    lock_take_(l);
    cond->waiters--;
    return over;
}

void lock_wake_all(struct lock_cond *cond)
{
    if (!cond->waiters)
        return;
    atomic_fetch_add(&cond->turn, 1);
    sys_futex_wake((uint32_t *)&cond->turn, INT_MAX);
}

/* ---- fork ---- */

static void close_class(struct lock_class *c)
{
    assert_in_order(c->rank);
    pthread_mutex_lock(&c->mutex);
    atomic_store(&c->forking, 1);
    list_for_each (link, &c->locks) {
        struct lock *l = container_of(link, struct lock, link);
        if (atomic_load(&l->word) != LOCK_FREE) {
            take_open(l); /* when its holder is done */
            lock_free_(l);
        }
        lock_mark_(l, true); /* beside each other: no other thread takes two of them */
    }
}

/** Those who came while it was closed, and found out only then, are not in the child. */
static void forget_taken(struct lock *l)
{
    if (atomic_load(&l->word) != LOCK_FREE)
        atomic_store(&l->word, LOCK_FREE);
}

void lock_class_fork(struct lock_class *c, enum fork_step step)
{
    if (step == FORK_PREPARE) {
        close_class(c);
        return;
    }
#ifdef LOCK_OWNERS
    list_for_each (link, &c->locks)
        lock_mark_(container_of(link, struct lock, link), false);
#endif
    if (step == FORK_CHILD)
        list_for_each (link, &c->locks)
            forget_taken(container_of(link, struct lock, link));
    atomic_store(&c->forking, 0);
    sys_futex_wake((uint32_t *)&c->forking, INT_MAX);
    pthread_mutex_unlock(&c->mutex);
}

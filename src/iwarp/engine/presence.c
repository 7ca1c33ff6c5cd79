/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source that a poller has adopted. It is out of the epoll set, for telling that by every
 * packet is a twelfth of a ping-pong; so whoever adopts it has to run it, poll by poll.
 *
 * One source of the process is adopted at most. A lease is needed: the thread looks whether the
 * source is still run, and puts it back if not. That takes memory, and one of the watches that a
 * user may have (max_user_watches): while there is none, the thread runs the source on a timer.
 * Locks: adopted.lock, then that of the slot.
 */
#include "engine/presence.h"

#include "engine/engine.h"
#include "engine/poller.h"
#include "engine/source.h"
#include "engine/timer.h"

#define AGAIN_MS 1

static struct {
    struct lock lock;             /* of changes from none to one and back */
    _Atomic uint64_t key;         /* of the source; 0: none */
    struct iw_poller *_Atomic by; /* NULL: it could not be put back */
    struct iw_shard *_Atomic in;  /* where that was: its lease is needed */
    atomic_bool run;              /* by its poller since the last look */
    struct iw_timer again;
} adopted = {.lock = LOCK(LOCK_ADOPTED)};

void iw_adopt(struct iw_poller *p, uint64_t key)
{
    if (atomic_load(&adopted.key) || !lock_try(&adopted.lock))
        return;
    if (!atomic_load(&adopted.key)) {
        atomic_store(&adopted.by, p);
        atomic_store(&adopted.in, iw_shard_of(p));
        atomic_store(&adopted.run, true);
        atomic_store(&adopted.key, key); /* whoever ends the lease from here on sees it */
        if (!iw_engine_leased(iw_shard_of(p)) || !iw_source_take_out(key))
            atomic_store(&adopted.key, 0);
    }
    lock_put(&adopted.lock);
}

void iw_adopted_note(const struct iw_poller *p)
{
    /* Hints: a source that is put back too soon is adopted again. */
    if (atomic_load_explicit(&adopted.by, memory_order_relaxed) == p &&
        !atomic_load_explicit(&adopted.run, memory_order_relaxed))
        atomic_store_explicit(&adopted.run, true, memory_order_relaxed);
}

static void again(struct iw_timer *t)
{
    (void)t;
    iw_source_run(atomic_load(&adopted.key), EPOLLIN | EPOLLOUT, 0);
    iw_adopted_put_back(NULL);
}

static void put_back(void)
{
    lock_get(&adopted.lock);
    uint64_t key = atomic_load(&adopted.key);
    bool back = !key || iw_source_put_back(key);
    atomic_store(&adopted.by, NULL);
    if (back)
        atomic_store(&adopted.key, 0);
    lock_put(&adopted.lock);
    if (!back)
        iw_timer_set(&adopted.again, AGAIN_MS, again);
}

void iw_adopted_put_back(const struct iw_poller *by)
{
    if (atomic_load(&adopted.key) && (!by || atomic_load(&adopted.by) == by))
        put_back();
}

void iw_adopted_leave(const struct iw_shard *s)
{
    if (atomic_load(&adopted.key) && atomic_load(&adopted.in) == s)
        put_back();
}

void iw_adopted_check(const struct iw_shard *s)
{
    if (atomic_load(&adopted.key) && atomic_load(&adopted.in) == s &&
        !atomic_exchange(&adopted.run, false))
        put_back();
}

void iw_adopted_return(uint32_t but)
{
    uint64_t key = atomic_load(&adopted.key);
    if (!key || iw_source_is_of(key, but))
        return;
    put_back();
    iw_source_run(key, 0, but); /* a thread may be at what it has read, which epoll does not tell */
}

void iw_adopted_gone(uint64_t key)
{
    atomic_compare_exchange_strong(&adopted.key, &key, 0);
}

void iw_adopted_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        atomic_store(&adopted.key, 0); /* the child's epoll set has them all */
    lock_fork(&adopted.lock, step);
}

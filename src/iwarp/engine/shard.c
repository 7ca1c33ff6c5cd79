/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/shard.h"

#include "engine/deferred.h"
#include "engine/engine.h"
#include "engine/poller.h"

#include <pthread.h>

#define MOVE_AFTER 256 /* passes of one thread alone, while the shard is another's */
#define MOVES_MAX  8   /* so often that doubles */

struct iw_shard iw_shards[IW_SHARDS];

static atomic_uint count = 1;

/** The address names the thread. */
static __thread struct {
    struct iw_shard *own; /* or was, before a fork(); NULL: none */
    uint32_t period;      /* of iw_engine.period, in which it was counted */
    bool known;           /* where it may run */
} me;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

/** The thread ends. */
static void leave(void *arg)
{
    const void *self = &me;
    struct iw_shard *s = arg;
    atomic_compare_exchange_strong(&s->owner, &self, NULL);
    me.own = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, leave) == 0;
}

unsigned iw_shard_count(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

void iw_shard_opened(void)
{
    atomic_fetch_add(&count, 1);
}

bool iw_shard_is_mine(struct iw_shard *s)
{
    return atomic_load_explicit(&s->owner, memory_order_relaxed) == &me;
}

/** Makes this thread the owner of @p s if it has none. */
static bool own(struct iw_shard *s)
{
    const void *none = NULL;
    pthread_once(&once, make_key);
    if (!has_key || !atomic_compare_exchange_strong(&s->owner, &none, &me))
        return false;
    me.own = s;
    if (pthread_setspecific(key, s) == 0)
        return true;
    leave(s);
    return false;
}

/** @return the shard of this thread, which gets one if there is one to have; or NULL */
static struct iw_shard *find_own(void)
{
    if (me.own && iw_shard_is_mine(me.own))
        return me.own;
    for (unsigned i = 0; i < iw_shard_count(); i++)
        if (!atomic_load_explicit(&iw_shards[i].owner, memory_order_relaxed) && own(&iw_shards[i]))
            return me.own;
    struct iw_shard *s = iw_engine_open_shard();
    return s && own(s) ? s : NULL;
}

/** The poller @p p was in vain in @p s, which is another thread's, or nobody's. @return where it is
 * from now on */
static struct iw_shard *meet(struct iw_poller *p, struct iw_shard *s)
{
    /* Of two threads that poll a CQ at a time either may lose a count. */
    uint32_t alone = atomic_load_explicit(&p->alone, memory_order_relaxed) + 1,
             moves = atomic_load_explicit(&p->moves, memory_order_relaxed);
    if (atomic_load_explicit(&p->by, memory_order_relaxed) != &me) {
        atomic_store_explicit(&p->by, &me, memory_order_relaxed);
        alone = 0;
    }
    bool moves_now = alone >= (uint32_t)MOVE_AFTER << moves;
    atomic_store_explicit(&p->alone, moves_now ? 0 : alone, memory_order_relaxed);
    if (!moves_now)
        return s;
    if (moves < MOVES_MAX)
        atomic_store_explicit(&p->moves, moves + 1, memory_order_relaxed);
    struct iw_shard *to = find_own();
    if (!to || to == s)
        return s;
    iw_engine_cool(p);
    atomic_store_explicit(&p->shard, (uint32_t)(to - iw_shards), memory_order_release);
    iw_deferred_run(s); /* or what is posted from now on would go before it */
    return to;
}

/** This thread polls, for the first time in a period. */
static void count_me(uint32_t period)
{
    me.period = period;
    atomic_fetch_add_explicit(&iw_engine.threads, 1, memory_order_relaxed);
    if (!me.known)
        iw_engine_know_processors();
    me.known = true;
}

struct iw_shard *iw_shard_enter(struct iw_poller *p)
{
    uint32_t period = atomic_load_explicit(&iw_engine.period, memory_order_relaxed);
    if (me.period != period)
        count_me(period);
    struct iw_shard *s = iw_shard_of(p);
    if (iw_shard_is_mine(s))
        return s;
    bool is_free = !atomic_load_explicit(&s->owner, memory_order_relaxed);
    if (is_free && !(me.own && iw_shard_is_mine(me.own)) && own(s))
        return s;
    return meet(p, s);
}

struct iw_shard *iw_shard_own(void)
{
    return me.own && iw_shard_is_mine(me.own) ? me.own : &iw_shards[0];
}

void iw_shards_forget(void)
{
    for (unsigned i = 0; i < iw_shard_count(); i++) {
        struct iw_shard *s = &iw_shards[i];
        atomic_store(&s->owner, NULL);
        atomic_store(&s->leader, NULL);
        atomic_store(&s->leased, false);
        atomic_store(&s->actives, 0);
        atomic_store(&s->places, 0);
        for (unsigned k = 0; k < IW_ACTIVE; k++)
            atomic_store(&s->active[k].key, 0);
        s->visits = 0;
        s->visited = s->relieved = false;
#ifdef LOCK_OWNERS
        atomic_store(&s->between, 0);
#endif
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/quiesce.h"

#include "common/sys.h"
#include "engine/deferred.h"
#include "engine/engine.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define YIELDS     64 /* of who waits, before it sleeps */
#define NAP_MIN_NS 20000
#define NAP_MAX_NS 1000000
#define SETTLE_NS  10000000 /* until every thread has seen that it has to fence */

__thread struct iw_copier *iw_copier;
atomic_bool iw_copy_fences;

static struct iw_copier *_Atomic copiers;
static pthread_key_t key;
static bool has_key;

/** For threads that came when there was no memory, or no key: one of them at a time copies. */
static struct {
    pthread_mutex_t turn;
    struct iw_copier copier;
} reserve = {.turn = PTHREAD_MUTEX_INITIALIZER};

/** Those that want to be told; a leaf. */
static struct {
    struct lock lock;
    struct list periods;
} waiting = {.lock = LOCK(LOCK_QUIESCE), .periods = {&waiting.periods, &waiting.periods}};

/* ---- barriers ---- */

static void full_barrier(void)
{
#ifdef ANYWARP_TSAN /* it knows no fences */
    static atomic_int any;
    atomic_fetch_add(&any, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/** Makes every thread of the process pass a barrier, or relies on those that they have. */
static void barrier_everywhere(void)
{
#ifndef ANYWARP_TSAN
    static atomic_bool settled;
    if (!atomic_load(&iw_copy_fences)) {
        if (sys_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
            return;
        atomic_store(&iw_copy_fences, true); /* somebody has forbidden the call since */
    }
    if (!atomic_load(&settled)) {
        sys_nap(SETTLE_NS); /* whoever did not fence yet has long stored what it stored */
        atomic_store(&settled, true);
    }
#endif
    full_barrier();
}

/** Whether no other thread has a copier: what it does with its first one it does later. */
static bool is_alone(void)
{
    full_barrier();
    for (struct iw_copier *c = atomic_load(&copiers); c; c = atomic_load(&c->next))
        if (c != iw_copier && atomic_load(&c->taken))
            return false;
    return true;
}

/* ---- threads ---- */

static void leave(void *arg)
{
    struct iw_copier *c = arg;
    iw_copier = NULL;
    atomic_store(&c->taken, false);
}

static void add(struct iw_copier *c)
{
    struct iw_copier *first = atomic_load(&copiers);
    do
        atomic_store(&c->next, first);
    while (!atomic_compare_exchange_weak(&copiers, &first, c));
}

static void __attribute__((constructor)) prepare(void)
{
    has_key = pthread_key_create(&key, leave) == 0;
    add(&reserve.copier);
    /* Now, as it takes long when there are threads. */
    if (sys_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0)
        atomic_store(&iw_copy_fences, true);
}

static struct iw_copier *unused(void)
{
    for (struct iw_copier *c = atomic_load(&copiers); c; c = atomic_load(&c->next))
        if (c != &reserve.copier && !atomic_load(&c->taken) && !atomic_exchange(&c->taken, true))
            return c;
    return NULL;
}

static struct iw_copier *make(void)
{
    struct iw_copier *c = aligned_alloc(_Alignof(struct iw_copier), sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct iw_copier){.taken = true};
    add(c);
    return c;
}

/** One for as long as the thread lives, whose end is told by the key. */
static struct iw_copier *own(void)
{
    struct iw_copier *c = unused();
    if (!c)
        c = make();
    if (!c || pthread_setspecific(key, c) == 0)
        return c;
    atomic_store(&c->taken, false);
    return NULL;
}

/** For a section only, in which no other such thread is. */
static struct iw_copier *borrow(void)
{
    pthread_mutex_lock(&reserve.turn);
    atomic_store(&reserve.copier.taken, true);
    atomic_store(&reserve.copier.asked, true); /* its end is its return */
    return &reserve.copier;
}

struct iw_copier *iw_copier_take(void)
{
    struct iw_copier *c = has_key ? own() : NULL;
    if (!c)
        c = borrow();
    full_barrier(); /* is_alone() of another thread sees it, or this thread that one's change */
    iw_copier = c;
    return c;
}

void iw_copier_tell(struct iw_copier *c)
{
    struct list *l;
    if (c == &reserve.copier)
        iw_copier = NULL;
    else
        atomic_store(&c->asked, false);
    lock_get(&waiting.lock);
    while ((l = list_pop(&waiting.periods)))
        iw_deferred_push(container_of(l, struct iw_grace, link)->then);
    lock_put(&waiting.lock);
    if (c == &reserve.copier)
        pthread_mutex_unlock(&reserve.turn);
}

/* ---- grace periods ---- */

void iw_grace_init(struct iw_grace *g)
{
    *g = (struct iw_grace){0};
    list_init(&g->link);
}

void iw_grace_begin(struct iw_grace *g, const struct iw_pd *pd)
{
    g->pd = pd;
    g->busy = 0;
    g->at = NULL;
    if (is_alone())
        return;
    barrier_everywhere();
    g->at = atomic_load(&copiers);
}

/** Whether its section, if it is one that counts, has ended; this thread's own never counts. */
static bool has_moved(struct iw_grace *g, struct iw_copier *c)
{
    unsigned long count = atomic_load(&c->count);
    if (c == iw_copier)
        return true;
    if (g->busy)
        return count != g->busy;
    /* The domain is that of this count, or of a later section: then it has moved on, too. */
    if (count % 2 == 0 || atomic_load(&c->pd) != g->pd)
        return true;
    g->busy = count;
    return false;
}

bool iw_grace_over(struct iw_grace *g)
{
    while (g->at && has_moved(g, g->at)) {
        g->at = atomic_load(&g->at->next);
        g->busy = 0;
    }
    return !g->at;
}

bool iw_grace_ask(struct iw_grace *g, struct iw_deferred *then)
{
    while (!iw_grace_over(g)) {
        struct iw_copier *c = g->at;
        lock_get(&waiting.lock);
        g->then = then;
        if (list_empty(&g->link))
            list_add_tail(&waiting.periods, &g->link);
        lock_put(&waiting.lock);
        atomic_store(&c->asked, true);
        barrier_everywhere(); /* it sees that it is asked, or is seen to have moved on */
        if (!has_moved(g, c))
            return false;
    }
    iw_grace_drop(g);
    return true;
}

void iw_grace_drop(struct iw_grace *g)
{
    lock_get(&waiting.lock);
    list_del(&g->link);
    lock_put(&waiting.lock);
}

void iw_quiesce(const struct iw_pd *pd)
{
    struct iw_grace g;
    int64_t nap = NAP_MIN_NS;
    assert_not_barred();
    iw_grace_begin(&g, pd);
    for (int i = 0; !iw_grace_over(&g); i++) {
        if (i < YIELDS) {
            sched_yield();
            continue;
        }
        sys_nap(nap);
        nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
    }
}

/* ---- fork ---- */

static void forget_threads(void)
{
    for (struct iw_copier *c = atomic_load(&copiers); c; c = atomic_load(&c->next)) {
        if (c == iw_copier)
            continue;
        atomic_store(&c->count, (atomic_load(&c->count) + 1) & ~1ul);
        atomic_store(&c->asked, false);
        atomic_store(&c->taken, false);
    }
    pthread_mutex_init(&reserve.turn, NULL);
    while (list_pop(&waiting.periods))
        ;
    if (sys_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0)
        atomic_store(&iw_copy_fences, true);
}

void iw_quiesce_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        forget_threads();
    lock_fork(&waiting.lock, step);
}

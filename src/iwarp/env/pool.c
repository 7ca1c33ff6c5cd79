/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/pool.h"

#include "common/lock.h"
#include "conn/tx.h"
#include "env/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define POOL_KINDS 2
#define POOL_KEEP  16 /* free buffers that the process keeps of a kind */

static const size_t pool_size[POOL_KINDS] = {
    [IW_POOL_STAGING] = IW_STAGING_BYTES,
    [IW_POOL_BATCH] = sizeof(struct iwc_batch),
};

static struct {
    struct lock lock;
    unsigned n;
    void *buf[POOL_KEEP];
    _Atomic(void *) reserve; /* no thread keeps it to itself */
    bool lent;
} pool[POOL_KINDS] = {
    [IW_POOL_STAGING] = {.lock = LOCK(LOCK_POOL_STAGING)},
    [IW_POOL_BATCH] = {.lock = LOCK(LOCK_POOL_BATCH)},
};

struct cache {
    void *buf[POOL_KINDS];
    bool known; /* to the key: what is in it is kept when the thread ends */
};

static __thread struct cache cache;
static pthread_key_t cache_key;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static bool has_key;

void iw_pool_fork(enum fork_step step)
{
    for (int k = 0; k < POOL_KINDS; k++) {
        if (step == FORK_CHILD && pool[k].lent) { /* to a thread that is not here */
            pool[k].reserve = NULL;
            pool[k].lent = false;
        }
        lock_fork(&pool[k].lock, step);
    }
}

static int reserve_make(enum iw_pool_kind kind)
{
    int r = 0;
    lock_get(&pool[kind].lock);
    if (!pool[kind].reserve) {
        pool[kind].reserve = malloc(pool_size[kind]);
        r = pool[kind].reserve ? 0 : ENOMEM;
    }
    lock_put(&pool[kind].lock);
    return r;
}

int iw_pool_reserve(void)
{
    int r = 0;
    for (int k = 0; !r && k < POOL_KINDS; k++)
        r = reserve_make(k);
    return r;
}

static bool is_reserve(enum iw_pool_kind kind, const void *buf)
{
    return buf == atomic_load_explicit(&pool[kind].reserve, memory_order_relaxed);
}

static void *reserve_lend(enum iw_pool_kind kind)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    void *buf;
    if (!atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_WARN,
               "memory is short: there are no %zu KiB for a connection that sends or receives, so "
               "that such take turns at one buffer, and may wait for each other",
               pool_size[kind] / 1024);
    lock_get(&pool[kind].lock);
    buf = pool[kind].lent ? NULL : pool[kind].reserve;
    pool[kind].lent = pool[kind].lent || buf;
    lock_put(&pool[kind].lock);
    return buf;
}

static void reserve_return(enum iw_pool_kind kind)
{
    lock_get(&pool[kind].lock);
    pool[kind].lent = false;
    lock_put(&pool[kind].lock);
}

static void shared_put(enum iw_pool_kind kind, void *buf)
{
    lock_get(&pool[kind].lock);
    if (pool[kind].n < POOL_KEEP) {
        pool[kind].buf[pool[kind].n++] = buf;
        buf = NULL;
    }
    lock_put(&pool[kind].lock);
    free(buf);
}

static void cache_leave(void *arg)
{
    struct cache *c = arg;
    for (int k = 0; k < POOL_KINDS; k++)
        if (c->buf[k]) {
            shared_put(k, c->buf[k]);
            c->buf[k] = NULL;
        }
}

static void cache_key_make(void)
{
    has_key = pthread_key_create(&cache_key, cache_leave) == 0;
}

/** Where there is no key, a thread keeps nothing: nobody would hear of its end. */
static bool cache_is_known(void)
{
    if (!cache.known) {
        pthread_once(&cache_once, cache_key_make);
        cache.known = has_key && pthread_setspecific(cache_key, &cache) == 0;
    }
    return cache.known;
}

void *iw_pool_get(enum iw_pool_kind kind)
{
    void *buf = cache.buf[kind];
    if (buf) {
        cache.buf[kind] = NULL;
        return buf;
    }
    lock_get(&pool[kind].lock);
    if (pool[kind].n)
        buf = pool[kind].buf[--pool[kind].n];
    lock_put(&pool[kind].lock);
    if (!buf)
        buf = malloc(pool_size[kind]);
    return buf ? buf : reserve_lend(kind);
}

void iw_pool_put(enum iw_pool_kind kind, void *buf)
{
    if (!buf)
        return;
    if (is_reserve(kind, buf))
        reserve_return(kind);
    else if (!cache.buf[kind] && cache_is_known())
        cache.buf[kind] = buf;
    else
        shared_put(kind, buf);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/pool.h"

#include "common/lock.h"
#include "conn/tx.h"

#include <pthread.h>
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
    for (int k = 0; k < POOL_KINDS; k++)
        lock_fork(&pool[k].lock, step);
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
    return buf ? buf : malloc(pool_size[kind]);
}

void iw_pool_put(enum iw_pool_kind kind, void *buf)
{
    if (!buf)
        return;
    if (!cache.buf[kind] && cache_is_known())
        cache.buf[kind] = buf;
    else
        shared_put(kind, buf);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/active.h"

#include "engine/engine.h"

#define IDLE_NS 1000000

static bool take_out(struct iw_shard *s, struct iw_active *a, uint64_t key)
{
    if (!atomic_compare_exchange_strong(&a->key, &key, 0))
        return false;
    atomic_fetch_sub(&s->actives, 1);
    return true;
}

/** @return its place, where it may be already; NULL: there is no room */
static struct iw_active *put_in(struct iw_shard *s, uint64_t key)
{
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++)
        if (atomic_load(&a->key) == key)
            return a;
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++) {
        uint64_t none = 0;
        atomic_store_explicit(&a->moved, true, memory_order_relaxed);
        if (atomic_compare_exchange_strong(&a->key, &none, key)) {
            atomic_fetch_add(&s->actives, 1);
            return a;
        }
    }
    return NULL;
}

bool iw_active_add(struct iw_source *source)
{
    uint64_t key;
    struct iw_shard *s = iw_source_place(source, &key);
    if (!s || !iw_engine_leased(s))
        return false;
    struct iw_active *a = put_in(s, key);
    /* Whoever ends the lease from here on sees it. */
    return a && (iw_engine_leased(s) || !take_out(s, a, key));
}

static void note_moved(struct iw_active *a)
{
    if (!atomic_load_explicit(&a->moved, memory_order_relaxed))
        atomic_store_explicit(&a->moved, true, memory_order_relaxed);
}

bool iw_active_poll(struct iw_shard *s)
{
    bool any = false;
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++) {
        uint64_t key = atomic_load(&a->key);
        if (!key || !iw_source_poll(key))
            continue;
        any = true;
        note_moved(a);
    }
    return any;
}

static void run_in(struct iw_shard *s, uint32_t but)
{
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++)
        if (iw_source_run(atomic_load(&a->key), 0, but))
            note_moved(a);
}

void iw_active_run_all(uint32_t but)
{
    for (unsigned i = 0; i < iw_shard_count(); i++)
        if (atomic_load(&iw_shards[i].actives))
            run_in(&iw_shards[i], but);
}

static void rest(struct iw_shard *s, struct iw_active *a)
{
    uint64_t key = atomic_load(&a->key);
    if (!key)
        return;
    iw_source_take_begin();
    if (take_out(s, a, key))
        iw_source_rest(key);
    iw_source_take_end();
}

void iw_active_rest(struct iw_shard *s)
{
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++)
        rest(s, a);
}

void iw_active_check(struct iw_shard *s, uint64_t now)
{
    for (struct iw_active *a = s->active; a < s->active + IW_ACTIVE; a++) {
        if (atomic_exchange_explicit(&a->moved, false, memory_order_relaxed))
            a->since = now;
        else if (now - a->since >= IDLE_NS)
            rest(s, a);
    }
}

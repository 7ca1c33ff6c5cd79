/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/active.h"

#include "engine/engine.h"

#define IDLE_NS 1000000

/* Beside the number of a slot, in a key: its descriptor tells. Pollers leave it alone, but who
 * looks at all connections finds it here, at less than what a look at the descriptor costs. */
#define RESTS (1ull << 31)

static struct iw_active *end_of(struct iw_shard *s)
{
    return s->active + atomic_load(&s->places);
}

/** @return whether it rests from now on, by this thread */
static bool put_to_rest(struct iw_shard *s, struct iw_active *a, uint64_t key)
{
    if (!atomic_compare_exchange_strong(&a->key, &key, key | RESTS))
        return false;
    atomic_fetch_sub(&s->actives, 1);
    return true;
}

/** Puts it into a place that has @p old, 0 or one that rests. */
static bool put_in(struct iw_shard *s, struct iw_active *a, uint64_t old, uint64_t key)
{
    atomic_store_explicit(&a->moved, true, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&a->key, &old, key))
        return false;
    atomic_fetch_add(&s->actives, 1);
    iw_source_quiet(key);
    if ((atomic_load(&a->key) & ~RESTS) != key) /* meanwhile it rested, and gave its place away */
        iw_source_loud(key);
    return true;
}

/** @return where it is; NULL: nowhere */
static struct iw_active *find(struct iw_shard *s, uint64_t key)
{
    for (struct iw_active *a = s->active; a < end_of(s); a++) {
        uint64_t k = atomic_load(&a->key);
        if (k == key || (k == (key | RESTS) && put_in(s, a, k, key)))
            return a;
    }
    return NULL;
}

static struct iw_active *find_free(struct iw_shard *s, uint64_t key)
{
    for (unsigned i = 0; i < IW_ACTIVE; i++) {
        unsigned places = atomic_load(&s->places);
        while (places <= i && !atomic_compare_exchange_weak(&s->places, &places, i + 1))
            ;
        if (!atomic_load(&s->active[i].key) && put_in(s, &s->active[i], 0, key))
            return &s->active[i];
    }
    return NULL;
}

/** In the place of one that rests, whose descriptor is looked at from now on. */
static struct iw_active *find_resting(struct iw_shard *s, uint64_t key)
{
    for (struct iw_active *a = s->active; a < end_of(s); a++) {
        uint64_t k = atomic_load(&a->key);
        if (!(k & RESTS))
            continue;
        iw_source_loud(k & ~RESTS);
        bool done = put_in(s, a, k, key);
        /* Who has just put that one there may have made it quiet behind this. */
        iw_source_loud(k & ~RESTS);
        if (done)
            return a;
    }
    return NULL;
}

static struct iw_active *take_place(struct iw_shard *s, uint64_t key)
{
    struct iw_active *a = find(s, key);
    if (!a)
        a = find_free(s, key);
    return a ? a : find_resting(s, key);
}

bool iw_active_add(struct iw_source *source)
{
    uint64_t key;
    struct iw_shard *s = iw_source_place(source, &key);
    bool kept = iw_engine_keep();
    if (!s || !(kept || iw_engine_leased(s)))
        return false;
    struct iw_active *a = take_place(s, key);
    /* Whoever ends the lease from here on sees it. */
    return a && (kept || iw_engine_leased(s) || !put_to_rest(s, a, key));
}

static void note_moved(struct iw_active *a)
{
    if (!atomic_load_explicit(&a->moved, memory_order_relaxed))
        atomic_store_explicit(&a->moved, true, memory_order_relaxed);
}

bool iw_active_poll(struct iw_shard *s)
{
    bool any = false;
    for (struct iw_active *a = s->active; a < end_of(s); a++) {
        uint64_t key = atomic_load(&a->key);
        if (!key || (key & RESTS) || !iw_source_poll(key))
            continue;
        any = true;
        note_moved(a);
    }
    return any;
}

static void run_in(struct iw_shard *s, uint32_t but)
{
    for (struct iw_active *a = s->active; a < end_of(s); a++)
        if (iw_source_look(atomic_load(&a->key) & ~RESTS, but))
            note_moved(a);
}

void iw_active_run_all(uint32_t but)
{
    for (unsigned i = 0; i < iw_shard_count(); i++)
        run_in(&iw_shards[i], but);
}

static void rest(struct iw_shard *s, struct iw_active *a)
{
    uint64_t key = atomic_load(&a->key);
    if (!key || (key & RESTS))
        return;
    iw_source_take_begin();
    if (put_to_rest(s, a, key))
        iw_source_rest(key);
    iw_source_take_end();
}

void iw_active_rest(struct iw_shard *s)
{
    for (struct iw_active *a = s->active; a < end_of(s); a++)
        rest(s, a);
}

void iw_active_check(struct iw_shard *s, uint64_t now)
{
    for (struct iw_active *a = s->active; a < end_of(s); a++) {
        if (atomic_exchange_explicit(&a->moved, false, memory_order_relaxed))
            a->since = now;
        else if (now - a->since >= IDLE_NS)
            rest(s, a);
    }
}

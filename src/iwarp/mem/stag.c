/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/stag.h"

#include "env/random.h"

#include <errno.h>
#include <stdlib.h>

#define BUCKETS  65536
#define KEY_BITS 8 /* of an STag; above them is the index */

struct iw_stag_slot {
    struct iw_stag_slot *_Atomic next;
    _Atomic uint32_t stag; /* 0: nothing to find here */
    const struct iw_pd *_Atomic pd;
    struct iw_region *_Atomic region; /* NULL: free */
    uint32_t kept;                    /* an index that is nobody else's; under table.lock */
};

static struct {
    struct lock lock; /* writers */
    struct iw_stag_slot *_Atomic bucket[BUCKETS];
} table = {.lock = LOCK(LOCK_STAGS)};

void iw_stag_fork(enum fork_step step)
{
    lock_fork(&table.lock, step);
}

static struct iw_stag_slot *_Atomic *bucket_of(uint32_t stag)
{
    return &table.bucket[(stag >> KEY_BITS) % BUCKETS];
}

/** The slot whose STag is @p stag in all but the lowest @p ignored bits. */
static inline struct iw_stag_slot *find(uint32_t stag, unsigned ignored)
{
    struct iw_stag_slot *s = atomic_load_explicit(bucket_of(stag), memory_order_acquire);
    while (s && (atomic_load_explicit(&s->stag, memory_order_acquire) ^ stag) >> ignored)
        s = atomic_load_explicit(&s->next, memory_order_acquire);
    return s;
}

static inline enum iw_stag_found look(uint32_t stag, unsigned ignored, const struct iw_pd *pd,
                                      struct iw_region **r)
{
    struct iw_stag_slot *s = stag >> KEY_BITS ? find(stag, ignored) : NULL;
    if (!s)
        return IW_STAG_NONE;
    if (atomic_load_explicit(&s->pd, memory_order_acquire) != pd)
        return IW_STAG_FOREIGN;
    *r = atomic_load_explicit(&s->region, memory_order_acquire);
    /* The slot may have got a new region of this domain since its STag was compared. */
    return *r && !((iw_region_stag(*r) ^ stag) >> ignored) ? IW_STAG_OWN : IW_STAG_NONE;
}

enum iw_stag_found iw_stag_find(uint32_t stag, const struct iw_pd *pd, struct iw_region **r)
{
    return look(stag, 0, pd, r);
}

enum iw_stag_found iw_stag_find_any_key(uint32_t stag, const struct iw_pd *pd, struct iw_region **r)
{
    return look(stag, KEY_BITS, pd, r);
}

/** A free slot of the chain, or a new one at its end. */
static struct iw_stag_slot *slot_take_locked(uint32_t stag)
{
    struct iw_stag_slot *_Atomic *p = bucket_of(stag), *s;
    assert_held(&table.lock);
    for (; (s = atomic_load(p)); p = &s->next)
        if (!atomic_load(&s->region))
            return s;
    s = calloc(1, sizeof(*s));
    if (s)
        atomic_store(p, s);
    return s;
}

static int random_stag(uint32_t *stag)
{
    do {
        if (iw_random32(stag))
            return EIO;
    } while (*stag >> KEY_BITS == 0);
    return 0;
}

/** In this order; see stag.h. */
static void fill(struct iw_region *r)
{
    atomic_store(&r->slot->pd, r->pd);
    atomic_store(&r->slot->region, r);
    atomic_store(&r->slot->stag, r->grant.stag);
}

static bool is_taken_locked(uint32_t stag)
{
    assert_held(&table.lock);
    for (struct iw_stag_slot *s = atomic_load(bucket_of(stag)); s; s = atomic_load(&s->next))
        if (s->kept == stag >> KEY_BITS)
            return true;
    return find(stag, KEY_BITS);
}

/** @return 0, EEXIST, ENOMEM */
static int insert_locked(struct iw_region *r)
{
    assert_held(&table.lock);
    if (is_taken_locked(r->grant.stag))
        return EEXIST;
    r->slot = slot_take_locked(r->grant.stag);
    if (!r->slot)
        return ENOMEM;
    fill(r);
    return 0;
}

int iw_stag_insert(struct iw_region *r)
{
    int err;
    do {
        err = random_stag(&r->grant.stag);
        if (err)
            break;
        lock_get(&table.lock);
        err = insert_locked(r);
        lock_put(&table.lock);
    } while (err == EEXIST);
    return err;
}

void iw_stag_keep(struct iw_region *r)
{
    lock_get(&table.lock);
    r->slot->kept = r->grant.stag >> KEY_BITS;
    lock_put(&table.lock);
}

void iw_stag_inherit(struct iw_region *r, const struct iw_region *old)
{
    r->slot = old->slot;
    r->grant.stag = old->grant.stag;
    lock_get(&table.lock);
    fill(r);
    r->slot->kept = 0;
    lock_put(&table.lock);
}

void iw_stag_rename(struct iw_region *r)
{
    atomic_store(&r->slot->stag, iw_region_stag(r));
}

void iw_stag_hide(struct iw_region *r)
{
    atomic_store(&r->slot->stag, 0);
}

void iw_stag_release(struct iw_region *r)
{
    atomic_store(&r->slot->region, NULL);
}

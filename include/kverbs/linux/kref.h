/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_KREF_H
#define KVERBS_LINUX_KREF_H

#include <linux/atomic.h>
#include <linux/bug.h>

typedef struct {
    atomic_t refs;
} refcount_t;

static inline void refcount_set(refcount_t *r, int n)
{
    atomic_set(&r->refs, n);
}

static inline unsigned refcount_read(const refcount_t *r)
{
    return (unsigned)atomic_read(&r->refs);
}

static inline void refcount_inc(refcount_t *r)
{
    WARN_ON_ONCE(atomic_inc_return(&r->refs) <= 1);
}

static inline bool refcount_inc_not_zero(refcount_t *r)
{
    return atomic_inc_not_zero(&r->refs);
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
    int left = atomic_dec_return(&r->refs);
    WARN_ON_ONCE(left < 0);
    return left == 0;
}

struct kref {
    refcount_t refcount;
};

static inline void kref_init(struct kref *k)
{
    refcount_set(&k->refcount, 1);
}

static inline void kref_get(struct kref *k)
{
    refcount_inc(&k->refcount);
}

static inline int kref_get_unless_zero(struct kref *k)
{
    return refcount_inc_not_zero(&k->refcount);
}

static inline int kref_put(struct kref *k, void (*release)(struct kref *k))
{
    if (!refcount_dec_and_test(&k->refcount))
        return 0;
    release(k);
    return 1;
}

#endif

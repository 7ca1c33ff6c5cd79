/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SLAB_H
#define KVERBS_LINUX_SLAB_H

#include <linux/gfp.h>
#include <linux/types.h>

/** Complains if `flags` may sleep and the caller may not. */
void *kverbs_alloc(size_t n, size_t size, gfp_t flags, const char *file, int line)
    __attribute__((alloc_size(1, 2)));
void kfree(const void *p);
void *krealloc(const void *p, size_t size, gfp_t flags);
char *kstrdup(const char *s, gfp_t flags);
void *kmemdup(const void *p, size_t size, gfp_t flags);

#define kmalloc(size, flags)          kverbs_alloc(1, (size), (flags), __FILE__, __LINE__)
#define kzalloc(size, flags)          kverbs_alloc(1, (size), (flags) | __GFP_ZERO, __FILE__, __LINE__)
#define kcalloc(n, size, flags)       kverbs_alloc((n), (size), (flags) | __GFP_ZERO, __FILE__, __LINE__)
#define kmalloc_array(n, size, flags) kverbs_alloc((n), (size), (flags), __FILE__, __LINE__)
#define vmalloc(size)                 kmalloc((size), GFP_KERNEL)
#define vzalloc(size)                 kzalloc((size), GFP_KERNEL)
#define vfree(p)                      kfree(p)
#define kvfree(p)                     kfree(p)
#define kzfree(p)                     kfree(p)

/* A cache is its objects' size. */
struct kmem_cache;
struct kmem_cache *kmem_cache_create(const char *name, size_t size, size_t align,
                                     unsigned long flags, void (*ctor)(void *));
void kmem_cache_destroy(struct kmem_cache *c);
void *kmem_cache_alloc(struct kmem_cache *c, gfp_t flags);
void kmem_cache_free(struct kmem_cache *c, void *p);

#endif

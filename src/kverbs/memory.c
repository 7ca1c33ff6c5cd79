/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: <linux/slab.h> and pages. What may sleep says so to might_sleep(). */
#include <stdlib.h>

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

void *kverbs_alloc(size_t n, size_t size, gfp_t flags, const char *file, int line)
{
    if (flags & __GFP_RECLAIM)
        kverbs_might_sleep(file, line);
    size_t all;
    if (__builtin_mul_overflow(n, size, &all))
        return NULL;
    return flags & __GFP_ZERO ? calloc(1, all) : malloc(all);
}

void kfree(const void *p)
{
    free((void *)p);
}

void *krealloc(const void *p, size_t size, gfp_t flags)
{
    if (flags & __GFP_RECLAIM)
        might_sleep();
    return realloc((void *)p, size);
}

void *kmemdup(const void *p, size_t size, gfp_t flags)
{
    void *copy = kmalloc(size, flags);
    return copy ? memcpy(copy, p, size) : NULL;
}

char *kstrdup(const char *s, gfp_t flags)
{
    return s ? kmemdup(s, strlen(s) + 1, flags) : NULL;
}

struct kmem_cache {
    size_t size;
    void (*ctor)(void *);
};

struct kmem_cache *kmem_cache_create(const char *name, size_t size, size_t align,
                                     unsigned long flags, void (*ctor)(void *))
{
    (void)name;
    (void)align;
    (void)flags;
    struct kmem_cache *c = malloc(sizeof *c);
    if (c)
        *c = (struct kmem_cache){size, ctor};
    return c;
}

void kmem_cache_destroy(struct kmem_cache *c)
{
    free(c);
}

void *kmem_cache_alloc(struct kmem_cache *c, gfp_t flags)
{
    void *p = kmalloc(c->size, flags);
    if (p && c->ctor)
        c->ctor(p);
    return p;
}

void kmem_cache_free(struct kmem_cache *c, void *p)
{
    (void)c;
    free(p);
}

struct page *kverbs_alloc_pages(gfp_t flags, unsigned order, const char *file, int line)
{
    if (flags & __GFP_RECLAIM)
        kverbs_might_sleep(file, line);
    size_t size = PAGE_SIZE << order;
    void *p = aligned_alloc(PAGE_SIZE, size);
    if (p && (flags & __GFP_ZERO))
        memset(p, 0, size);
    return p;
}

void __free_pages(struct page *page, unsigned order)
{
    (void)order;
    free(page);
}

unsigned get_order(unsigned long size)
{
    unsigned order = 0;
    while (PAGE_SIZE << order < size)
        order++;
    return order;
}

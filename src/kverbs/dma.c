/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/dma.h"

#include <stdlib.h>
#include <string.h>

#include "kverbs/census.h"

struct region {
    struct kv_pd *pd;
    struct ibv_mr *mr;
    struct region *next;
};

struct kv_mapping {
    u64 start, size;
    enum dma_data_direction direction;
    unsigned refs;
    struct region *regions;
};

/* The first mapping that starts behind an address. */
static size_t behind(const struct kv_device *d, u64 addr)
{
    size_t from = 0, to = d->mapped;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (d->mappings[mid]->start <= addr)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Mappings may overlap: which one has all of it. */
static struct kv_mapping *covering(const struct kv_device *d, u64 addr, u64 length)
{
    for (size_t i = behind(d, addr); i > 0; i--) {
        struct kv_mapping *m = d->mappings[i - 1];
        if (addr - m->start < m->size && length <= m->size - (addr - m->start))
            return m;
        if (addr - m->start >= d->longest)
            break;
    }
    return NULL;
}

static const size_t nowhere = (size_t)-1;

static size_t place(const struct kv_device *d, u64 start, u64 size, enum dma_data_direction dir)
{
    for (size_t i = behind(d, start); i > 0 && d->mappings[i - 1]->start == start; i--) {
        if (d->mappings[i - 1]->size == size && d->mappings[i - 1]->direction == dir)
            return i - 1;
    }
    return nowhere;
}

/* @return the place of a new mapping, without references; nowhere: no memory */
static size_t insert(struct kv_device *d, u64 start, u64 size, enum dma_data_direction dir)
{
    if (d->mapped == d->room) {
        size_t room = d->room ? 2 * d->room : 64;
        struct kv_mapping **more = realloc(d->mappings, room * sizeof(*more));
        if (!more)
            return nowhere;
        d->mappings = more;
        d->room = room;
    }
    struct kv_mapping *m = malloc(sizeof *m);
    if (!m)
        return nowhere;
    *m = (struct kv_mapping){start, size, dir, 0, NULL};
    size_t i = behind(d, start);
    memmove(&d->mappings[i + 1], &d->mappings[i], (d->mapped - i) * sizeof *d->mappings);
    d->mappings[i] = m;
    d->mapped++;
    d->longest = max(d->longest, size);
    return i;
}

static bool add(struct kv_device *d, u64 start, u64 size, enum dma_data_direction dir)
{
    pthread_rwlock_wrlock(&d->dma_lock);
    size_t i = place(d, start, size, dir);
    if (i == nowhere)
        i = insert(d, start, size, dir);
    if (i != nowhere)
        d->mappings[i]->refs++;
    pthread_rwlock_unlock(&d->dma_lock);
    if (i == nowhere)
        return false;
    kv_count(KV_MAPPING, 1);
    return true;
}

/* A window that is still valid keeps the region; it is tried again with the PD. */
static void end_region(struct region *r)
{
    if (ibv_dereg_mr(r->mr) != 0) {
        printk(KERN_WARNING "%s: unmapped memory that is registered still\n",
               r->pd->ib.device->name);
        kv_pd_keep(r->pd, r->mr);
    }
    free(r);
}

static void end_mapping(struct kv_mapping *m)
{
    struct region *r;
    while ((r = m->regions)) {
        m->regions = r->next;
        end_region(r);
    }
    free(m);
}

static void drop(struct kv_device *d, u64 start, u64 size, enum dma_data_direction dir)
{
    pthread_rwlock_wrlock(&d->dma_lock);
    size_t i = place(d, start, size, dir);
    bool found = i != nowhere;
    if (found && --d->mappings[i]->refs == 0) {
        struct kv_mapping *gone = d->mappings[i];
        d->mapped--;
        memmove(&d->mappings[i], &d->mappings[i + 1], (d->mapped - i) * sizeof *d->mappings);
        end_mapping(gone); /* with the lock: its PDs stay as long */
    }
    pthread_rwlock_unlock(&d->dma_lock);
    if (!found) {
        printk(KERN_WARNING "%s: unmaps %#llx+%llu, which is not mapped like this\n", d->ib.name,
               start, size);
        return;
    }
    kv_count(KV_MAPPING, -1);
}

static struct ibv_mr *region_in(const struct kv_mapping *m, const struct kv_pd *pd)
{
    const struct region *r = m->regions;
    while (r && r->pd != pd)
        r = r->next;
    return r ? r->mr : NULL;
}

static struct ibv_mr *new_region(struct kv_mapping *m, struct kv_pd *pd)
{
    struct region *r = malloc(sizeof *r);
    if (!r)
        return NULL;
    int access = IBV_ACCESS_MW_BIND | (m->direction == DMA_TO_DEVICE ? 0 : IBV_ACCESS_LOCAL_WRITE);
    *r = (struct region){pd, ibv_reg_mr(pd->verb, (void *)(uintptr_t)m->start, m->size, access),
                         m->regions};
    if (!r->mr) {
        free(r);
        return NULL;
    }
    m->regions = r;
    return r->mr;
}

struct ibv_mr *kv_dma_region(struct kv_pd *pd, u64 addr, u64 length)
{
    struct kv_device *d = kv_device(pd->ib.device);
    pthread_rwlock_rdlock(&d->dma_lock);
    struct kv_mapping *m = covering(d, addr, length);
    struct ibv_mr *mr = m ? region_in(m, pd) : NULL;
    pthread_rwlock_unlock(&d->dma_lock);
    if (mr)
        return mr;
    pthread_rwlock_wrlock(&d->dma_lock);
    m = covering(d, addr, length);
    if (m)
        mr = region_in(m, pd);
    if (m && !mr)
        mr = new_region(m, pd);
    pthread_rwlock_unlock(&d->dma_lock);
    if (!mr)
        printk(KERN_ERR "%s: %#llx+%llu is %s\n", d->ib.name, addr, length,
               m ? "mapped, but cannot be registered" : "not mapped for DMA");
    return mr;
}

void kv_dma_leave(struct kv_pd *pd)
{
    struct kv_device *d = kv_device(pd->ib.device);
    pthread_rwlock_wrlock(&d->dma_lock);
    for (size_t i = 0; i < d->mapped; i++) {
        for (struct region **at = &d->mappings[i]->regions; *at;) {
            struct region *r = *at;
            if (r->pd != pd) {
                at = &r->next;
                continue;
            }
            *at = r->next;
            end_region(r);
        }
    }
    pthread_rwlock_unlock(&d->dma_lock);
}

/* Address 0 is what no mapping has. */
int ib_dma_mapping_error(struct ib_device *dev, u64 dma_addr)
{
    (void)dev;
    return dma_addr == 0 ? -ENOMEM : 0;
}

u64 ib_dma_map_single(struct ib_device *dev, void *cpu_addr, size_t size,
                      enum dma_data_direction direction)
{
    u64 addr = (uintptr_t)cpu_addr;
    return size > 0 && add(kv_device(dev), addr, size, direction) ? addr : 0;
}

void ib_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
                         enum dma_data_direction direction)
{
    drop(kv_device(dev), addr, size, direction);
}

u64 ib_dma_map_page(struct ib_device *dev, struct page *page, unsigned long offset, size_t size,
                    enum dma_data_direction direction)
{
    return ib_dma_map_single(dev, (char *)page_address(page) + offset, size, direction);
}

void ib_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
                       enum dma_data_direction direction)
{
    ib_dma_unmap_single(dev, addr, size, direction);
}

int ib_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
                  enum dma_data_direction direction)
{
    struct scatterlist *s;
    int i;
    for_each_sg(sg, s, nents, i)
    {
        s->dma_address = ib_dma_map_single(dev, sg_virt(s), s->length, direction);
        s->dma_length = s->length;
        if (ib_dma_mapping_error(dev, s->dma_address)) {
            ib_dma_unmap_sg(dev, sg, i, direction);
            return 0;
        }
    }
    return nents;
}

void ib_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
                     enum dma_data_direction direction)
{
    struct scatterlist *s;
    int i;
    for_each_sg(sg, s, nents, i) ib_dma_unmap_single(dev, s->dma_address, s->dma_length, direction);
}

u64 ib_sg_dma_address(struct ib_device *dev, struct scatterlist *sg)
{
    (void)dev;
    return sg_dma_address(sg);
}

unsigned int ib_sg_dma_len(struct ib_device *dev, struct scatterlist *sg)
{
    (void)dev;
    return sg_dma_len(sg);
}

/* Memory is coherent: what either side wrote is there. */
void ib_dma_sync_single_for_cpu(struct ib_device *dev, u64 addr, size_t size,
                                enum dma_data_direction dir)
{
    (void)dev, (void)addr, (void)size, (void)dir;
    smp_rmb();
}

void ib_dma_sync_single_for_device(struct ib_device *dev, u64 addr, size_t size,
                                   enum dma_data_direction dir)
{
    (void)dev, (void)addr, (void)size, (void)dir;
    smp_wmb();
}

void *ib_dma_alloc_coherent(struct ib_device *dev, size_t size, dma_addr_t *dma_handle, gfp_t flag)
{
    unsigned order = get_order(size);
    void *p = alloc_pages(flag | __GFP_ZERO, order);
    if (!p)
        return NULL;
    *dma_handle = ib_dma_map_single(dev, p, size, DMA_BIDIRECTIONAL);
    if (ib_dma_mapping_error(dev, *dma_handle)) {
        __free_pages(p, order);
        return NULL;
    }
    return p;
}

void ib_dma_free_coherent(struct ib_device *dev, size_t size, void *cpu_addr, dma_addr_t dma_handle)
{
    ib_dma_unmap_single(dev, dma_handle, size, DMA_BIDIRECTIONAL);
    __free_pages(cpu_addr, get_order(size));
}

static struct ib_device *of(struct device *dev)
{
    return container_of(dev, struct ib_device, dev);
}

dma_addr_t dma_map_single(struct device *dev, void *p, size_t size, enum dma_data_direction dir)
{
    return ib_dma_map_single(of(dev), p, size, dir);
}

void dma_unmap_single(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir)
{
    ib_dma_unmap_single(of(dev), addr, size, dir);
}

dma_addr_t dma_map_page(struct device *dev, struct page *page, size_t offset, size_t size,
                        enum dma_data_direction dir)
{
    return ib_dma_map_page(of(dev), page, offset, size, dir);
}

void dma_unmap_page(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir)
{
    ib_dma_unmap_page(of(dev), addr, size, dir);
}

int dma_map_sg(struct device *dev, struct scatterlist *sg, int n, enum dma_data_direction dir)
{
    return ib_dma_map_sg(of(dev), sg, n, dir);
}

void dma_unmap_sg(struct device *dev, struct scatterlist *sg, int n, enum dma_data_direction dir)
{
    ib_dma_unmap_sg(of(dev), sg, n, dir);
}

void *dma_alloc_coherent(struct device *dev, size_t size, dma_addr_t *addr, gfp_t flags)
{
    return ib_dma_alloc_coherent(of(dev), size, addr, flags);
}

void dma_free_coherent(struct device *dev, size_t size, void *p, dma_addr_t addr)
{
    ib_dma_free_coherent(of(dev), size, p, addr);
}

int dma_mapping_error(struct device *dev, dma_addr_t addr)
{
    return ib_dma_mapping_error(of(dev), addr);
}

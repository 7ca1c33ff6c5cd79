/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "kverbs/census.h"
#include "kverbs/dma.h"

/* Regions that were invalidated in place of an MR. */
struct spent {
    struct ibv_mr *mr;
    struct spent *next;
};

struct kv_mr {
    struct ib_mr ib;
    struct ibv_mw *window;
    struct kv_mr *next;
    u32 max_pages;
    u64 mapped; /* by ib_map_mr_sg() */
    bool valid;
    u32 key; /* it is valid with */
    u32 region_lkey;
    struct spent *spent;
};

static struct kv_mr *kv_mr(const struct ib_mr *mr)
{
    return container_of(mr, struct kv_mr, ib);
}

static struct kv_mr **bucket(struct kv_pd *pd, u32 key)
{
    return &pd->mrs[key >> 8 & (ARRAY_SIZE(pd->mrs) - 1)];
}

static struct kv_mr **find_locked(struct kv_pd *pd, u32 key)
{
    struct kv_mr **at = bucket(pd, key);
    while (*at && (*at)->ib.rkey >> 8 != key >> 8)
        at = &(*at)->next;
    return at;
}

struct ib_mr *ib_alloc_mr(struct ib_pd *ib, enum ib_mr_type type, u32 max_num_sg)
{
    might_sleep();
    if (type != IB_MR_TYPE_MEM_REG)
        return ERR_PTR(-EOPNOTSUPP);
    if (max_num_sg == 0 || max_num_sg > ib->device->attrs.max_fast_reg_page_list_len)
        return ERR_PTR(-EINVAL);
    struct kv_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return ERR_PTR(-ENOMEM);
    struct kv_pd *pd = kv_pd(ib);
    mr->window = ibv_alloc_mw(pd->verb, IBV_MW_TYPE_2);
    if (!mr->window) {
        free(mr);
        return ERR_PTR(-errno);
    }
    mr->max_pages = max_num_sg;
    mr->ib.device = ib->device;
    mr->ib.pd = ib;
    mr->ib.lkey = mr->ib.rkey = mr->window->rkey;
    kv_pd_use(ib, 1);
    pthread_mutex_lock(&pd->lock);
    mr->next = *bucket(pd, mr->ib.rkey);
    *bucket(pd, mr->ib.rkey) = mr;
    pthread_mutex_unlock(&pd->lock);
    kv_count(KV_MR, 1);
    return &mr->ib;
}

static void free_spent(struct spent *s)
{
    while (s) {
        struct spent *next = s->next;
        ibv_dereg_mr(s->mr);
        free(s);
        s = next;
    }
}

int ib_dereg_mr(struct ib_mr *ib)
{
    might_sleep();
    struct kv_mr *mr = kv_mr(ib);
    struct kv_pd *pd = kv_pd(ib->pd);
    int e = ibv_dealloc_mw(mr->window);
    if (e)
        return -e;
    pthread_mutex_lock(&pd->lock);
    struct kv_mr **at = find_locked(pd, ib->rkey);
    *at = mr->next;
    pthread_mutex_unlock(&pd->lock);
    free_spent(mr->spent);
    kv_pd_use(ib->pd, -1);
    free(mr);
    kv_count(KV_MR, -1);
    return 0;
}

/* Entries follow each other in memory: a window has one range. */
int ib_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int sg_nents, unsigned *sg_offset,
                 unsigned page_size)
{
    struct kv_mr *mr = kv_mr(ib);
    unsigned offset = sg_offset ? *sg_offset : 0;
    if (sg_nents <= 0 || page_size < PAGE_SIZE || (page_size & (page_size - 1)) ||
        offset >= sg_dma_len(sg))
        return -EINVAL;
    u64 start = sg_dma_address(sg) + offset, end = start;
    u64 limit = (start & ~((u64)page_size - 1)) + (u64)mr->max_pages * page_size;
    int n = 0;
    struct scatterlist *s;
    for_each_sg(sg, s, sg_nents, n)
    {
        u64 from = sg_dma_address(s) + (n == 0 ? offset : 0),
            to = sg_dma_address(s) + sg_dma_len(s);
        if (from != end || to > limit)
            break;
        end = to;
    }
    mr->mapped = ib->iova = start;
    ib->length = end - start;
    ib->page_size = page_size;
    return n;
}

int kv_mr_bind(struct kv_pd *pd, const struct ib_reg_wr *wr, struct ibv_send_wr *bind)
{
    struct kv_mr *mr = kv_mr(wr->mr);
    if (wr->mr->pd != &pd->ib || wr->key >> 8 != wr->mr->rkey >> 8 || mr->ib.iova != mr->mapped ||
        mr->ib.length == 0)
        return -EINVAL;
    struct ibv_mr *region = kv_dma_region(pd, mr->mapped, mr->ib.length);
    if (!region)
        return -EINVAL;
    bind->opcode = IBV_WR_BIND_MW;
    bind->bind_mw.mw = mr->window;
    bind->bind_mw.rkey = wr->key;
    bind->bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = region,
        .addr = mr->mapped,
        .length = mr->ib.length,
        .mw_access_flags =
            (unsigned)wr->access &
            (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC),
    };
    pthread_mutex_lock(&pd->lock);
    mr->valid = true;
    mr->key = wr->key;
    mr->region_lkey = region->lkey;
    pthread_mutex_unlock(&pd->lock);
    return 0;
}

static struct spent *spend(struct kv_pd *pd, struct spent *before)
{
    static char byte;
    struct spent *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct spent){ibv_reg_mr(pd->verb, &byte, sizeof byte, 0), before};
    if (s->mr)
        return s;
    free(s);
    return NULL;
}

int kv_mr_invalidate(struct kv_pd *pd, u32 *key)
{
    int ret = 0;
    pthread_mutex_lock(&pd->lock);
    struct kv_mr *mr = *find_locked(pd, *key);
    if (mr && mr->valid && mr->key == *key) {
        mr->valid = false;
    } else if (mr && !mr->valid) {
        struct spent *s = spend(pd, mr->spent);
        if (s) {
            mr->spent = s;
            *key = s->mr->lkey;
        } else {
            ret = -ENOMEM;
        }
    }
    pthread_mutex_unlock(&pd->lock);
    return ret;
}

void kv_mr_invalidated(struct kv_pd *pd, u32 key)
{
    pthread_mutex_lock(&pd->lock);
    struct kv_mr *mr = *find_locked(pd, key);
    if (mr && mr->key == key)
        mr->valid = false;
    pthread_mutex_unlock(&pd->lock);
}

u32 kv_mr_lkey(struct kv_pd *pd, u32 key)
{
    pthread_mutex_lock(&pd->lock);
    const struct kv_mr *mr = *find_locked(pd, key);
    u32 lkey = mr && mr->valid && mr->key == key ? mr->region_lkey : key;
    pthread_mutex_unlock(&pd->lock);
    return lkey;
}

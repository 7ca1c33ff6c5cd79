/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "kverbs/census.h"
#include "kverbs/dma.h"

/* RDMAC verbs' STag 0: no region of ours has it. */
enum { LOCAL_DMA_LKEY = 0 };

struct ib_pd *ib_alloc_pd(struct ib_device *device, unsigned flags)
{
    might_sleep();
    if (flags & IB_PD_UNSAFE_GLOBAL_RKEY)
        return ERR_PTR(-EOPNOTSUPP);
    struct kv_pd *pd = calloc(1, sizeof *pd);
    if (!pd)
        return ERR_PTR(-ENOMEM);
    pd->verb = ibv_alloc_pd(kv_device(device)->verbs);
    if (!pd->verb) {
        free(pd);
        return ERR_PTR(-errno);
    }
    pd->ib.device = device;
    pd->ib.flags = flags;
    pd->ib.local_dma_lkey = LOCAL_DMA_LKEY;
    pthread_mutex_init(&pd->lock, NULL);
    kv_count(KV_PD, 1);
    return &pd->ib;
}

void kv_pd_keep(struct kv_pd *pd, struct ibv_mr *mr)
{
    pthread_mutex_lock(&pd->lock);
    struct ibv_mr **more = realloc(pd->kept, (pd->keeps + 1) * sizeof *more);
    BUG_ON(!more);
    pd->kept = more;
    pd->kept[pd->keeps++] = mr;
    pthread_mutex_unlock(&pd->lock);
}

void kv_pd_use(struct ib_pd *pd, int by)
{
    atomic_add(by, &pd->usecnt);
}

void ib_dealloc_pd(struct ib_pd *ib)
{
    might_sleep();
    struct kv_pd *pd = kv_pd(ib);
    if (WARN_ON(atomic_read(&ib->usecnt) > 0))
        return;
    kv_dma_leave(pd);
    for (size_t i = 0; i < pd->keeps; i++)
        ibv_dereg_mr(pd->kept[i]);
    WARN_ON(ibv_dealloc_pd(pd->verb) != 0);
    free(pd->kept);
    free(pd);
    kv_count(KV_PD, -1);
}

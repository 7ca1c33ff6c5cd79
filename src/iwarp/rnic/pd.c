/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/region.h"

#include <errno.h>
#include <stdlib.h>

struct iw_pd *iw_pd_alloc(struct ibv_context *ctx)
{
    struct iw_pd *pd = calloc(1, sizeof(*pd));
    if (!pd) {
        errno = ENOMEM;
        return NULL;
    }
    pd->pub.context = ctx;
    lock_init(&pd->lock);
    list_init(&pd->qps);
    return pd;
}

int iw_pd_dealloc(struct iw_pd *pd)
{
    if (atomic_load(&pd->users))
        return EBUSY;
    lock_fini(&pd->lock);
    free(pd);
    return 0;
}

void iw_pd_add_qp(struct iw_pd *pd, struct list *link)
{
    atomic_fetch_add(&pd->users, 1);
    lock_get(&pd->lock);
    list_add_tail(&pd->qps, link);
    lock_put(&pd->lock);
}

void iw_pd_remove_qp(struct iw_pd *pd, struct list *link)
{
    lock_get(&pd->lock);
    list_del(link);
    lock_put(&pd->lock);
    atomic_fetch_sub(&pd->users, 1);
}

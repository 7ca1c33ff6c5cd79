/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/stats.h"
#include "rnic/td.h"

#include <errno.h>
#include <stdlib.h>

static struct lock_class locks = LOCK_CLASS(locks);

void iw_pd_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}

struct iw_pd *iw_pd_alloc(struct ibv_context *ctx)
{
    struct iw_pd *pd = calloc(1, sizeof(*pd));
    if (!pd) {
        errno = ENOMEM;
        return NULL;
    }
    pd->pub.context = ctx;
    pd->root = pd;
    lock_init_in(&pd->lock, &locks);
    list_init(&pd->qps);
    list_init(&pd->windows);
    iw_stats_gauge(STATS_pd, 1);
    return pd;
}

struct iw_pd *iw_pd_alloc_parent(struct iw_pd *root, struct iw_td *td)
{
    struct iw_pd *pd = iw_pd_alloc(root->pub.context);
    if (!pd)
        return NULL;
    pd->root = root;
    pd->td = td;
    atomic_fetch_add(&root->users, 1);
    if (td)
        atomic_fetch_add(&td->users, 1);
    return pd;
}

int iw_pd_dealloc(struct iw_pd *pd)
{
    if (atomic_load(&pd->users))
        return EBUSY;
    if (pd->root != pd)
        atomic_fetch_sub(&pd->root->users, 1);
    if (pd->td)
        atomic_fetch_sub(&pd->td->users, 1);
    lock_fini(&pd->lock);
    free(pd);
    iw_stats_gauge(STATS_pd, -1);
    return 0;
}

void iw_pd_add_qp(struct iw_pd *pd, struct iw_qp *qp, struct iw_pd_user *u)
{
    u->qp = qp;
    atomic_fetch_add(&pd->users, 1);
    lock_get(&pd->root->lock);
    list_add_tail(&pd->root->qps, &u->link);
    lock_put(&pd->root->lock);
}

void iw_pd_remove_qp(struct iw_pd *pd, struct iw_pd_user *u)
{
    lock_get(&pd->root->lock);
    list_del(&u->link);
    lock_put(&pd->root->lock);
    atomic_fetch_sub(&pd->users, 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/pd.h"

#include "advice/life.h"
#include "env/refuse.h"
#include "observe/stats.h"

#include <errno.h>
#include <stdlib.h>

static struct lock_class locks = LOCK_CLASS(locks, LOCK_PD);
static struct lock_class grants = LOCK_CLASS(grants, LOCK_GRANTS);

void iw_pd_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}

void iw_grants_fork(enum fork_step step)
{
    lock_class_fork(&grants, step);
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
    lock_init_in(&pd->grants, &grants);
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
    unsigned users = atomic_load(&pd->users);
    if (users)
        return iw_refuse("ibv_dealloc_pd", PD_USED, users);
    if (pd->root != pd)
        atomic_fetch_sub(&pd->root->users, 1);
    if (pd->td)
        atomic_fetch_sub(&pd->td->users, 1);
    lock_fini(&pd->grants);
    lock_fini(&pd->lock);
    iw_life_end(pd);
    iw_stats_gauge(STATS_pd, -1);
    return 0;
}

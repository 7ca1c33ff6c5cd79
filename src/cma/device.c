/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices that ids share, and their default PDs. */
#include "cma.h"

#include <stdlib.h>

/* The default PD of a device. It outlives its last user if something of the program's is in it. */
struct cma_default_pd {
    struct cma_default_pd *next;
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    unsigned users;
};

/* Innermost lock. */
static struct lock pd_lock = LOCK(LOCK_CMA_PD);
static struct cma_default_pd *default_pds; /* one for each device that was ever used */

void cma_device_fork(enum fork_step step)
{
    lock_fork(&pd_lock, step);
}

static struct cma_default_pd *find_locked(struct ibv_context *verbs)
{
    struct cma_default_pd *d = default_pds;
    while (d && d->verbs != verbs)
        d = d->next;
    if (d)
        return d;
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->verbs = verbs;
    d->next = default_pds;
    default_pds = d;
    return d;
}

/* NULL and errno if there is none to be had. */
static struct cma_default_pd *default_pd_get(struct ibv_context *verbs)
{
    lock_get(&pd_lock);
    struct cma_default_pd *d = find_locked(verbs);
    if (d && !d->pd)
        d->pd = ibv_alloc_pd(verbs);
    if (d && d->pd)
        d->users++;
    else
        d = NULL;
    lock_put(&pd_lock);
    return d;
}

static void default_pd_put(struct cma_default_pd *d)
{
    lock_get(&pd_lock);
    if (--d->users == 0 && ibv_dealloc_pd(d->pd) == 0)
        d->pd = NULL;
    lock_put(&pd_lock);
}

int cma_device_get(struct cma_id *id, const struct sockaddr *local, enum iw_cm_kind_of_device kind)
{
    if (id->pub.verbs)
        return 0;
    struct ibv_context *verbs = iw_cm_context_of(local, kind);
    if (!verbs)
        return -errno;
    id->default_pd = default_pd_get(verbs);
    if (!id->default_pd)
        return -errno;
    id->pub.verbs = verbs;
    id->pub.pd = id->default_pd->pd;
    id->pub.port_num = 1;
    id->ib.on = verbs->device->transport_type == IBV_TRANSPORT_IB;
    struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
    ib->pkey = htobe16(0xffff);
    ibv_query_gid(verbs, 1, 0, &ib->sgid);
    return 0;
}

void cma_device_put(struct cma_id *id)
{
    if (id->default_pd)
        default_pd_put(id->default_pd);
    id->default_pd = NULL;
    id->pub.verbs = NULL;
    id->pub.pd = NULL;
    id->pub.port_num = 0;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_context *const *all = iw_cm_contexts();
    struct ibv_context **list = NULL;
    int n = 0;
    if (all && iw_cm_chaos(IW_FAULT_GET_DEVICES, NULL)) {
        errno = ENOMEM;
        all = NULL;
    }
    while (all && all[n])
        n++;
    if (all)
        list = calloc((size_t)n + 1, sizeof *list);
    for (int i = 0; list && i < n; i++)
        list[i] = all[i];
    if (num_devices)
        *num_devices = list ? n : 0;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The device that ids share, and its default PD. */
#include "cma.h"

#include <stdlib.h>

/* Innermost lock. The PD outlives its last user if something of the program's is still in it. */
static struct lock pd_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct ibv_pd *default_pd;
static unsigned default_pd_users;

void cma_device_fork(enum fork_step step)
{
    lock_fork(&pd_lock, step);
}

static struct ibv_pd *default_pd_get(struct ibv_context *verbs)
{
    lock_get(&pd_lock);
    if (!default_pd)
        default_pd = ibv_alloc_pd(verbs);
    if (default_pd)
        default_pd_users++;
    struct ibv_pd *pd = default_pd;
    lock_put(&pd_lock);
    return pd;
}

static void default_pd_put(void)
{
    lock_get(&pd_lock);
    if (--default_pd_users == 0 && ibv_dealloc_pd(default_pd) == 0)
        default_pd = NULL;
    lock_put(&pd_lock);
}

int cma_device_get(struct cma_id *id)
{
    if (id->pub.verbs)
        return 0;
    struct ibv_context *verbs = iw_cm_context();
    if (!verbs)
        return -errno;
    struct ibv_pd *pd = default_pd_get(verbs);
    if (!pd)
        return -errno;
    id->has_pd = true;
    id->pub.verbs = verbs;
    id->pub.pd = pd;
    id->pub.port_num = 1;
    struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
    ib->pkey = htobe16(0xffff);
    ibv_query_gid(verbs, 1, 0, &ib->sgid);
    return 0;
}

void cma_device_put(struct cma_id *id)
{
    if (id->has_pd)
        default_pd_put();
    id->has_pd = false;
    id->pub.verbs = NULL;
    id->pub.pd = NULL;
    id->pub.port_num = 0;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_context *verbs = iw_cm_context();
    struct ibv_context **list = NULL;
    if (verbs) {
        list = calloc(2, sizeof *list);
        if (list)
            list[0] = verbs;
        else
            errno = ENOMEM;
    }
    if (num_devices)
        *num_devices = list ? 1 : 0;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups that ids are in: a queue pair hears one when the program takes the event. */
#include "cma.h"

#include <string.h>

struct cma_group *cma_group_find_locked(struct cma_id *id, uint32_t join, const union ibv_gid *gid)
{
    assert_held(&id->lock);
    list_for_each (l, &id->groups) {
        struct cma_group *g = container_of(l, struct cma_group, link);
        if (gid ? memcmp(&g->gid, gid, sizeof *gid) == 0 : g->join == join)
            return g;
    }
    return NULL;
}

void cma_joined(struct cma_id *id, struct cma_event *event)
{
    lock_get(&id->lock);
    struct cma_group *group = cma_group_find_locked(id, event->join, NULL);
    int r = 0;
    if (group && !group->send_only && id->pub.qp)
        r = ibv_attach_mcast(id->pub.qp, &group->gid, 0);
    if (group)
        group->attached = !group->send_only && id->pub.qp && r == 0;
    lock_put(&id->lock);
    if (r) {
        event->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        event->pub.status = -r;
    }
}

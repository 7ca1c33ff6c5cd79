/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining multicast groups, and leaving them. There is nobody to be asked: the event of a join is
 * there at once.
 */
#include "cma.h"

#include <stdlib.h>
#include <string.h>

#define JOIN    "rdma_join_multicast"
#define NOBODY  0xffffff /* the number of no queue pair in particular */
#define IB_ADDR 8        /* where struct sockaddr_ib, which is AF_IB, has its GID */

/* As on RoCE: IPv4 is IPv4-mapped. */
static bool group_of(const struct sockaddr *addr, union ibv_gid *gid)
{
    const uint8_t *raw = gid->raw;
    if (addr && addr->sa_family == AF_IB)
        memcpy(gid, (const char *)addr + IB_ADDR, sizeof *gid);
    else if (addr && addr_len(addr))
        *gid = cma_gid_of(addr);
    else
        return false;
    return raw[0] == 0xff ||
           (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid) && raw[12] >> 4 == 0xe);
}

static int join_locked(struct cma_id *id, const union ibv_gid *gid, bool send_only, void *context)
{
    if (!cma_datagrams(id))
        return -iw_refuse(JOIN, VALUE, "an id for connections");
    if (!id->pub.verbs)
        return -iw_refuse(JOIN, NO_DEVICE);
    if (!iw_cm_in_the_clear(JOIN))
        return -EACCES;
    struct cma_group *group = malloc(sizeof *group);
    struct cma_event *event = cma_event_create(id, RDMA_CM_EVENT_MULTICAST_JOIN);
    if (!group || !event) {
        free(group);
        free(event);
        return -ENOMEM;
    }
    *group = (struct cma_group){.gid = *gid, .join = ++id->joins, .send_only = send_only};
    list_add_tail(&id->groups, &group->link);
    event->join = group->join;
    event->pub.param.ud =
        (struct rdma_ud_param){.private_data = context, .qp_num = NOBODY, .qkey = cma_qkey(id)};
    cma_address_vector(id, gid, &event->pub.param.ud.ah_attr);
    cma_event_queue(event);
    return 0;
}

static int join(struct rdma_cm_id *pub, const struct sockaddr *addr, bool send_only, void *context)
{
    union ibv_gid gid;
    if (!group_of(addr, &gid))
        return cma_fail(iw_refuse(JOIN, VALUE, "an address that is not of a group"));
    struct cma_id *id = cma_enter(pub, CMA_CALL_JOIN);
    return id ? cma_complete(id, join_locked(id, &gid, send_only, context)) : cma_refused(pub);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    return id ? join(id, addr, false, context) : cma_no_handle(__func__);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                           void *context)
{
    const uint32_t known = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    if (!id || !attr)
        return cma_no_handle(__func__);
    if (attr->comp_mask & ~known)
        return cma_fail(iw_refuse(__func__, ATTRIBUTE, "comp_mask and join_flags"));
    bool flags = attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    if (flags && attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return cma_fail(iw_refuse(__func__, ATTRIBUTE, "comp_mask and join_flags"));
    if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS))
        return cma_fail(iw_refuse(__func__, VALUE, "no address in comp_mask"));
    bool send_only = flags && attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
    return join(id, attr->addr, send_only, context);
}

/* No event about a join that is over is taken any more. */
static void discard(struct cma_id *id, uint32_t join)
{
    struct list gone = {&gone, &gone};
    lock_get(&cma_events);
    struct cma_channel *channel = id->pub.channel ? cma_channel(id->pub.channel) : NULL;
    if (channel)
        list_for_each_safe (it, &channel->events) {
            struct cma_event *event = container_of(it, struct cma_event, link);
            if (event->owner == id && event->join == join) {
                cma_event_unlink_locked(channel, event);
                list_add_tail(&gone, &event->link);
            }
        }
    lock_put(&cma_events);
    cma_events_discard(&gone);
}

static int leave_locked(struct cma_id *id, const union ibv_gid *gid)
{
    struct cma_group *group = cma_group_find_locked(id, 0, gid);
    if (!group)
        return -EADDRNOTAVAIL;
    list_del(&group->link);
    discard(id, group->join);
    int r = 0;
    if (group->attached && id->pub.qp)
        r = ibv_detach_mcast(id->pub.qp, &group->gid, 0);
    free(group);
    return -r;
}

int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
    union ibv_gid gid;
    if (!pub)
        return cma_no_handle(__func__);
    if (!addr)
        return cma_fail(iw_refuse(__func__, ARGUMENT));
    if (!group_of(addr, &gid))
        return cma_fail(EADDRNOTAVAIL);
    struct cma_id *id = cma_enter(pub, CMA_CALL_LEAVE);
    return id ? cma_leave(id, leave_locked(id, &gid)) : cma_refused(pub);
}

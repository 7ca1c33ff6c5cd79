/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles, and the groups that QPs of datagrams join. */
#include "ud/ah.h"

#include "advice/life.h"
#include "device/context.h"
#include "faults/like.h"
#include "mem/pd.h"
#include "observe/record.h"
#include "ud/access.h"
#include "ud/group.h"
#include "ud/header.h"
#include "verbs/export.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct iw_route route;
    if (!pd || !attr)
        return null_errno(iw_refuse("ibv_create_ah", ARGUMENT));
    int r = iw_ud_route(iw_device(pd->context->device), attr, &route, "ibv_create_ah");
    struct iw_ah *ah = r ? NULL : calloc(1, sizeof(*ah));
    if (!ah)
        return null_errno(r ? r : ENOMEM);
    ah->pub.context = pd->context;
    ah->pub.pd = pd;
    ah->route = route;
    atomic_fetch_add(&iw_pd(pd)->users, 1);
    iw_life_begin(&ah->pub, "address handle");
    return &ah->pub;
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct iw_recorded r = iw_record(CREATE_AH, 0, (uintptr_t)pd);
    struct ibv_ah *ah = create_ah(pd, attr);
    iw_record_made(r, ah, (uintptr_t)ah, errno);
    return ah;
}

/** @return the index of the first GID that is an IPv4 address, or is none, as @p like, or -1 */
static int find_kind(struct ibv_context *context, const struct in6_addr *like)
{
    const struct iw_device *dev = iw_device(context->device);
    struct ibv_gid_entry e;
    for (unsigned i = 0; i <= UINT8_MAX && iw_device_gid(dev, 1, i, &e) == 0; i++)
        if (e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)e.gid.raw) ==
                !IN6_IS_ADDR_V4MAPPED(like))
            return (int)i;
    return -1;
}

/** @return the index of @p gid in the table of port 1, or -1 */
static int find_gid(struct ibv_context *context, const union ibv_gid *gid)
{
    const struct iw_device *dev = iw_device(context->device);
    struct ibv_gid_entry e;
    for (unsigned i = 0; i <= UINT8_MAX && iw_device_gid(dev, 1, i, &e) == 0; i++)
        if (memcmp(&e.gid, gid, sizeof(*gid)) == 0)
            return (int)i;
    return -1;
}

/** What the header in front of a datagram says of its way, the other way round. */
static struct ibv_global_route way_back(const struct ibv_grh *grh, uint8_t sgid_index)
{
    struct in6_addr from, to;
    uint32_t word = be32toh(grh->version_tclass_flow);
    bool ipv6 = !iw_ud_grh_is_ipv4((const uint8_t *)grh);
    const uint8_t *ipv4 = (const uint8_t *)grh + IW_UD_IPV4_AT;
    struct ibv_global_route way = {
        .flow_label = ipv6 ? word & 0xfffff : 0,
        .sgid_index = sgid_index,
        .hop_limit = ipv6 ? grh->hop_limit : ipv4[8],
        .traffic_class = ipv6 ? (uint8_t)(word >> 20) : ipv4[1],
    };
    iw_ud_grh_addresses((const uint8_t *)grh, &from, &to);
    memcpy(&way.dgid, &from, sizeof(way.dgid));
    return way;
}

static bool is_loopback(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
}

/**
 * @return the index of the GID that it came to, or, of a group or a loopback address, which may be
 * none, of one of the sender's kind; or -1
 */
static int find_own_gid(struct ibv_context *context, const struct ibv_grh *grh)
{
    struct in6_addr from, to;
    union ibv_gid gid;
    iw_ud_grh_addresses((const uint8_t *)grh, &from, &to);
    memcpy(&gid, &to, sizeof(gid));
    int i = find_gid(context, &gid);
    bool none = i < 0 && (is_loopback(&to) || iw_ud_group_address(&gid, &to));
    return none ? find_kind(context, &from) : i;
}

/** The way back to whom the completion is from: where it came to is where the answer leaves. */
VERBS_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                                     struct ibv_wc *wc, struct ibv_grh *grh,
                                     struct ibv_ah_attr *ah_attr)
{
    if (!context || port_num != 1 || !wc || !ah_attr)
        return minus_errno(iw_refuse(__func__, VALUE, "no context, wc or ah_attr, or " ONE_PORT));
    bool global = wc->wc_flags & IBV_WC_GRH;
    int sgid_index = !global ? 0 : grh ? find_own_gid(context, grh) : -1;
    if (sgid_index < 0)
        return minus_errno(iw_refuse(__func__, VALUE, "a GID that is none of the device's"));
    *ah_attr = (struct ibv_ah_attr){
        .dlid = wc->slid,
        .sl = wc->sl,
        .src_path_bits = wc->dlid_path_bits,
        .is_global = global,
        .port_num = port_num,
    };
    if (global)
        ah_attr->grh = way_back(grh, (uint8_t)sgid_index);
    return 0;
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                                  struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;
    if (!pd)
        return null_errno(iw_refuse(__func__, ARGUMENT));
    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}

static int destroy_ah(struct ibv_ah *ah)
{
    if (!ah)
        return iw_refuse("ibv_destroy_ah", ARGUMENT);
    int r = iw_life_over(ah, "ibv_destroy_ah");
    if (r)
        return r;
    atomic_fetch_sub(&iw_pd(ah->pd)->users, 1);
    iw_life_end(container_of(ah, struct iw_ah, pub));
    return 0;
}

VERBS_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    struct iw_recorded r = iw_record(DESTROY_AH, (uintptr_t)ah);
    return iw_record_end(r, destroy_ah(ah));
}

VERBS_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct in6_addr ip;
    (void)lid;
    if (!qp || !gid)
        return iw_refuse(__func__, ARGUMENT);
    if (!iw_qp(qp)->datagrams || !iw_ud_group_address(gid, &ip))
        return iw_refuse(__func__, GROUP);
    if (!iw_ud_access_to(__func__, &ip, false))
        return EACCES;
    int r = iw_like_mcast();
    return r ? r : iw_ud_join(iw_ud(iw_qp(qp)), gid);
}

VERBS_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    if (!qp || !gid)
        return iw_refuse(__func__, ARGUMENT);
    if (!iw_qp(qp)->datagrams || iw_ud_leave(iw_ud(iw_qp(qp)), gid))
        return iw_refuse(__func__, NO_GROUP);
    return 0;
}

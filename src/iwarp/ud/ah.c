/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/ah.h"

#include "env/refuse.h"
#include "qpn/address.h"
#include "ud/access.h"
#include "ud/group.h"

#include <errno.h>
#include <string.h>

/** @return all zero for an address that the kernel chooses */
static struct in6_addr to_in6(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
    struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (a->ss_family == AF_INET6)
        return six->sin6_addr;
    memcpy(ip.s6_addr + 12, &four->sin_addr, 4);
    return four->sin_addr.s_addr ? ip : (struct in6_addr){0};
}

static int to_group(const struct iw_device *dev, const struct ibv_ah_attr *attr, struct iw_route *r,
                    const char *call)
{
    struct iw_path own;
    struct ibv_gid_entry e;
    struct ibv_ah_attr self = *attr;
    if (iw_device_gid(dev, 1, attr->grh.sgid_index, &e))
        return iw_refuse(call, GID_INDEX, attr->grh.sgid_index);
    r->group = true;
    r->ifindex = e.ndev_ifindex;
    self.grh.dgid = e.gid;
    if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && !iw_path_find(dev, &self, &own))
        r->from = to_in6(&own.own);
    if (IN6_IS_ADDR_V4MAPPED(&r->from) != IN6_IS_ADDR_V4MAPPED(&r->to))
        r->from = (struct in6_addr){0};
    return 0;
}

static int to_address(const struct iw_device *dev, const struct ibv_ah_attr *attr,
                      struct iw_route *r, const char *call)
{
    struct iw_path path;
    int error = iw_path_find(dev, attr, &path);
    if (error == EINVAL)
        return iw_refuse(call, GID_INDEX, attr->grh.sgid_index);
    if (error)
        return iw_refuse(call, GID_KIND);
    r->to = to_in6(&path.peer);
    r->from = to_in6(&path.own);
    r->here = iw_path_ends_here(dev, &path);
    if (path.peer.ss_family == AF_INET6)
        r->ifindex = ((const struct sockaddr_in6 *)&path.peer)->sin6_scope_id;
    if (r->here && IN6_IS_ADDR_UNSPECIFIED(&r->from))
        r->from = r->to;
    return 0;
}

int iw_ud_route(const struct iw_device *dev, const struct ibv_ah_attr *attr, struct iw_route *route,
                const char *call)
{
    *route = (struct iw_route){
        .hop_limit = attr->grh.hop_limit,
        .traffic_class = attr->grh.traffic_class,
        .flow_label = attr->grh.flow_label & 0xfffff,
    };
    if (attr->port_num != 1)
        return iw_refuse(call, VALUE, "a port_num other than 1");
    if (!attr->is_global)
        return iw_refuse(call, NO_GID);
    bool group = iw_ud_group_address(&attr->grh.dgid, &route->to);
    int r = group ? to_group(dev, attr, route, call) : to_address(dev, attr, route, call);
    if (r)
        return r;
    return iw_ud_access_to(call, &route->to, route->here) ? 0 : EACCES;
}

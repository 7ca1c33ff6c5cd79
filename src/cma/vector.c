/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of ids as GIDs, and as the vectors that queue pairs and address handles want. */
#include "cma.h"

#include <string.h>

#define HOP_LIMIT 64 /* what the kernel's CM takes for RoCE */

union ibv_gid cma_gid_of(const struct sockaddr *addr)
{
    union ibv_gid gid;
    addr_ip6(addr, gid.raw);
    return gid;
}

static bool is_ipv4(const union ibv_gid *gid)
{
    return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

/* A loopback address is none: then the first of the same family, or 0. */
static uint8_t gid_index(const struct cma_id *id, const union ibv_gid *own)
{
    struct ibv_port_attr port = {0};
    union ibv_gid gid;
    int like = 0;
    ibv_query_port(id->pub.verbs, id->pub.port_num, &port);
    for (int i = 0; i < port.gid_tbl_len && i <= UINT8_MAX; i++) {
        if (ibv_query_gid(id->pub.verbs, id->pub.port_num, i, &gid))
            continue;
        if (memcmp(&gid, own, sizeof gid) == 0)
            return (uint8_t)i;
        if (!like && i && is_ipv4(&gid) == is_ipv4(own))
            like = i;
    }
    ibv_query_gid(id->pub.verbs, id->pub.port_num, 0, &gid);
    return is_ipv4(&gid) == is_ipv4(own) ? 0 : (uint8_t)like;
}

void cma_address_vector(const struct cma_id *id, const union ibv_gid *to, struct ibv_ah_attr *ah)
{
    union ibv_gid own = cma_gid_of(&id->pub.route.addr.src_addr);
    *ah = (struct ibv_ah_attr){.is_global = 1,
                               .port_num = id->pub.port_num,
                               .grh.dgid = *to,
                               .grh.sgid_index = gid_index(id, &own),
                               .grh.hop_limit = HOP_LIMIT,
                               .grh.traffic_class = id->tos};
}

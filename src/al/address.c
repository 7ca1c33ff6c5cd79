/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/address.h"

#include "common/addr.h"

#include <netinet/in.h>
#include <string.h>

/* What stands above the port of TCP in the numbers that InfiniBand has for services of IP. */
#define IP_SERVICE UINT64_C(0x106)

uint16_t al_port_of(ib_net64_t svc_id)
{
    uint64_t id = CL_NTOH64(svc_id);
    return id >> 16 == 0 || id >> 16 == IP_SERVICE ? (uint16_t)id : 0;
}

bool al_address_of(const ib_gid_t *gid, uint16_t port, struct sockaddr_storage *addr)
{
    struct in6_addr in6;
    memcpy(&in6, gid, sizeof in6);
    memset(addr, 0, sizeof *addr);
    if (IN6_IS_ADDR_V4MAPPED(&in6)) {
        struct sockaddr_in *sin = (struct sockaddr_in *)addr;
        sin->sin_family = AF_INET;
        sin->sin_port = htons(port);
        memcpy(&sin->sin_addr, &gid->raw[12], sizeof sin->sin_addr);
    } else {
        *(struct sockaddr_in6 *)addr = (struct sockaddr_in6){
            .sin6_family = AF_INET6,
            .sin6_port = htons(port),
            .sin6_addr = in6,
        };
    }
    /* The first GID of an iWARP adapter is its MAC, then zeros. */
    return gid->unicast.interface_id != 0 && !IN6_IS_ADDR_UNSPECIFIED(&in6);
}

void al_gid_of(const struct sockaddr *addr, ib_gid_t *gid)
{
    addr_ip6(addr, gid->raw);
}

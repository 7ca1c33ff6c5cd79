/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses in both families. */
#ifndef ANYWARP_ADDR_H
#define ANYWARP_ADDR_H

#include <netinet/in.h>

/** Bytes of the address. @return 0 if it is neither IPv4 nor IPv6 */
static inline socklen_t addr_len(const struct sockaddr *addr)
{
    switch (addr->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_SOCKADDR_H
#define ANYWARP_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

/** Size of an IPv4 or IPv6 address, 0 for any other family. */
static inline socklen_t sockaddr_len(const struct sockaddr *addr)
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

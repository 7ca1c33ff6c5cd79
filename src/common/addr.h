/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses in both families. */
#ifndef ANYWARP_ADDR_H
#define ANYWARP_ADDR_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#define ADDR_TEXT_MAX (INET6_ADDRSTRLEN + 8)

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

/** "192.0.2.1:4791", "[2001:db8::1]:4791" */
static inline void addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *four = (const struct sockaddr_in *)addr;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;
    int is_six = addr->ss_family == AF_INET6;
    inet_ntop(addr->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, ip,
              sizeof(ip));
    snprintf(text, ADDR_TEXT_MAX, is_six ? "[%s]:%u" : "%s:%u", ip, ntohs(four->sin_port));
}

#endif

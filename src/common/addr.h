/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses in both families. */
#ifndef ANYWARP_ADDR_H
#define ANYWARP_ADDR_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ADDR_TEXT_MAX (INET6_ADDRSTRLEN + 8)

/* The same bytes are a sockaddr, a sockaddr_storage and the struct of a family: all is copied. */

static inline sa_family_t addr_family(const struct sockaddr *addr)
{
    sa_family_t family;
    memcpy(&family, (const char *)addr + offsetof(struct sockaddr, sa_family), sizeof(family));
    return family;
}

/** Bytes of the address. @return 0 if it is neither IPv4 nor IPv6 */
static inline socklen_t addr_len(const struct sockaddr *addr)
{
    switch (addr_family(addr)) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

/**
 * Whether IPv4 alone is to be tried where a socket for both versions of IP failed with @p error:
 * there may be no IPv6, or none for this process. A port that is taken is no reason.
 */
static inline bool addr_try_ipv4(int error)
{
    return error < 0 && error != -EADDRINUSE;
}

#define ADDR_PORT offsetof(struct sockaddr_in, sin_port)
_Static_assert(ADDR_PORT == offsetof(struct sockaddr_in6, sin6_port), "one place in both families");

/** In the order of the host. @return 0 if the address is neither IPv4 nor IPv6 */
static inline uint16_t addr_port(const struct sockaddr *addr)
{
    uint16_t port = 0;
    if (addr_len(addr))
        memcpy(&port, (const char *)addr + ADDR_PORT, sizeof(port));
    return ntohs(port);
}

/** Of an IPv4 or IPv6 address. @param port  in the order of the host */
static inline void addr_set_port(struct sockaddr *addr, uint16_t port)
{
    port = htons(port);
    memcpy((char *)addr + ADDR_PORT, &port, sizeof(port));
}

/** The address without its port. @param ip  [out] 4 or 16 bytes; untouched if it is neither */
static inline void addr_ip(const struct sockaddr *addr, uint8_t ip[16])
{
    if (addr_family(addr) == AF_INET)
        memcpy(ip, (const char *)addr + offsetof(struct sockaddr_in, sin_addr), 4);
    else if (addr_family(addr) == AF_INET6)
        memcpy(ip, (const char *)addr + offsetof(struct sockaddr_in6, sin6_addr), 16);
}

/** The same in IPv6, as GIDs have it: IPv4 is IPv4-mapped. @param ip  [out] zeros if it is neither
 */
static inline void addr_ip6(const struct sockaddr *addr, uint8_t ip[16])
{
    memset(ip, 0, 16);
    addr_ip(addr, ip);
    if (addr_family(addr) != AF_INET)
        return;
    memcpy(ip + 12, ip, 4);
    memset(ip, 0, 10);
    memset(ip + 10, 0xff, 2);
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

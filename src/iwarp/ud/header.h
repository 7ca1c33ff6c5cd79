/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands in front of the payload of a datagram between two anywarps, and the global route
 * header that receivers find in front of it. Pure functions over bytes.
 *
 *      0                   1                   2                   3
 *     |        'A' 'W' 'D'                            |    version    |
 *     |     flags     | traffic class |   hop limit   |       0       |
 *     |                     number of the receiving QP                |
 *     |                     number of the sending QP                  |
 *     |                     Q_Key                                     |
 *     |                     immediate, as the program gave it         |
 *     |                     flow label                                |
 *
 * All in network order. On the way to a process of the same host the global route header follows,
 * as no IP header tells who sent it; over UDP the receiver makes it from that.
 */
#ifndef ANYWARP_UD_HEADER_H
#define ANYWARP_UD_HEADER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_UD_HEADER    28
#define IW_UD_GRH       40
#define IW_UD_IPV4_AT   20        /* where in it an IPv4 header begins */
#define IW_UD_MULTICAST 0xffffffu /* number of the receiving QP of what goes to a group */

struct iw_ud_header {
    bool has_imm, solicited;
    uint8_t traffic_class, hop_limit;
    uint32_t to, from; /* QP numbers */
    uint32_t qkey;
    uint32_t imm; /* as it stands in memory */
    uint32_t flow_label;
};

void iw_ud_header_encode(uint8_t bytes[IW_UD_HEADER], const struct iw_ud_header *h);

/** @return false: it is too short, of another version, or a field has a value that none can have */
bool iw_ud_header_decode(const uint8_t *bytes, size_t len, struct iw_ud_header *h);

/**
 * The first 40 bytes of a receive, as RoCE v2 has them: between IPv4 addresses, here IPv4-mapped,
 * an IPv4 header is the last 20 of them; else it is an IPv6 header.
 * @param payload  bytes behind it
 */
void iw_ud_grh(uint8_t grh[IW_UD_GRH], const struct iw_ud_header *h, const struct in6_addr *from,
               const struct in6_addr *to, size_t payload);

/** Whether such a header is that of IPv4. */
static inline bool iw_ud_grh_is_ipv4(const uint8_t grh[IW_UD_GRH])
{
    return grh[0] >> 4 != 6 && grh[IW_UD_IPV4_AT] == 0x45;
}

/** The addresses of such a header; an IPv4 address as IPv4-mapped. */
void iw_ud_grh_addresses(const uint8_t grh[IW_UD_GRH], struct in6_addr *from, struct in6_addr *to);

#endif

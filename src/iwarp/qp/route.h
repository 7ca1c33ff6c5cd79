/* SPDX-License-Identifier: BSD-2-Clause */
/* Where datagrams go: address handles, and what a work request keeps of one. */
#ifndef ANYWARP_QP_ROUTE_H
#define ANYWARP_QP_ROUTE_H

#include "common/list.h"

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/** IPv4 addresses are IPv4-mapped. */
struct iw_route {
    struct in6_addr to, from; /* from: all zero where the kernel chooses */
    uint32_t ifindex;         /* of a link-local or multicast destination; 0: the kernel chooses */
    bool here;                /* to a process of this host */
    bool group;               /* to a multicast group */
    uint8_t hop_limit, traffic_class;
    uint32_t flow_label;
};

struct iw_ah {
    struct ibv_ah pub;
    struct iw_route route; /* constant */
};

static inline const struct iw_ah *iw_ah(const struct ibv_ah *ah)
{
    return container_of(ah, const struct iw_ah, pub);
}

#endif

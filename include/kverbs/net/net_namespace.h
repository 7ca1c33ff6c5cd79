/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_NET_NET_NAMESPACE_H
#define KVERBS_NET_NET_NAMESPACE_H

/* There is one: the program's. */
struct net {
    int unused;
};

extern struct net init_net;

#endif

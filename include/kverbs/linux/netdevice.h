/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_NETDEVICE_H
#define KVERBS_LINUX_NETDEVICE_H

#include <linux/kernel.h>
#include <net/net_namespace.h>

/* An interface's name and number, as it had them when it was first asked for; it stays. */
struct net_device {
    char name[16];
    int ifindex;
};

struct net_device *dev_get_by_name(struct net *net, const char *name);

#define __dev_get_by_name(net, name) dev_get_by_name(net, name)

static inline void dev_put(struct net_device *d)
{
    (void)d;
}

#endif

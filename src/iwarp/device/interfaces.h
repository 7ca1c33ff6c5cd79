/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of the host's interfaces and addresses, as of getifaddrs(3). That asks by netlink, which
 * a sandbox may refuse: then by ioctl() and /proc, in the same order.
 */
#ifndef ANYWARP_DEVICE_INTERFACES_H
#define ANYWARP_DEVICE_INTERFACES_H

#include <ifaddrs.h>

#define IW_IFF_CARRIER 0x10000 /* IFF_LOWER_UP, of a header that does not go with <net/if.h> */

/**
 * Keeps errno. What nobody can tell is said in the log, once.
 * @param list  [out] as of getifaddrs(), without data and without netmasks
 * @return 0, or a negative errno and an empty list
 */
int iw_interfaces(struct ifaddrs **list);
void iw_interfaces_free(struct ifaddrs *list);

#endif

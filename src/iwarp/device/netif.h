/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host's network interfaces say: MACs, addresses, state. Everywhere an empty name means
 * all interfaces, loopback included. Asked afresh at every call; no locks.
 */
#ifndef ANYWARP_DEVICE_NETIF_H
#define ANYWARP_DEVICE_NETIF_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * MAC of the interface, or of the first one by index that has one; those that are up come first.
 * @return false if there is none
 */
bool iw_netif_mac(const char *interface, uint8_t mac[6], unsigned *ifindex);

/**
 * Addresses as GIDs, IPv4 as IPv4-mapped IPv6, those of loopback last. Where there is no room for
 * all, the first of each interface and version of IP are there before others, those of loopback
 * before them.
 * @param gids  [out] @p max of them: gid and ndev_ifindex are set, the rest is 0
 * @return how many there are
 */
unsigned iw_netif_gids(const char *interface, struct ibv_gid_entry *gids, unsigned max);

/** Whether the interface has the address: the GID, and ndev_ifindex unless that is 0. */
bool iw_netif_has(const char *interface, const struct ibv_gid_entry *address);

/**
 * The one address that stands for the interface: IPv4 rather than IPv6, global rather than
 * link-local. With an empty name, of the interface that the default route leaves by, else of one
 * that is up, else of loopback.
 * @param gid  [out] gid and ndev_ifindex are set, the rest is 0
 * @return false if there is none
 */
bool iw_netif_address(const char *interface, struct ibv_gid_entry *gid);

/** A local address of the host, and where it is. */
struct iw_cm_local {
    union ibv_gid gid; /* IPv4 as IPv4-mapped IPv6 */
    unsigned ifindex;
    uint8_t mac[6]; /* of the interface; zeros if it has none */
};

/**
 * All addresses with the interface each is on.
 * @param list  [out] the caller's to free()
 * @return how many, or a negative errno
 */
int iw_netif_locals(struct iw_cm_local **list);

/** Whether there is such an interface, up or not. */
bool iw_netif_exists(const char *interface);

/** Whether the interface, or any, is up and running, with carrier; also if the kernel does not
 * tell. */
bool iw_netif_is_up(const char *interface);

/** MTU of the interface, or the largest of all; 0 if nobody knows. */
unsigned iw_netif_mtu(const char *interface);

/** Mb/s of the interface, or of the fastest of all; 0 if nobody knows, as of loopback. */
unsigned iw_netif_mbps(const char *interface);

#endif

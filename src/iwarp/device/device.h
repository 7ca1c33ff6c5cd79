/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices: the list is built once. A device has iWARP or RoCE manners; both are the same
 * software, and all of them reach each other.
 */
#ifndef ANYWARP_DEVICE_DEVICE_H
#define ANYWARP_DEVICE_DEVICE_H

#include "common/list.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * A device; it lives as long as the process. Behind struct ibv_device lie zero bytes that provider
 * libraries linked into a program look at: they compare the word there with their own address
 * (mlx5dv_is_supported() and others).
 */
struct iw_device {
    struct ibv_device pub;
    char provider_words[128]; /* stays zero */
    int index;
    bool roce;            /* else iWARP */
    char interface[32];   /* empty: all of the host; RoCE: that of the default route */
    uint8_t mac[6];       /* GUID, and GID 0 with iWARP */
    unsigned mac_ifindex; /* of the interface that has it, 0 if it is made up */
};

static inline struct iw_device *iw_device(struct ibv_device *d)
{
    return container_of(d, struct iw_device, pub);
}

/**
 * Node GUID, network order: EUI-64 of the first non-loopback MAC, or of a made-up one. librdmacm
 * finds devices by it, so one of the other kind has another; the system image's is the same.
 */
__be64 iw_device_guid(const struct iw_device *dev);

void iw_device_query(const struct iw_device *dev, struct ibv_device_attr *attr);

/** ACTIVE while an interface that the device stands for is up and running, else DOWN. */
enum ibv_port_state iw_device_port_state(const struct iw_device *dev);

/** @return 0 or EINVAL for a port that is not 1 */
int iw_device_query_port(const struct iw_device *dev, uint8_t port, struct ibv_port_attr *attr);

/** Of its interface or the fastest of all, in 100 Mb/s; never 0. */
uint64_t iw_device_port_speed(const struct iw_device *dev);

/** What GID 0 is with iWARP, which is no address: the MAC in six bytes and zeros. */
union ibv_gid iw_device_mac_gid(const struct iw_device *dev);

/**
 * GID @p index. iWARP: 0 is iw_device_mac_gid(), further ones are the addresses of the device's
 * interfaces, IPv4 as IPv4-mapped IPv6, of more than 255 those that iw_netif_gids() takes. RoCE: 0
 * is the address of its interface, 1 the same in the form fe80::5efe:a.b.c.d, if that is IPv4. All
 * addresses are of type RoCE v2.
 * @return 0, EINVAL (bad port), or ENODATA (no such entry)
 */
int iw_device_gid(const struct iw_device *dev, uint8_t port, unsigned index,
                  struct ibv_gid_entry *entry);

/** Number of GIDs now. */
unsigned iw_device_gids(const struct iw_device *dev);

/**
 * Whether an interface of the device has the address: the GID, and ndev_ifindex unless that is 0. A
 * device that stands for all interfaces has every address.
 */
bool iw_device_has(const struct iw_device *dev, const struct ibv_gid_entry *address);

/**
 * NULL-terminated array of the devices, empty if IBV_CONFIG_DIR disables the driver.
 * @return NULL and errno ENOMEM
 */
struct ibv_device **iw_device_list(int *num);
void iw_device_list_free(struct ibv_device **list);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, and what the devices say of themselves. */
#include "device/device.h"

#include "device/netif.h"
#include "env/conf.h"
#include "env/driver.h"
#include "env/limits.h"
#include "env/log.h"
#include "faults/like.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define MAX_DEVICES   16
#define MAX_GIDS      256
#define LINK_UP       5 /* phys_state */
#define LINK_DISABLED 3
#define UNKNOWN_SPEED 25 /* 2.5 Gb/s: the width and speed that ibv_query_port() tells then */

/* No vendor's: an OUI with the bit for local use, then "aw". Programs take 0 for unknown. */
#define VENDOR_ID 0x026177

/*
 * MEM_MGT_EXTENSIONS: Local Invalidate and Send with Invalidate; the third of them, fast
 * registration, is a work request of kernels only.
 */
#define CAPS                                                                                       \
    (IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |     \
     IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B)

static struct {
    pthread_once_t once;
    int count;
    struct iw_device device[MAX_DEVICES];
} table = {.once = PTHREAD_ONCE_INIT};

/* ---- the list ---- */

static uint64_t hash_more(uint64_t hash, const char *s)
{
    for (; *s; s++)
        hash = (hash ^ (uint8_t)*s) * 0x100000001b3; /* FNV-1a */
    return hash;
}

/** A locally administered MAC that stays the same on this host. */
static void make_up_mac(const char *interface, uint8_t mac[6])
{
    struct utsname host = {0};
    uname(&host);
    uint64_t hash = hash_more(hash_more(0xcbf29ce484222325, host.nodename), interface);
    for (int i = 0; i < 6; i++)
        mac[i] = (uint8_t)(hash >> (8 * i));
    mac[0] = (mac[0] & 0xfc) | 0x02;
}

/* The names have the shape that programs know: they take their last parts and numbers. */
static void add(const char *name, const char *interface)
{
    struct iw_device *dev = &table.device[table.count];
    struct ibv_device *pub = &dev->pub;
    dev->index = table.count++;
    pub->node_type = IBV_NODE_RNIC;
    pub->transport_type = IBV_TRANSPORT_IWARP;
    snprintf(pub->name, sizeof(pub->name), "%s", name);
    snprintf(pub->dev_name, sizeof(pub->dev_name), "uverbs%d", dev->index);
    snprintf(pub->dev_path, sizeof(pub->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
             dev->index);
    snprintf(pub->ibdev_path, sizeof(pub->ibdev_path), "/sys/class/infiniband/%s", name);
    snprintf(dev->interface, sizeof(dev->interface), "%s", interface);
    if (!iw_netif_mac(interface, dev->mac, &dev->mac_ifindex))
        make_up_mac(interface, dev->mac);
}

static bool name_ok(const char *s, size_t size)
{
    size_t len = strlen(s);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-@:", s[i]))
            return false;
    return len > 0 && len < size;
}

static bool name_taken(const char *name)
{
    for (int i = 0; i < table.count; i++)
        if (strcmp(table.device[i].pub.name, name) == 0)
            return true;
    return false;
}

/** "name=interface ...": entries that make no sense are reported and left out. */
static void add_configured(const char *list)
{
    char copy[sizeof(iw_conf()->devices)], *rest;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *name = strtok_r(copy, " \t,", &rest); name; name = strtok_r(NULL, " \t,", &rest)) {
        char *interface = strchr(name, '=');
        if (interface)
            *interface++ = '\0';
        if (!interface || !name_ok(name, sizeof(table.device->pub.name)) ||
            !name_ok(interface, sizeof(table.device->interface)) || name_taken(name) ||
            table.count == MAX_DEVICES)
            iw_log(IW_LOG_ASKED, "ANYWARP_DEVICES: entry %s ignored", name);
        else
            add(name, interface);
    }
}

static void build(void)
{
    add_configured(iw_conf()->devices);
    if (table.count == 0)
        add("anywarp0", "");
}

struct ibv_device **iw_device_list(int *num)
{
    pthread_once(&table.once, build);
    int n = iw_driver_enabled() ? table.count : 0;
    struct ibv_device **list = calloc((size_t)n + 1, sizeof(*list));
    if (!list)
        return NULL;
    for (int i = 0; i < n; i++)
        list[i] = &table.device[i].pub;
    *num = n;
    return list;
}

void iw_device_list_free(struct ibv_device **list)
{
    free(list);
}

/* ---- attributes ---- */

__be64 iw_device_guid(const struct iw_device *dev)
{
    const uint8_t *m = dev->mac;
    uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
    __be64 guid;
    memcpy(&guid, eui, sizeof(guid));
    return guid;
}

void iw_device_query(const struct iw_device *dev, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){
        .fw_ver = PACKAGE_VERSION,
        .node_guid = iw_device_guid(dev),
        .sys_image_guid = iw_device_guid(dev),
        .device_cap_flags = CAPS,
        .max_mr_size = UINT64_MAX,
        .page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE),
        .vendor_id = VENDOR_ID,
        .max_qp = IW_MAX_QP,
        .max_qp_wr = IW_MAX_QP_WR,
        .max_sge = IW_MAX_SGE,
        .max_sge_rd = IW_MAX_SGE,
        .max_cq = IW_MAX_CQ,
        .max_cqe = IW_MAX_CQE,
        .max_mr = IW_MAX_MR,
        .max_mw = IW_MAX_MW,
        .max_pd = IW_MAX_PD,
        .max_srq = IW_MAX_SRQ,
        .max_srq_wr = IW_MAX_SRQ_WR,
        .max_srq_sge = IW_MAX_SGE,
        .max_qp_rd_atom = IW_MAX_DEPTH,
        .max_res_rd_atom = IW_MAX_DEPTH * IW_MAX_QP,
        .max_qp_init_rd_atom = IW_MAX_DEPTH,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    iw_like_attr(attr);
}

static enum ibv_mtu mtu_class(unsigned mtu)
{
    return mtu >= 4096   ? IBV_MTU_4096
           : mtu >= 2048 ? IBV_MTU_2048
           : mtu >= 1024 ? IBV_MTU_1024
           : mtu >= 512  ? IBV_MTU_512
                         : IBV_MTU_256;
}

/* Ethernet speeds in the terms of the port's attributes, as kernels translate them. */
static const struct speed {
    unsigned mbps; /* up to */
    uint8_t width, speed;
} speeds[] = {
    {1000, 1, 1},   /* 1X SDR */
    {10000, 1, 8},  /* 1X FDR10 */
    {20000, 2, 2},  /* 4X DDR */
    {25000, 1, 32}, /* 1X EDR */
    {40000, 2, 8},  /* 4X FDR10 */
    {50000, 1, 64}, /* 1X HDR */
    {100000, 2, 32}, {200000, 2, 64}, {UINT_MAX, 2, 128},
};

static const struct speed *speed_class(unsigned mbps)
{
    const struct speed *s = speeds;
    while (mbps > s->mbps)
        s++;
    return s;
}

enum ibv_port_state iw_device_port_state(const struct iw_device *dev)
{
    return iw_netif_is_up(dev->interface) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
}

int iw_device_query_port(const struct iw_device *dev, uint8_t port, struct ibv_port_attr *attr)
{
    if (port != 1)
        return EINVAL;
    enum ibv_port_state state = iw_device_port_state(dev);
    const struct speed *speed = speed_class(iw_netif_mbps(dev->interface));
    enum ibv_mtu mtu = mtu_class(iw_netif_mtu(dev->interface));
    *attr = (struct ibv_port_attr){
        .state = state,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu,
        .gid_tbl_len = (int)iw_device_gids(dev),
        .port_cap_flags = IBV_PORT_CM_SUP,
        .max_msg_sz = IW_MAX_MSG,
        .pkey_tbl_len = 1,
        .active_width = speed->width,
        .active_speed = speed->speed,
        .phys_state = state == IBV_PORT_ACTIVE ? LINK_UP : LINK_DISABLED,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    return 0;
}

uint64_t iw_device_port_speed(const struct iw_device *dev)
{
    unsigned mbps = iw_netif_mbps(dev->interface);
    return mbps ? (mbps + 99) / 100 : UNKNOWN_SPEED;
}

/* ---- GIDs ---- */

unsigned iw_device_gids(const struct iw_device *dev)
{
    unsigned addresses = iw_netif_gids(dev->interface, NULL, 0);
    return addresses < MAX_GIDS ? addresses + 1 : MAX_GIDS;
}

int iw_device_gid(const struct iw_device *dev, uint8_t port, unsigned index,
                  struct ibv_gid_entry *entry)
{
    struct ibv_gid_entry address[MAX_GIDS - 1];
    if (port != 1)
        return EINVAL;
    if (index == 0) {
        *entry = (struct ibv_gid_entry){.ndev_ifindex = dev->mac_ifindex};
        memcpy(entry->gid.raw, dev->mac, sizeof(dev->mac));
    } else {
        unsigned n = iw_netif_gids(dev->interface, address, MAX_GIDS - 1);
        if (index >= MAX_GIDS || index > n)
            return ENODATA;
        *entry = address[index - 1];
    }
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = IBV_GID_TYPE_IB;
    return 0;
}

bool iw_device_has(const struct iw_device *dev, const struct ibv_gid_entry *address)
{
    struct ibv_gid_entry own[MAX_GIDS];
    if (!dev->interface[0])
        return true;
    unsigned n = iw_netif_gids(dev->interface, own, MAX_GIDS);
    for (unsigned i = 0; i < n && i < MAX_GIDS; i++)
        if (memcmp(&own[i].gid, &address->gid, sizeof(own[i].gid)) == 0 &&
            (!address->ndev_ifindex || own[i].ndev_ifindex == address->ndev_ifindex))
            return true;
    return false;
}

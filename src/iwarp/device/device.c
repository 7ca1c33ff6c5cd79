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
#include <net/if.h>
#include <netinet/in.h>
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
     IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |       \
     IBV_DEVICE_UD_AV_PORT_ENFORCE)

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

/* Adapters of the machine have the numbers below. */
#define FIRST_UVERBS 192

/* The names have the shape that programs know: they take their last parts and numbers. */
static void add(const char *name, const char *interface, bool roce)
{
    struct iw_device *dev = &table.device[table.count];
    struct ibv_device *pub = &dev->pub;
    dev->index = table.count++;
    dev->roce = roce;
    pub->node_type = roce ? IBV_NODE_CA : IBV_NODE_RNIC;
    pub->transport_type = roce ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
    snprintf(pub->name, sizeof(pub->name), "%s", name);
    snprintf(pub->dev_name, sizeof(pub->dev_name), "uverbs%d", FIRST_UVERBS + dev->index);
    snprintf(pub->dev_path, sizeof(pub->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
             FIRST_UVERBS + dev->index);
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

/** Steps over "roce:" or "iwarp:" in front of an interface, which may be empty then. */
static bool take_kind(const char **interface, bool *roce)
{
    static const char *const kinds[] = {"iwarp:", "roce:"};
    for (int i = 0; i < 2; i++)
        if (strncmp(*interface, kinds[i], strlen(kinds[i])) == 0) {
            *interface += strlen(kinds[i]);
            *roce = i;
            return true;
        }
    return false;
}

/** @param interface  "eth0", "roce:eth0" or "roce:", or NULL */
static bool add_entry(const char *name, const char *interface)
{
    bool roce = false, kind = interface && take_kind(&interface, &roce);
    if (!interface || !name_ok(name, sizeof(table.device->pub.name)) || name_taken(name) ||
        !(name_ok(interface, sizeof(table.device->interface)) || (kind && !*interface)) ||
        table.count == MAX_DEVICES)
        return false;
    add(name, interface, roce);
    return true;
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
        if (!add_entry(name, interface))
            iw_log(IW_LOG_ASKED, "ANYWARP_DEVICES: entry %s ignored", name);
    }
}

static void build(void)
{
    add_configured(iw_conf()->devices);
    if (table.count == 0)
        add("anywarp0", "", false);
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

static __be64 guid_of(const uint8_t *m, uint8_t middle)
{
    uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, middle, m[3], m[4], m[5]};
    __be64 guid;
    memcpy(&guid, eui, sizeof(guid));
    return guid;
}

__be64 iw_device_guid(const struct iw_device *dev)
{
    return guid_of(dev->mac, dev->roce ? 0xfd : 0xfe);
}

void iw_device_query(const struct iw_device *dev, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){
        .fw_ver = PACKAGE_VERSION,
        .node_guid = iw_device_guid(dev),
        .sys_image_guid = guid_of(dev->mac, 0xfe),
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
        .max_mcast_grp = IW_MAX_MCAST_GRP,
        .max_mcast_qp_attach = IW_MAX_QP,
        .max_total_mcast_qp_attach = IW_MAX_MCAST,
        .max_ah = IW_MAX_AH,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    if (dev->roce)
        attr->device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
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

/** The one that the port's attributes are of; empty: all. */
static const char *interface_of(const struct iw_device *dev, char name[IF_NAMESIZE])
{
    struct ibv_gid_entry e;
    if (!dev->roce || dev->interface[0])
        return dev->interface;
    return iw_netif_address("", &e) && if_indextoname(e.ndev_ifindex, name) ? name : "";
}

enum ibv_port_state iw_device_port_state(const struct iw_device *dev)
{
    char name[IF_NAMESIZE];
    return iw_netif_is_up(interface_of(dev, name)) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
}

int iw_device_query_port(const struct iw_device *dev, uint8_t port, struct ibv_port_attr *attr)
{
    if (port != 1)
        return EINVAL;
    char name[IF_NAMESIZE];
    const char *interface = interface_of(dev, name);
    enum ibv_port_state state = iw_device_port_state(dev);
    const struct speed *speed = speed_class(iw_netif_mbps(interface));
    enum ibv_mtu mtu = mtu_class(iw_netif_mtu(interface));
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
        .flags = dev->roce ? IBV_QPF_GRH_REQUIRED : 0,
    };
    return 0;
}

uint64_t iw_device_port_speed(const struct iw_device *dev)
{
    char name[IF_NAMESIZE];
    unsigned mbps = iw_netif_mbps(interface_of(dev, name));
    return mbps ? (mbps + 99) / 100 : UNKNOWN_SPEED;
}

/* ---- GIDs ---- */

union ibv_gid iw_device_mac_gid(const struct iw_device *dev)
{
    union ibv_gid gid = {0};
    memcpy(gid.raw, dev->mac, sizeof(dev->mac));
    return gid;
}

static struct ibv_gid_entry mac_gid(const struct iw_device *dev)
{
    return (struct ibv_gid_entry){.gid = iw_device_mac_gid(dev), .ndev_ifindex = dev->mac_ifindex};
}

/** @param gids  [out] @p max of them. @return how many there are */
static unsigned gids_of_iwarp(const struct iw_device *dev, struct ibv_gid_entry *gids, unsigned max)
{
    if (max > 0)
        gids[0] = mac_gid(dev);
    return 1 + (max > 1 ? iw_netif_gids(dev->interface, gids + 1, max - 1)
                        : iw_netif_gids(dev->interface, NULL, 0));
}

static unsigned gids_of_roce(const struct iw_device *dev, struct ibv_gid_entry *gids, unsigned max)
{
    struct ibv_gid_entry e;
    unsigned n = 0;
    if (!iw_netif_address(dev->interface, &e))
        return 0;
    if (n++ < max)
        gids[0] = e;
    if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)e.gid.raw) && n++ < max) {
        static const uint8_t link_local[12] = {0xfe, 0x80, [10] = 0x5e, 0xfe};
        gids[1] = e;
        memcpy(gids[1].gid.raw, link_local, sizeof(link_local));
    }
    return n;
}

static unsigned find_gids(const struct iw_device *dev, struct ibv_gid_entry *gids, unsigned max)
{
    unsigned n = dev->roce ? gids_of_roce(dev, gids, max) : gids_of_iwarp(dev, gids, max);
    return n < MAX_GIDS ? n : MAX_GIDS;
}

unsigned iw_device_gids(const struct iw_device *dev)
{
    return find_gids(dev, NULL, 0);
}

int iw_device_gid(const struct iw_device *dev, uint8_t port, unsigned index,
                  struct ibv_gid_entry *entry)
{
    struct ibv_gid_entry gids[MAX_GIDS];
    if (port != 1)
        return EINVAL;
    /* The first is asked for with each id of rdma_cm, and the whole list costs system calls. */
    if (!dev->roce && index == 0)
        gids[0] = mac_gid(dev);
    else if (index >= find_gids(dev, gids, MAX_GIDS))
        return ENODATA;
    *entry = gids[index];
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = dev->roce || index ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    return 0;
}

bool iw_device_has(const struct iw_device *dev, const struct ibv_gid_entry *address)
{
    return !dev->interface[0] || iw_netif_has(dev->interface, address);
}

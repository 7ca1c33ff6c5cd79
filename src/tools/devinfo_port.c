/* SPDX-License-Identifier: BSD-2-Clause */
#include "devinfo.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const struct devinfo_name states[] = {
    {IBV_PORT_NOP, "PORT_NOP"},
    {IBV_PORT_DOWN, "PORT_DOWN"},
    {IBV_PORT_INIT, "PORT_INIT"},
    {IBV_PORT_ARMED, "PORT_ARMED"},
    {IBV_PORT_ACTIVE, "PORT_ACTIVE"},
    {IBV_PORT_ACTIVE_DEFER, "PORT_ACTIVE_DEFER"},
    {0, NULL},
};

static const struct devinfo_name mtus[] = {
    {IBV_MTU_256, "256"},   {IBV_MTU_512, "512"},   {IBV_MTU_1024, "1024"},
    {IBV_MTU_2048, "2048"}, {IBV_MTU_4096, "4096"}, {0, NULL},
};

static const struct devinfo_name link_layers[] = {
    {IBV_LINK_LAYER_UNSPECIFIED, "Unspecified"},
    {IBV_LINK_LAYER_INFINIBAND, "InfiniBand"},
    {IBV_LINK_LAYER_ETHERNET, "Ethernet"},
    {0, NULL},
};

/* Encodings of the InfiniBand specification, "PortInfo". */
static const struct devinfo_name lanes[] = {
    {1, "1"}, {2, "1 - 2"}, {3, "1 - 4"}, {4, "1 - 8"}, {5, "1 - 15"}, {0, NULL},
};
static const struct devinfo_name widths[] = {
    {1, "1X"}, {2, "4X"}, {4, "8X"}, {8, "12X"}, {16, "2X"}, {0, NULL},
};
static const struct devinfo_name speeds[] = {
    {1, "2.5 Gbps"},   {2, "5.0 Gbps"},   {4, "10.0 Gbps"},    {8, "10.0 Gbps"}, {16, "14.0 Gbps"},
    {32, "25.0 Gbps"}, {64, "50.0 Gbps"}, {128, "100.0 Gbps"}, {0, NULL},
};

/** As the kernel shows it, or with RoCE v2 as an address. */
static void print_gid(const struct ibv_gid_entry *e)
{
    const uint8_t *raw = e->gid.raw;
    char name[20], text[INET6_ADDRSTRLEN] = "";
    snprintf(name, sizeof(name), "GID[%3d]", (int)e->gid_index);
    if (e->gid_type == IBV_GID_TYPE_ROCE_V2 && inet_ntop(AF_INET6, raw, text, sizeof(text))) {
        devinfo_field(3, name, "%s, RoCE v2", text);
        return;
    }
    for (size_t j = 0; j < sizeof(e->gid.raw); j += 2)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%02x%02x", j ? ":" : "",
                 raw[j], raw[j + 1]);
    devinfo_field(3, name, "%s", text);
}

/* As rdma-core's program does, without those of which the last half is zero: an adapter's table may
 * have thousands of empty rows. */
static void gids(struct ibv_context *ctx, uint8_t port, int n)
{
    for (int i = 0; i < n; i++) {
        struct ibv_gid_entry e;
        if (ibv_query_gid_ex(ctx, port, (uint32_t)i, &e, 0) == 0 && e.gid.global.interface_id)
            print_gid(&e);
    }
}

static void more(const struct ibv_port_attr *a)
{
    devinfo_field(3, "max_msg_sz", "0x%x", a->max_msg_sz);
    devinfo_field(3, "port_cap_flags", "0x%08x", a->port_cap_flags);
    devinfo_field(3, "port_cap_flags2", "0x%04x", a->port_cap_flags2);
    devinfo_named(3, "max_vl_num", a->max_vl_num, lanes);
    devinfo_field(3, "bad_pkey_cntr", "0x%x", a->bad_pkey_cntr);
    devinfo_field(3, "qkey_viol_cntr", "0x%x", a->qkey_viol_cntr);
    devinfo_field(3, "sm_sl", "%d", a->sm_sl);
    devinfo_field(3, "pkey_tbl_len", "%d", a->pkey_tbl_len);
    devinfo_field(3, "gid_tbl_len", "%d", a->gid_tbl_len);
    devinfo_field(3, "subnet_timeout", "%d", a->subnet_timeout);
    devinfo_field(3, "init_type_reply", "%d", a->init_type_reply);
    devinfo_named(3, "active_width", a->active_width, widths);
    devinfo_named(3, "active_speed", a->active_speed, speeds);
}

int devinfo_port(struct ibv_context *ctx, uint8_t port, bool verbose)
{
    struct ibv_port_attr a;
    int err = ibv_query_port(ctx, port, &a);
    if (err)
        return err;
    printf("\t\tport:\t%u\n", port);
    devinfo_named(3, "state", (int)a.state, states);
    devinfo_named(3, "max_mtu", (int)a.max_mtu, mtus);
    devinfo_named(3, "active_mtu", (int)a.active_mtu, mtus);
    devinfo_field(3, "sm_lid", "%d", a.sm_lid);
    devinfo_field(3, "port_lid", "%d", a.lid);
    devinfo_field(3, "port_lmc", "0x%02x", a.lmc);
    devinfo_field(3, "link_layer", "%s", devinfo_text(a.link_layer, link_layers));
    if (verbose) {
        more(&a);
        gids(ctx, port, a.gid_tbl_len);
    }
    return 0;
}

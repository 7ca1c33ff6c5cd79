/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ports of a device can do: an RNIC has the iWARP CM, and none has management datagrams.
 */
#include "kverbs/device.h"

u8 rdma_start_port(const struct ib_device *device)
{
    (void)device;
    return 1;
}

u8 rdma_end_port(const struct ib_device *device)
{
    return device->phys_port_cnt;
}

int rdma_is_port_valid(const struct ib_device *device, unsigned port)
{
    return port >= rdma_start_port(device) && port <= rdma_end_port(device);
}

enum rdma_transport_type rdma_node_get_transport(enum rdma_node_type type)
{
    return type == RDMA_NODE_RNIC ? RDMA_TRANSPORT_IWARP : RDMA_TRANSPORT_IB;
}

enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u8 port)
{
    struct ibv_port_attr v;
    if (ibv_query_port(kv_device(device)->verbs, port, &v) != 0)
        return IB_LINK_LAYER_UNSPECIFIED;
    return v.link_layer == IBV_LINK_LAYER_INFINIBAND ? IB_LINK_LAYER_INFINIBAND
                                                     : IB_LINK_LAYER_ETHERNET;
}

bool rdma_protocol_iwarp(const struct ib_device *device, u8 port)
{
    (void)port;
    return device->node_type == RDMA_NODE_RNIC;
}

/* What is no RNIC here is an adapter on Ethernet. */
bool rdma_protocol_roce(const struct ib_device *device, u8 port)
{
    return !rdma_protocol_iwarp(device, port);
}

bool rdma_protocol_ib(const struct ib_device *device, u8 port)
{
    (void)device;
    (void)port;
    return false;
}

bool rdma_cap_iw_cm(const struct ib_device *device, u8 port)
{
    return rdma_protocol_iwarp(device, port);
}

/* An address on Ethernet is a GID. */
bool rdma_cap_eth_ah(const struct ib_device *device, u8 port)
{
    return rdma_protocol_roce(device, port);
}

/* Verbs of programs have no such request. */
bool rdma_cap_read_inv(struct ib_device *device, u32 port)
{
    (void)device;
    (void)port;
    return false;
}

bool rdma_cap_ib_switch(const struct ib_device *device)
{
    return device->node_type == RDMA_NODE_IB_SWITCH;
}

#define HAS_NONE(name, is_const)                                                                   \
    bool name(is_const struct ib_device *device, u8 port)                                          \
    {                                                                                              \
        (void)device;                                                                              \
        (void)port;                                                                                \
        return false;                                                                              \
    }

HAS_NONE(rdma_cap_ib_mad, const)
HAS_NONE(rdma_cap_opa_mad, )
HAS_NONE(rdma_cap_ib_smi, const)
HAS_NONE(rdma_cap_ib_cm, const)
HAS_NONE(rdma_cap_ib_sa, const)
HAS_NONE(rdma_cap_ib_mcast, const)
HAS_NONE(rdma_cap_af_ib, const)
HAS_NONE(rdma_cap_opa_ah, )
HAS_NONE(rdma_cap_roce_gid_table, const)

size_t rdma_max_mad_size(const struct ib_device *device, u8 port)
{
    (void)device;
    (void)port;
    return 0;
}

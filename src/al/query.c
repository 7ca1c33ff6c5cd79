/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/query.h"

#include "al/ca.h"
#include "compat/version.h"

#include <string.h>
#include <unistd.h>

/* Behind the attributes: the port's, its GIDs, a size of pages, its P_Keys. */
struct tables {
    ib_ca_attr_t ca;
    ib_port_attr_t port;
    ib_gid_t gids[];
};

static uint32_t bytes(const struct ibv_port_attr *port)
{
    return (uint32_t)(sizeof(struct tables) + (size_t)port->gid_tbl_len * sizeof(ib_gid_t) +
                      sizeof(uint32_t) + (size_t)port->pkey_tbl_len * sizeof(ib_net16_t));
}

static enum rdma_transport_type transport(const struct ibv_context *verbs)
{
    return verbs->device->transport_type == IBV_TRANSPORT_IWARP ? RDMA_TRANSPORT_IWARP
                                                                : RDMA_TRANSPORT_RDMAOE;
}

static void fill_port(struct ibv_context *verbs, const struct ibv_port_attr *from,
                      ib_port_attr_t *to)
{
    to->port_guid = ibv_get_device_guid(verbs->device);
    to->port_num = AL_PORT;
    to->mtu = (uint8_t)from->active_mtu;
    to->transport = transport(verbs);
    to->max_msg_size = from->max_msg_sz;
    to->lid = CL_HTON16(from->lid);
    to->lmc = from->lmc;
    to->active_width = from->active_width;
    to->max_vls = from->max_vl_num;
    to->sm_lid = CL_HTON16(from->sm_lid);
    to->sm_sl = from->sm_sl;
    to->link_state = (uint8_t)from->state;
    to->subnet_timeout = from->subnet_timeout;
    to->active_speed = from->active_speed;
    to->phys_state = from->phys_state;
    to->cap.cm = TRUE;
    to->cap.port_active = TRUE;
    to->num_gids = (uint16_t)from->gid_tbl_len;
    to->num_pkeys = from->pkey_tbl_len;
    for (uint16_t i = 0; i < to->num_gids; i++) {
        union ibv_gid gid = {{0}};
        ibv_query_gid(verbs, AL_PORT, i, &gid);
        memcpy(&to->p_gid_table[i], &gid, sizeof gid);
    }
    for (uint16_t i = 0; i < to->num_pkeys; i++)
        ibv_query_pkey(verbs, AL_PORT, i, &to->p_pkey_table[i]);
}

static uint8_t at_most_255(int number)
{
    return (uint8_t)(number < 255 ? number : 255);
}

static void fill_ca(const struct ibv_device_attr *from, ib_ca_attr_t *to)
{
    to->ca_guid = from->node_guid;
    to->vend_id = from->vendor_id;
    to->dev_id = (uint16_t)from->vendor_part_id;
    to->revision = (uint16_t)from->hw_ver;
    to->fw_ver = version_number(from->fw_ver);
    to->max_qps = (uint32_t)from->max_qp;
    to->max_wrs = (uint32_t)from->max_qp_wr;
    to->max_sges = (uint32_t)from->max_sge;
    to->max_rd_sges = (uint32_t)from->max_sge_rd;
    to->max_cqs = (uint32_t)from->max_cq;
    to->max_cqes = (uint32_t)from->max_cqe;
    to->max_pds = (uint32_t)from->max_pd;
    to->init_regions = (uint32_t)from->max_mr;
    to->init_region_size = from->max_mr_size;
    to->init_windows = (uint32_t)from->max_mw;
    to->max_addr_handles = (uint64_t)from->max_ah;
    to->max_partitions = from->max_pkeys;
    to->atomicity = from->atomic_cap == IBV_ATOMIC_GLOB  ? IB_ATOMIC_GLOBAL
                    : from->atomic_cap == IBV_ATOMIC_HCA ? IB_ATOMIC_LOCAL
                                                         : IB_ATOMIC_NONE;
    to->max_qp_resp_res = at_most_255(from->max_qp_rd_atom);
    to->max_resp_res = at_most_255(from->max_res_rd_atom);
    to->max_qp_init_depth = at_most_255(from->max_qp_init_rd_atom);
    to->max_mcast_grps = (uint32_t)from->max_mcast_grp;
    to->max_qps_per_mcast_grp = (uint32_t)from->max_mcast_qp_attach;
    to->max_srq = (uint32_t)from->max_srq;
    to->max_srq_wrs = (uint32_t)from->max_srq_wr;
    to->max_srq_sges = (uint32_t)from->max_srq_sge;
    to->local_ack_delay = from->local_ca_ack_delay;
    to->modify_srq_depth = FALSE;
    to->current_qp_state_support = TRUE;
    to->port_active_event_support = TRUE;
    to->av_port_check = TRUE;
    to->system_image_guid = from->sys_image_guid;
}

ib_api_status_t al_query(struct ibv_context *verbs, ib_ca_attr_t *attr, uint32_t *size)
{
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    if (ibv_query_device(verbs, &device) != 0 || ibv_query_port(verbs, AL_PORT, &port) != 0)
        return IB_ERROR;
    uint32_t room = attr ? *size : 0;
    *size = bytes(&port);
    if (room < *size)
        return IB_INSUFFICIENT_MEMORY;

    struct tables *t = (struct tables *)attr;
    memset(t, 0, *size);
    fill_ca(&device, &t->ca);
    t->ca.size = *size;
    t->ca.num_ports = 1;
    t->ca.p_port_attr = &t->port;
    t->ca.num_page_sizes = 1;
    t->ca.p_page_size = (uint32_t *)&t->gids[port.gid_tbl_len];
    *t->ca.p_page_size = (uint32_t)sysconf(_SC_PAGESIZE);
    t->port.p_gid_table = t->gids;
    t->port.p_pkey_table = (ib_net16_t *)(t->ca.p_page_size + 1);
    fill_port(verbs, &port, &t->port);
    return IB_SUCCESS;
}

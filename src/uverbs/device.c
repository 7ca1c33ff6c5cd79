/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/device.h"

#include "compat/version.h"

#include <anywarp/uverbs.h>

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

int uv_get_context(struct uv_call *call)
{
    struct ib_uverbs_get_context_resp *resp = call->resp;
    struct uv_context *c = call->context;
    if (c->verbs)
        return EINVAL;
    c->verbs = ibv_open_device(c->device);
    if (!c->verbs)
        return errno;
    int fd = uv_async_open(call->file);
    if (fd < 0) {
        ibv_close_device(c->verbs);
        c->verbs = NULL;
        return -fd;
    }
    resp->async_fd = (uint32_t)fd;
    resp->num_comp_vectors = (uint32_t)c->verbs->num_comp_vectors;
    return 0;
}

int uv_query_device(struct uv_call *call)
{
    struct ib_uverbs_query_device_resp *resp = call->resp;
    struct ibv_device_attr a;
    int err = ibv_query_device(call->context->verbs, &a);
    if (err)
        return err;
    *resp = (struct ib_uverbs_query_device_resp){
        .fw_ver = version_number(a.fw_ver),
        .node_guid = a.node_guid,
        .sys_image_guid = a.sys_image_guid,
        .max_mr_size = a.max_mr_size,
        .page_size_cap = a.page_size_cap,
        .vendor_id = a.vendor_id,
        .vendor_part_id = a.vendor_part_id,
        .hw_ver = a.hw_ver,
        .max_qp = (uint32_t)a.max_qp,
        .max_qp_wr = (uint32_t)a.max_qp_wr,
        .device_cap_flags = a.device_cap_flags,
        .max_sge = (uint32_t)a.max_sge,
        .max_sge_rd = (uint32_t)a.max_sge_rd,
        .max_cq = (uint32_t)a.max_cq,
        .max_cqe = (uint32_t)a.max_cqe,
        .max_mr = (uint32_t)a.max_mr,
        .max_pd = (uint32_t)a.max_pd,
        .max_qp_rd_atom = (uint32_t)a.max_qp_rd_atom,
        .max_ee_rd_atom = (uint32_t)a.max_ee_rd_atom,
        .max_res_rd_atom = (uint32_t)a.max_res_rd_atom,
        .max_qp_init_rd_atom = (uint32_t)a.max_qp_init_rd_atom,
        .max_ee_init_rd_atom = (uint32_t)a.max_ee_init_rd_atom,
        .atomic_cap = a.atomic_cap,
        .max_ee = (uint32_t)a.max_ee,
        .max_rdd = (uint32_t)a.max_rdd,
        .max_mw = (uint32_t)a.max_mw,
        .max_raw_ipv6_qp = (uint32_t)a.max_raw_ipv6_qp,
        .max_raw_ethy_qp = (uint32_t)a.max_raw_ethy_qp,
        .max_mcast_grp = (uint32_t)a.max_mcast_grp,
        .max_mcast_qp_attach = (uint32_t)a.max_mcast_qp_attach,
        .max_total_mcast_qp_attach = (uint32_t)a.max_total_mcast_qp_attach,
        .max_ah = (uint32_t)a.max_ah,
        .max_fmr = (uint32_t)a.max_fmr,
        .max_map_per_fmr = (uint32_t)a.max_map_per_fmr,
        .max_srq = (uint32_t)a.max_srq,
        .max_srq_wr = (uint32_t)a.max_srq_wr,
        .max_srq_sge = (uint32_t)a.max_srq_sge,
        .max_pkeys = a.max_pkeys,
        .local_ca_ack_delay = a.local_ca_ack_delay,
        .phys_port_cnt = a.phys_port_cnt,
    };
    return 0;
}

int uv_query_port(struct uv_call *call)
{
    const struct ib_uverbs_query_port *cmd = call->in;
    struct ib_uverbs_query_port_resp *resp = call->resp;
    struct ibv_port_attr a;
    int err = ibv_query_port(call->context->verbs, cmd->port_num, &a);
    if (err)
        return err;
    *resp = (struct ib_uverbs_query_port_resp){
        .port_cap_flags = a.port_cap_flags,
        .max_msg_sz = a.max_msg_sz,
        .bad_pkey_cntr = a.bad_pkey_cntr,
        .qkey_viol_cntr = a.qkey_viol_cntr,
        .gid_tbl_len = (uint32_t)a.gid_tbl_len,
        .pkey_tbl_len = a.pkey_tbl_len,
        .lid = a.lid,
        .sm_lid = a.sm_lid,
        .state = (uint8_t)a.state,
        .max_mtu = (uint8_t)a.max_mtu,
        .active_mtu = (uint8_t)a.active_mtu,
        .lmc = a.lmc,
        .max_vl_num = a.max_vl_num,
        .sm_sl = a.sm_sl,
        .subnet_timeout = a.subnet_timeout,
        .init_type_reply = a.init_type_reply,
        .active_width = a.active_width,
        .active_speed = a.active_speed,
        .phys_state = a.phys_state,
        .link_layer = a.link_layer,
        .flags = a.flags,
    };
    return 0;
}

int uv_query_gid(struct uv_call *call)
{
    const struct ib_uverbs_query_gid *cmd = call->in;
    if (cmd->gid_index > INT32_MAX)
        return EINVAL;
    int saved = errno;
    errno = 0;
    int err = ibv_query_gid(call->context->verbs, cmd->port_num, (int)cmd->gid_index, call->resp);
    int code = errno ? errno : EINVAL;
    errno = saved;
    return err ? code : 0;
}

int uv_query_pkey(struct uv_call *call)
{
    const struct ib_uverbs_query_pkey *cmd = call->in;
    struct ib_uverbs_query_pkey_resp *resp = call->resp;
    if (cmd->pkey_index > INT32_MAX)
        return EINVAL;
    int saved = errno;
    errno = 0;
    int err =
        ibv_query_pkey(call->context->verbs, cmd->port_num, (int)cmd->pkey_index, &resp->pkey);
    int code = errno ? errno : EINVAL;
    errno = saved;
    return err ? code : 0;
}

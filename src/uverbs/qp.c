/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/qp.h"

#include "uverbs/numbers.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

int uv_create_qp(struct uv_call *call)
{
    const struct ib_uverbs_create_qp *cmd = call->in;
    struct ib_uverbs_create_qp_resp *resp = call->resp;
    struct uv_context *c = call->context;
    struct uv_object *pd = uv_object_get(c, UV_PD, cmd->pd_handle);
    struct uv_object *send_cq = uv_object_get(c, UV_CQ, cmd->send_cq_handle);
    struct uv_object *recv_cq = uv_object_get(c, UV_CQ, cmd->recv_cq_handle);
    struct uv_object *srq = cmd->is_srq ? uv_object_get(c, UV_SRQ, cmd->srq_handle) : NULL;
    if (!pd || !send_cq || !recv_cq || (cmd->is_srq && !srq))
        return EINVAL;
    struct uv_object *o = uv_object_add(c, UV_QP, cmd->user_handle);
    if (!o)
        return ENOMEM;
    struct ibv_qp_init_attr init = {
        .qp_context = o,
        .send_cq = send_cq->cq,
        .recv_cq = recv_cq->cq,
        .srq = srq ? srq->srq : NULL,
        .cap = {.max_send_wr = cmd->max_send_wr,
                .max_recv_wr = cmd->max_recv_wr,
                .max_send_sge = cmd->max_send_sge,
                .max_recv_sge = cmd->max_recv_sge,
                .max_inline_data = cmd->max_inline_data},
        .qp_type = cmd->qp_type,
        .sq_sig_all = cmd->sq_sig_all,
    };
    o->qp = ibv_create_qp(pd->pd, &init);
    if (!o->qp) {
        int err = errno;
        uv_object_drop(c, o);
        return err;
    }
    uv_number_add(o);
    uv_object_need(o, pd);
    uv_object_need(o, send_cq);
    uv_object_need(o, recv_cq);
    if (srq)
        uv_object_need(o, srq);
    *resp = (struct ib_uverbs_create_qp_resp){
        .qp_handle = o->handle,
        .qpn = o->qp->qp_num,
        .max_send_wr = init.cap.max_send_wr,
        .max_recv_wr = init.cap.max_recv_wr,
        .max_send_sge = init.cap.max_send_sge,
        .max_recv_sge = init.cap.max_recv_sge,
        .max_inline_data = init.cap.max_inline_data,
    };
    return 0;
}

static void path_to_command(struct ib_uverbs_qp_dest *dest, const struct ibv_ah_attr *a)
{
    memcpy(dest->dgid, a->grh.dgid.raw, sizeof dest->dgid);
    dest->flow_label = a->grh.flow_label;
    dest->dlid = a->dlid;
    dest->sgid_index = a->grh.sgid_index;
    dest->hop_limit = a->grh.hop_limit;
    dest->traffic_class = a->grh.traffic_class;
    dest->sl = a->sl;
    dest->src_path_bits = a->src_path_bits;
    dest->static_rate = a->static_rate;
    dest->is_global = a->is_global;
    dest->port_num = a->port_num;
}

static struct ibv_ah_attr path_from_command(const struct ib_uverbs_qp_dest *dest)
{
    struct ibv_ah_attr a = {
        .grh = {.flow_label = dest->flow_label,
                .sgid_index = dest->sgid_index,
                .hop_limit = dest->hop_limit,
                .traffic_class = dest->traffic_class},
        .dlid = dest->dlid,
        .sl = dest->sl,
        .src_path_bits = dest->src_path_bits,
        .static_rate = dest->static_rate,
        .is_global = dest->is_global,
        .port_num = dest->port_num,
    };
    memcpy(a.grh.dgid.raw, dest->dgid, sizeof dest->dgid);
    return a;
}

int uv_query_qp(struct uv_call *call)
{
    const struct ib_uverbs_query_qp *cmd = call->in;
    struct ib_uverbs_query_qp_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_QP, cmd->qp_handle);
    if (!o)
        return EINVAL;
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr init = {0};
    int err = ibv_query_qp(o->qp, &a, (int)cmd->attr_mask, &init);
    if (err)
        return err;
    *resp = (struct ib_uverbs_query_qp_resp){
        .max_send_wr = init.cap.max_send_wr,
        .max_recv_wr = init.cap.max_recv_wr,
        .max_send_sge = init.cap.max_send_sge,
        .max_recv_sge = init.cap.max_recv_sge,
        .max_inline_data = init.cap.max_inline_data,
        .qkey = a.qkey,
        .rq_psn = a.rq_psn,
        .sq_psn = a.sq_psn,
        .dest_qp_num = a.dest_qp_num,
        .qp_access_flags = a.qp_access_flags,
        .pkey_index = a.pkey_index,
        .alt_pkey_index = a.alt_pkey_index,
        .qp_state = (uint8_t)a.qp_state,
        .cur_qp_state = (uint8_t)a.cur_qp_state,
        .path_mtu = (uint8_t)a.path_mtu,
        .path_mig_state = (uint8_t)a.path_mig_state,
        .sq_draining = a.sq_draining,
        .max_rd_atomic = a.max_rd_atomic,
        .max_dest_rd_atomic = a.max_dest_rd_atomic,
        .min_rnr_timer = a.min_rnr_timer,
        .port_num = a.port_num,
        .timeout = a.timeout,
        .retry_cnt = a.retry_cnt,
        .rnr_retry = a.rnr_retry,
        .alt_port_num = a.alt_port_num,
        .alt_timeout = a.alt_timeout,
        .sq_sig_all = (uint8_t)init.sq_sig_all,
    };
    path_to_command(&resp->dest, &a.ah_attr);
    path_to_command(&resp->alt_dest, &a.alt_ah_attr);
    return 0;
}

/**
 * A librdmacm drains the queue pair of an iWARP device before it disconnects. Where the connection
 * has ended there is nothing to drain, and Linux's drivers have nothing against it.
 */
static bool drains_what_has_ended(struct ibv_qp *qp, const struct ib_uverbs_modify_qp *cmd)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return cmd->attr_mask == IBV_QP_STATE && cmd->qp_state == IBV_QPS_SQD &&
           ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
}

int uv_modify_qp(struct uv_call *call)
{
    const struct ib_uverbs_modify_qp *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_QP, cmd->qp_handle);
    if (!o || cmd->attr_mask > INT32_MAX)
        return EINVAL;
    /* No attributes are what INIT_QP_ATTR says for RTR and RTS. */
    if (!cmd->attr_mask || drains_what_has_ended(o->qp, cmd))
        return 0;
    struct ibv_qp_attr attr = {
        .qp_state = cmd->qp_state,
        .cur_qp_state = cmd->cur_qp_state,
        .path_mtu = cmd->path_mtu,
        .path_mig_state = cmd->path_mig_state,
        .qkey = cmd->qkey,
        .rq_psn = cmd->rq_psn,
        .sq_psn = cmd->sq_psn,
        .dest_qp_num = cmd->dest_qp_num,
        .qp_access_flags = cmd->qp_access_flags,
        .ah_attr = path_from_command(&cmd->dest),
        .alt_ah_attr = path_from_command(&cmd->alt_dest),
        .pkey_index = cmd->pkey_index,
        .alt_pkey_index = cmd->alt_pkey_index,
        .en_sqd_async_notify = cmd->en_sqd_async_notify,
        .max_rd_atomic = cmd->max_rd_atomic,
        .max_dest_rd_atomic = cmd->max_dest_rd_atomic,
        .min_rnr_timer = cmd->min_rnr_timer,
        .port_num = cmd->port_num,
        .timeout = cmd->timeout,
        .retry_cnt = cmd->retry_cnt,
        .rnr_retry = cmd->rnr_retry,
        .alt_port_num = cmd->alt_port_num,
        .alt_timeout = cmd->alt_timeout,
    };
    return ibv_modify_qp(o->qp, &attr, (int)cmd->attr_mask);
}

int uv_destroy_qp(struct uv_call *call)
{
    const struct ib_uverbs_destroy_qp *cmd = call->in;
    struct ib_uverbs_destroy_qp_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_QP, cmd->qp_handle);
    if (!o)
        return EINVAL;
    int err = uv_object_remove(o);
    if (err)
        return err;
    resp->events_reported = o->async_events;
    uv_object_drop(call->context, o);
    return 0;
}

static int mcast(struct uv_call *call,
                 int (*verb)(struct ibv_qp *, const union ibv_gid *, uint16_t))
{
    const struct ib_uverbs_attach_mcast *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_QP, cmd->qp_handle);
    if (!o || o->qp->qp_type != IBV_QPT_UD)
        return EINVAL;
    union ibv_gid gid;
    memcpy(gid.raw, cmd->gid, sizeof gid.raw);
    return verb(o->qp, &gid, cmd->mlid);
}

int uv_attach_mcast(struct uv_call *call)
{
    return mcast(call, ibv_attach_mcast);
}

int uv_detach_mcast(struct uv_call *call)
{
    return mcast(call, ibv_detach_mcast);
}

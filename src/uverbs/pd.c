/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/pd.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

int uv_alloc_pd(struct uv_call *call)
{
    struct ib_uverbs_alloc_pd_resp *resp = call->resp;
    struct uv_object *o = uv_object_add(call->context, UV_PD, 0);
    if (!o)
        return ENOMEM;
    o->pd = ibv_alloc_pd(call->context->verbs);
    if (!o->pd) {
        int err = errno;
        uv_object_drop(call->context, o);
        return err;
    }
    resp->pd_handle = o->handle;
    return 0;
}

int uv_dealloc_pd(struct uv_call *call)
{
    const struct ib_uverbs_dealloc_pd *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_PD, cmd->pd_handle);
    return o ? uv_object_destroy(call->context, o) : EINVAL;
}

int uv_reg_mr(struct uv_call *call)
{
    const struct ib_uverbs_reg_mr *cmd = call->in;
    struct ib_uverbs_reg_mr_resp *resp = call->resp;
    struct uv_object *pd = uv_object_get(call->context, UV_PD, cmd->pd_handle);
    if (!pd || (cmd->start & 4095) != (cmd->hca_va & 4095))
        return EINVAL;
    struct uv_object *o = uv_object_add(call->context, UV_MR, 0);
    if (!o)
        return ENOMEM;
    o->mr = ibv_reg_mr_iova2(pd->pd, (void *)(uintptr_t)cmd->start, cmd->length, cmd->hca_va,
                             cmd->access_flags);
    if (!o->mr) {
        int err = errno;
        uv_object_drop(call->context, o);
        return err;
    }
    uv_object_need(o, pd);
    resp->mr_handle = o->handle;
    resp->lkey = o->mr->lkey;
    resp->rkey = o->mr->rkey;
    return 0;
}

int uv_dereg_mr(struct uv_call *call)
{
    const struct ib_uverbs_dereg_mr *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_MR, cmd->mr_handle);
    return o ? uv_object_destroy(call->context, o) : EINVAL;
}

int uv_create_ah(struct uv_call *call)
{
    const struct ib_uverbs_create_ah *cmd = call->in;
    struct ib_uverbs_create_ah_resp *resp = call->resp;
    struct uv_object *pd = uv_object_get(call->context, UV_PD, cmd->pd_handle);
    if (!pd)
        return EINVAL;
    struct ibv_ah_attr attr = {
        .grh = {.flow_label = cmd->attr.grh.flow_label,
                .sgid_index = cmd->attr.grh.sgid_index,
                .hop_limit = cmd->attr.grh.hop_limit,
                .traffic_class = cmd->attr.grh.traffic_class},
        .dlid = cmd->attr.dlid,
        .sl = cmd->attr.sl,
        .src_path_bits = cmd->attr.src_path_bits,
        .static_rate = cmd->attr.static_rate,
        .is_global = cmd->attr.is_global,
        .port_num = cmd->attr.port_num,
    };
    memcpy(attr.grh.dgid.raw, cmd->attr.grh.dgid, sizeof attr.grh.dgid.raw);
    struct uv_object *o = uv_object_add(call->context, UV_AH, cmd->user_handle);
    if (!o)
        return ENOMEM;
    o->ah = ibv_create_ah(pd->pd, &attr);
    if (!o->ah) {
        int err = errno;
        uv_object_drop(call->context, o);
        return err;
    }
    uv_object_need(o, pd);
    resp->ah_handle = o->handle;
    return 0;
}

int uv_destroy_ah(struct uv_call *call)
{
    const struct ib_uverbs_destroy_ah *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_AH, cmd->ah_handle);
    return o ? uv_object_destroy(call->context, o) : EINVAL;
}

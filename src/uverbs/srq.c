/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/srq.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>

int uv_create_srq(struct uv_call *call)
{
    const struct ib_uverbs_create_srq *cmd = call->in;
    struct ib_uverbs_create_srq_resp *resp = call->resp;
    struct uv_object *pd = uv_object_get(call->context, UV_PD, cmd->pd_handle);
    if (!pd)
        return EINVAL;
    struct uv_object *o = uv_object_add(call->context, UV_SRQ, cmd->user_handle);
    if (!o)
        return ENOMEM;
    struct ibv_srq_init_attr init = {
        .srq_context = o,
        .attr = {.max_wr = cmd->max_wr, .max_sge = cmd->max_sge, .srq_limit = cmd->srq_limit},
    };
    o->srq = ibv_create_srq(pd->pd, &init);
    if (!o->srq) {
        int err = errno;
        uv_object_drop(call->context, o);
        return err;
    }
    uv_object_need(o, pd);
    resp->srq_handle = o->handle;
    resp->max_wr = init.attr.max_wr;
    resp->max_sge = init.attr.max_sge;
    return 0;
}

int uv_modify_srq(struct uv_call *call)
{
    const struct ib_uverbs_modify_srq *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_SRQ, cmd->srq_handle);
    if (!o || (cmd->attr_mask & ~(uint32_t)(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)))
        return EINVAL;
    struct ibv_srq_attr attr = {.max_wr = cmd->max_wr, .srq_limit = cmd->srq_limit};
    return ibv_modify_srq(o->srq, &attr, (int)cmd->attr_mask);
}

int uv_query_srq(struct uv_call *call)
{
    const struct ib_uverbs_query_srq *cmd = call->in;
    struct ib_uverbs_query_srq_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_SRQ, cmd->srq_handle);
    if (!o)
        return EINVAL;
    struct ibv_srq_attr attr = {0};
    int err = ibv_query_srq(o->srq, &attr);
    if (err)
        return err;
    resp->max_wr = attr.max_wr;
    resp->max_sge = attr.max_sge;
    resp->srq_limit = attr.srq_limit;
    return 0;
}

int uv_destroy_srq(struct uv_call *call)
{
    const struct ib_uverbs_destroy_srq *cmd = call->in;
    struct ib_uverbs_destroy_srq_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_SRQ, cmd->srq_handle);
    if (!o)
        return EINVAL;
    int err = uv_object_remove(o);
    if (err)
        return err;
    resp->events_reported = o->async_events;
    uv_object_drop(call->context, o);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/cq.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>

int uv_create_comp_channel(struct uv_call *call)
{
    struct ib_uverbs_create_comp_channel_resp *resp = call->resp;
    int fd = uv_channel_open(call->file);
    if (fd < 0)
        return -fd;
    resp->fd = (uint32_t)fd;
    return 0;
}

int uv_create_cq(struct uv_call *call)
{
    const struct ib_uverbs_create_cq *cmd = call->in;
    struct ib_uverbs_create_cq_resp *resp = call->resp;
    struct uv_file *channel = NULL;
    if (cmd->cqe > INT32_MAX || cmd->comp_vector > INT32_MAX)
        return EINVAL;
    if (cmd->comp_channel != -1) {
        channel = uv_channel_get(call->file, cmd->comp_channel);
        if (!channel)
            return EBADF;
    }
    struct uv_object *o = uv_object_add(call->context, UV_CQ, cmd->user_handle);
    if (!o) {
        if (channel)
            uv_file_put(channel);
        return ENOMEM;
    }
    o->channel = channel;
    o->cq = ibv_create_cq(call->context->verbs, (int)cmd->cqe, o,
                          channel ? ((struct uv_channel *)channel->object)->verbs : NULL,
                          (int)cmd->comp_vector);
    if (!o->cq) {
        int err = errno;
        uv_object_drop(call->context, o);
        return err;
    }
    resp->cq_handle = o->handle;
    resp->cqe = (uint32_t)o->cq->cqe;
    return 0;
}

int uv_resize_cq(struct uv_call *call)
{
    const struct ib_uverbs_resize_cq *cmd = call->in;
    struct ib_uverbs_resize_cq_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_CQ, cmd->cq_handle);
    if (!o || cmd->cqe > INT32_MAX)
        return EINVAL;
    int err = ibv_resize_cq(o->cq, (int)cmd->cqe);
    if (!err)
        resp->cqe = (uint32_t)o->cq->cqe;
    return err;
}

int uv_destroy_cq(struct uv_call *call)
{
    const struct ib_uverbs_destroy_cq *cmd = call->in;
    struct ib_uverbs_destroy_cq_resp *resp = call->resp;
    struct uv_object *o = uv_object_get(call->context, UV_CQ, cmd->cq_handle);
    if (!o)
        return EINVAL;
    int err = uv_object_remove(o);
    if (err)
        return err;
    resp->comp_events_reported = o->comp_events;
    resp->async_events_reported = o->async_events;
    uv_object_drop(call->context, o);
    return 0;
}

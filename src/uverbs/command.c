/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/command.h"

#include <anywarp/uverbs.h>

#include "uverbs/cq.h"
#include "uverbs/device.h"
#include "uverbs/pd.h"
#include "uverbs/post.h"
#include "uverbs/qp.h"
#include "uverbs/srq.h"
#include "uverbs/trace.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

enum { COMMANDS = IB_USER_VERBS_CMD_QUERY_PKEY + 1, RESPONSE_MAX = 224 };

#define ROW(name, in, out_linux, out_full, class, execute)                                         \
    [IB_USER_VERBS_CMD_##name] = {#name, in, out_linux, out_full, class, execute}

static const struct uv_command commands[COMMANDS] = {
    ROW(GET_CONTEXT, 8, 8, 8, UV_MAKES | UV_FIRST, uv_get_context),
    ROW(QUERY_DEVICE, 8, 176, 176, 0, uv_query_device),
    ROW(QUERY_PORT, 16, 40, 40, 0, uv_query_port),
    ROW(ALLOC_PD, 8, 4, 200, UV_MAKES, uv_alloc_pd),
    ROW(DEALLOC_PD, 4, 0, 0, UV_MAKES, uv_dealloc_pd),
    ROW(CREATE_AH, 56, 4, 4, UV_MAKES, uv_create_ah),
    ROW(DESTROY_AH, 4, 0, 0, UV_MAKES, uv_destroy_ah),
    ROW(REG_MR, 40, 12, 12, UV_MAKES, uv_reg_mr),
    ROW(DEREG_MR, 4, 0, 0, UV_MAKES, uv_dereg_mr),
    ROW(CREATE_COMP_CHANNEL, 8, 4, 4, UV_MAKES, uv_create_comp_channel),
    ROW(CREATE_CQ, 32, 8, 200, UV_MAKES, uv_create_cq),
    ROW(RESIZE_CQ, 16, 4, 200, UV_MAKES, uv_resize_cq),
    ROW(DESTROY_CQ, 16, 8, 8, UV_MAKES, uv_destroy_cq),
    ROW(POLL_CQ, 16, 8, 8, UV_DATA | UV_ANSWERS, uv_poll_cq),
    ROW(REQ_NOTIFY_CQ, 8, 0, 0, UV_DATA, uv_req_notify_cq),
    ROW(CREATE_QP, 56, 32, 224, UV_MAKES, uv_create_qp),
    ROW(QUERY_QP, 16, 128, 128, 0, uv_query_qp),
    ROW(MODIFY_QP, 112, 0, 0, 0, uv_modify_qp),
    ROW(DESTROY_QP, 16, 4, 4, UV_MAKES, uv_destroy_qp),
    ROW(POST_SEND, 24, 4, 4, UV_DATA | UV_ANSWERS, uv_post_send),
    ROW(POST_RECV, 24, 4, 4, UV_DATA | UV_ANSWERS, uv_post_recv),
    ROW(ATTACH_MCAST, 24, 0, 0, 0, uv_attach_mcast),
    ROW(DETACH_MCAST, 24, 0, 0, 0, uv_detach_mcast),
    ROW(CREATE_SRQ, 32, 16, 208, UV_MAKES, uv_create_srq),
    ROW(MODIFY_SRQ, 16, 0, 0, 0, uv_modify_srq),
    ROW(QUERY_SRQ, 16, 16, 16, 0, uv_query_srq),
    ROW(DESTROY_SRQ, 16, 4, 4, UV_MAKES | UV_MAY_SKIP, uv_destroy_srq),
    ROW(POST_SRQ_RECV, 24, 4, 4, UV_DATA | UV_ANSWERS, uv_post_srq_recv),
    ROW(QUERY_GID, 16, 16, 16, 0, uv_query_gid),
    ROW(QUERY_PKEY, 16, 4, 4, 0, uv_query_pkey),
};

const struct uv_command *uv_command_row(uint32_t number)
{
    return number < COMMANDS && commands[number].execute ? &commands[number] : NULL;
}

/* With the context's lock held, as the row's class wants it. */
static int execute_locked(const struct uv_command *row, struct uv_call *call)
{
    struct uv_context *c = call->context;
    if (c->closed)
        return EBADF;
    if (!c->verbs && !(row->class & UV_FIRST))
        return EINVAL;
    if (call->in_len < row->in)
        return EINVAL;
    bool skip = (row->class & UV_MAY_SKIP) && call->out_len == 0;
    if (!skip && call->out_len < row->out_linux)
        return ENOSPC;

    size_t len = call->out_len < row->out_full ? call->out_len : row->out_full;
    if (len && !uv_writable(call->out, len, row->class & UV_DATA))
        return EFAULT;
    int err = row->execute(call);
    if (!err && len && !(row->class & UV_ANSWERS))
        memcpy((void *)(uintptr_t)call->out, call->resp, len);
    return err;
}

int uv_execute(struct uv_file *f, const struct uv_command *row, const uint8_t *bytes, size_t len,
               uint64_t out, size_t out_len)
{
    uint64_t in[16], resp[RESPONSE_MAX / 8];
    struct uv_call call = {
        .file = f,
        .context = f->object,
        .in = bytes,
        .rest = bytes + row->in, /* looked at after in_len has been */
        .in_len = len,
        .resp = resp,
        .out = out,
        .out_len = out_len,
    };
    if (!(row->class & UV_DATA)) /* those answer for themselves, or not at all */
        memset(resp, 0, sizeof resp);
    if ((uintptr_t)bytes % 8) {
        memcpy(in, bytes, row->in < len ? row->in : len);
        call.in = in;
    }
    if (row->class & UV_MAKES)
        pthread_rwlock_wrlock(&call.context->lock);
    else
        pthread_rwlock_rdlock(&call.context->lock);
    int err = execute_locked(row, &call);
    pthread_rwlock_unlock(&call.context->lock);
    return err;
}

static int written(struct uv_file *f, const uint8_t *command, size_t len,
                   const struct uv_command **found, struct ib_uverbs_cmd_hdr *hdr)
{
    if (len < sizeof *hdr)
        return EINVAL;
    if (!uv_readable((uintptr_t)command, sizeof *hdr, true))
        return EFAULT;
    memcpy(hdr, command, sizeof *hdr);
    if (hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED) /* whose words are counted otherwise */
        return ENOSYS;
    if (hdr->in_words * (size_t)4 != len)
        return EINVAL;
    const struct uv_command *row = *found = uv_command_row(hdr->command);
    if (!row)
        return EINVAL;
    if (!uv_readable((uintptr_t)command, len, row->class & UV_DATA))
        return EFAULT;

    const uint8_t *in = command + sizeof *hdr;
    uint64_t out = 0; /* the first member of every struct that has a response */
    if (len - sizeof *hdr >= sizeof out)
        memcpy(&out, in, sizeof out);
    return uv_execute(f, row, in, len - sizeof *hdr, out, hdr->out_words * (size_t)4);
}

ssize_t uv_command(struct uv_file *f, const uint8_t *command, size_t len)
{
    const struct uv_command *row = NULL;
    struct ib_uverbs_cmd_hdr hdr = {0};
    int err = written(f, command, len, &row, &hdr);
    ssize_t result = err ? -err : (ssize_t)len;
    uv_trace(row ? row->name : "unknown", hdr.in_words, hdr.out_words, result);
    return result;
}

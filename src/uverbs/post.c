/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/post.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>

/* What most programs post at once has room on the stack; the rest is allocated. */
enum { WRS = 16, SGES = 32, POLLED = 16 };

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct ib_uverbs_sge), "the same but for the name");

/** The work requests and what they point to, rebuilt from the bytes of a command. */
struct list {
    uint32_t count;
    uint32_t stride;
    const uint8_t *wrs;
    size_t wr_len; /* of struct ibv_send_wr or ibv_recv_wr */
    union {
        struct ibv_send_wr send[WRS];
        struct ibv_recv_wr recv[WRS];
    } few;
    struct ibv_sge few_sges[SGES];
    void *heap;
    void *posted; /* the array of count */
    struct ibv_sge *sges;
    uint32_t sges_left;
};

/** @return 0; EINVAL: lengths that contradict each other; ENOMEM */
static int list_init(struct list *l, const struct uv_call *call, size_t fixed, size_t wire_len,
                     size_t wr_len)
{
    const struct ib_uverbs_post_send *cmd = call->in; /* all three have the same fields */
    uint64_t wrs = (uint64_t)cmd->wr_count * cmd->wqe_size;
    uint64_t sges = (uint64_t)cmd->sge_count * sizeof(struct ib_uverbs_sge);
    uint64_t room = call->in_len - fixed;
    if (cmd->wqe_size < wire_len || wrs > room || sges > room - wrs)
        return EINVAL;
    l->count = cmd->wr_count;
    l->stride = cmd->wqe_size;
    l->wrs = call->rest;
    l->wr_len = wr_len;
    l->heap = NULL;
    l->posted = &l->few;
    l->sges = l->few_sges;
    l->sges_left = cmd->sge_count;
    if (cmd->wr_count > WRS || cmd->sge_count > SGES) {
        l->heap = malloc(cmd->wr_count * wr_len + sges);
        if (!l->heap)
            return ENOMEM;
        l->posted = l->heap;
        l->sges = (void *)((uint8_t *)l->heap + cmd->wr_count * wr_len);
    }
    memcpy(l->sges, l->wrs + wrs, sges);
    return 0;
}

static struct ibv_sge *take(struct list *l, uint32_t count)
{
    if (count > l->sges_left)
        return NULL;
    struct ibv_sge *sges = l->sges;
    l->sges += count;
    l->sges_left -= count;
    return sges;
}

static int recv_init(struct list *l)
{
    struct ibv_recv_wr *wrs = l->posted;
    for (uint32_t i = 0; i < l->count; i++) {
        struct ib_uverbs_recv_wr in;
        memcpy(&in, l->wrs + (size_t)i * l->stride, sizeof in);
        struct ibv_sge *sges = take(l, in.num_sge);
        if (!sges)
            return EINVAL;
        wrs[i] = (struct ibv_recv_wr){
            .wr_id = in.wr_id,
            .next = i + 1 < l->count ? &wrs[i + 1] : NULL,
            .sg_list = sges,
            .num_sge = (int)in.num_sge,
        };
    }
    return l->sges_left ? EINVAL : 0;
}

/* The data of an inline send is read when it is posted. */
static bool inline_readable(const struct ibv_sge *sges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sges[i].length && !uv_readable(sges[i].addr, sges[i].length, true))
            return false;
    }
    return true;
}

static int send_init(struct list *l, struct uv_context *c, enum ibv_qp_type type)
{
    struct ibv_send_wr *wrs = l->posted;
    for (uint32_t i = 0; i < l->count; i++) {
        struct ib_uverbs_send_wr in;
        memcpy(&in, l->wrs + (size_t)i * l->stride, sizeof in);
        struct ibv_sge *sges = take(l, in.num_sge);
        if (!sges)
            return EINVAL;
        if ((in.send_flags & IBV_SEND_INLINE) && !inline_readable(sges, in.num_sge))
            return EFAULT;
        wrs[i] = (struct ibv_send_wr){
            .wr_id = in.wr_id,
            .next = i + 1 < l->count ? &wrs[i + 1] : NULL,
            .sg_list = sges,
            .num_sge = (int)in.num_sge,
            .opcode = in.opcode,
            .send_flags = in.send_flags,
            .imm_data = in.ex.imm_data,
        };
        struct ibv_send_wr *wr = &wrs[i];
        if (type == IBV_QPT_UD) {
            struct uv_object *ah = uv_object_get(c, UV_AH, in.wr.ud.ah);
            if (!ah)
                return EINVAL;
            wr->wr.ud.ah = ah->ah;
            wr->wr.ud.remote_qpn = in.wr.ud.remote_qpn;
            wr->wr.ud.remote_qkey = in.wr.ud.remote_qkey;
        } else if (in.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                   in.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wr->wr.atomic.remote_addr = in.wr.atomic.remote_addr;
            wr->wr.atomic.compare_add = in.wr.atomic.compare_add;
            wr->wr.atomic.swap = in.wr.atomic.swap;
            wr->wr.atomic.rkey = in.wr.atomic.rkey;
        } else {
            wr->wr.rdma.remote_addr = in.wr.rdma.remote_addr;
            wr->wr.rdma.rkey = in.wr.rdma.rkey;
        }
    }
    return l->sges_left ? EINVAL : 0;
}

/* The number of the work request that failed, from 1; all before it are posted. */
static void answer(const struct uv_call *call, struct list *l, const void *bad)
{
    struct ib_uverbs_post_send_resp resp = {0};
    if (bad)
        resp.bad_wr =
            (uint32_t)((size_t)((const uint8_t *)bad - (uint8_t *)l->posted) / l->wr_len) + 1;
    memcpy((void *)(uintptr_t)call->out, &resp, sizeof resp);
}

int uv_post_send(struct uv_call *call)
{
    const struct ib_uverbs_post_send *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_QP, cmd->qp_handle);
    if (!o)
        return EINVAL;
    struct list l;
    struct ibv_send_wr *bad = NULL;
    int err = list_init(&l, call, sizeof *cmd, sizeof(struct ib_uverbs_send_wr),
                        sizeof(struct ibv_send_wr));
    if (err)
        return err;
    err = send_init(&l, call->context, o->qp->qp_type);
    if (!err && l.count)
        err = ibv_post_send(o->qp, l.posted, &bad);
    answer(call, &l, err ? bad : NULL);
    free(l.heap);
    return err;
}

static int post_recv(struct uv_call *call, struct uv_object *o)
{
    if (!o)
        return EINVAL;
    struct list l;
    struct ibv_recv_wr *bad = NULL;
    int err = list_init(&l, call, sizeof(struct ib_uverbs_post_recv),
                        sizeof(struct ib_uverbs_recv_wr), sizeof(struct ibv_recv_wr));
    if (err)
        return err;
    err = recv_init(&l);
    if (!err && l.count)
        err = o->type == UV_QP ? ibv_post_recv(o->qp, l.posted, &bad)
                               : ibv_post_srq_recv(o->srq, l.posted, &bad);
    answer(call, &l, err ? bad : NULL);
    free(l.heap);
    return err;
}

int uv_post_recv(struct uv_call *call)
{
    const struct ib_uverbs_post_recv *cmd = call->in;
    return post_recv(call, uv_object_get(call->context, UV_QP, cmd->qp_handle));
}

int uv_post_srq_recv(struct uv_call *call)
{
    const struct ib_uverbs_post_srq_recv *cmd = call->in;
    return post_recv(call, uv_object_get(call->context, UV_SRQ, cmd->srq_handle));
}

int uv_poll_cq(struct uv_call *call)
{
    const struct ib_uverbs_poll_cq *cmd = call->in;
    size_t head = sizeof(struct ib_uverbs_poll_cq_resp);
    struct uv_object *o = uv_object_get(call->context, UV_CQ, cmd->cq_handle);
    if (!o)
        return EINVAL;
    if ((call->out_len - head) / sizeof(struct ib_uverbs_wc) < cmd->ne)
        return ENOSPC;
    if (!uv_writable(call->out, head + cmd->ne * sizeof(struct ib_uverbs_wc), true))
        return EFAULT;

    struct ib_uverbs_poll_cq_resp resp = {0};
    uint8_t *out = (uint8_t *)(uintptr_t)call->out + head;
    while (resp.count < cmd->ne) {
        struct ibv_wc polled[POLLED];
        uint32_t want = cmd->ne - resp.count < POLLED ? cmd->ne - resp.count : POLLED;
        int n = ibv_poll_cq(o->cq, (int)want, polled);
        if (n < 0 && !resp.count)
            return errno ? errno : EIO;
        for (int i = 0; i < n; i++) {
            const struct ibv_wc *wc = &polled[i];
            struct ib_uverbs_wc record = {
                .wr_id = wc->wr_id,
                .status = wc->status,
                .opcode = wc->opcode,
                .vendor_err = wc->vendor_err,
                .byte_len = wc->byte_len,
                .ex.imm_data = wc->imm_data,
                .qp_num = wc->qp_num,
                .src_qp = wc->src_qp,
                .wc_flags = wc->wc_flags,
                .pkey_index = wc->pkey_index,
                .slid = wc->slid,
                .sl = wc->sl,
                .dlid_path_bits = wc->dlid_path_bits,
                .port_num = 1,
            };
            memcpy(out, &record, sizeof record);
            out += sizeof record;
        }
        if (n > 0)
            resp.count += (uint32_t)n;
        if (n < (int)want)
            break;
    }
    memcpy((void *)(uintptr_t)call->out, &resp, head);
    return 0;
}

int uv_req_notify_cq(struct uv_call *call)
{
    const struct ib_uverbs_req_notify_cq *cmd = call->in;
    struct uv_object *o = uv_object_get(call->context, UV_CQ, cmd->cq_handle);
    return o ? ibv_req_notify_cq(o->cq, cmd->solicited_only != 0) : EINVAL;
}

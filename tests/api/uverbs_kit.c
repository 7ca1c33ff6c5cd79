/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/uverbs_kit.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROW(name, in, out)                                                                         \
    {                                                                                              \
#name, IB_USER_VERBS_CMD_##name, in, out                                                   \
    }

const struct uv_row uv_rows[] = {
    ROW(GET_CONTEXT, 8, 8),   ROW(QUERY_DEVICE, 8, 176),
    ROW(QUERY_PORT, 16, 40),  ROW(ALLOC_PD, 8, 4),
    ROW(DEALLOC_PD, 4, 0),    ROW(CREATE_AH, 56, 4),
    ROW(DESTROY_AH, 4, 0),    ROW(REG_MR, 40, 12),
    ROW(DEREG_MR, 4, 0),      ROW(CREATE_COMP_CHANNEL, 8, 4),
    ROW(CREATE_CQ, 32, 8),    ROW(RESIZE_CQ, 16, 4),
    ROW(DESTROY_CQ, 16, 8),   ROW(POLL_CQ, 16, 8),
    ROW(REQ_NOTIFY_CQ, 8, 0), ROW(CREATE_QP, 56, 32),
    ROW(QUERY_QP, 16, 128),   ROW(MODIFY_QP, 112, 0),
    ROW(DESTROY_QP, 16, 4),   ROW(POST_SEND, 24, 4),
    ROW(POST_RECV, 24, 4),    ROW(ATTACH_MCAST, 24, 0),
    ROW(DETACH_MCAST, 24, 0), ROW(CREATE_SRQ, 32, 16),
    ROW(MODIFY_SRQ, 16, 0),   ROW(QUERY_SRQ, 16, 16),
    ROW(DESTROY_SRQ, 16, 4),  ROW(POST_SRQ_RECV, 24, 4),
    ROW(QUERY_GID, 16, 16),   ROW(QUERY_PKEY, 16, 4),
};
const size_t uv_row_count = sizeof uv_rows / sizeof uv_rows[0];

int uv_send(int fd, uint32_t number, const void *bytes, size_t in, void *resp, size_t out)
{
    uint64_t buffer[32] = {0}, address = (uintptr_t)resp;
    uint8_t *command = (uint8_t *)buffer;
    struct ib_uverbs_cmd_hdr hdr = {number, (uint16_t)((in + 8) / 4), (uint16_t)(out / 4)};
    assert_true(in + sizeof hdr <= sizeof buffer);
    memcpy(command, &hdr, sizeof hdr);
    memcpy(command + sizeof hdr, bytes, in);
    if (out)
        memcpy(command + sizeof hdr, &address, sizeof address);
    errno = 0;
    ssize_t n = anywarp_uverbs_write(fd, command, in + sizeof hdr);
    assert_true(n == (ssize_t)(in + sizeof hdr) || n == -1);
    return n < 0 ? errno : 0;
}

int uv_open(void)
{
    uint32_t in[2] = {0}, resp[2] = {0};
    int fd = anywarp_uverbs_open(NULL);
    assert_true(fd >= 0);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_ALLOC_PD, in, 8, resp, 8), EINVAL);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_GET_CONTEXT, in, 8, resp, 8), 0);
    assert_int_not_equal(resp[1], 0);
    struct pollfd nothing = {(int)resp[0], POLLIN, 0};
    assert_int_equal(poll(&nothing, 1, 0), 0);
    assert_int_equal(anywarp_uverbs_close((int)resp[0]), 0);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_GET_CONTEXT, in, 8, resp, 8), EINVAL);
    return fd;
}

int uv_modify(struct uv_world *w, enum ibv_qp_state state, uint32_t mask)
{
    struct ib_uverbs_modify_qp modify = {
        .qp_handle = w->qp,
        .attr_mask = IBV_QP_STATE | mask,
        .qp_state = (uint8_t)state,
        .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
        .port_num = 1,
    };
    return uv_send(w->fd, IB_USER_VERBS_CMD_MODIFY_QP, &modify, 112, NULL, 0);
}

void uv_make(struct uv_world *w)
{
    uint32_t none[2] = {0}, cq[2];
    w->fd = uv_open();
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_ALLOC_PD, none, 8, &w->pd, 4), 0);
    struct ib_uverbs_reg_mr reg = {
        .start = (uintptr_t)w->memory,
        .length = sizeof w->memory,
        .hca_va = (uintptr_t)w->memory,
        .pd_handle = w->pd,
        .access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
    };
    struct ib_uverbs_reg_mr_resp mr;
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_REG_MR, &reg, 40, &mr, 12), 0);
    w->mr = mr.mr_handle;
    w->lkey = mr.lkey;
    w->rkey = mr.rkey;
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, none, 8, &w->channel, 4),
                     0);
    struct ib_uverbs_create_cq make_cq = {
        .user_handle = (uintptr_t)w, .cqe = 8, .comp_channel = w->channel};
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_CREATE_CQ, &make_cq, 32, cq, 8), 0);
    w->cq = cq[0];
    struct ib_uverbs_create_srq make_srq = {.pd_handle = w->pd, .max_wr = 4, .max_sge = 1};
    struct ib_uverbs_create_srq_resp srq;
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_CREATE_SRQ, &make_srq, 32, &srq, 16), 0);
    w->srq = srq.srq_handle;
    struct ib_uverbs_create_qp make_qp = {
        .user_handle = 0x1020304050607080,
        .pd_handle = w->pd,
        .send_cq_handle = w->cq,
        .recv_cq_handle = w->cq,
        .max_send_wr = 4,
        .max_recv_wr = 4,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .max_inline_data = 16,
        .sq_sig_all = 1,
        .qp_type = IBV_QPT_RC,
    };
    struct ib_uverbs_create_qp_resp qp;
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_CREATE_QP, &make_qp, 56, &qp, 32), 0);
    w->qp = qp.qp_handle;
    w->qpn = qp.qpn;
    assert_int_equal(
        uv_modify(w, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
}

void uv_unmake(struct uv_world *w)
{
    uint32_t resp[2], qp[4] = {0, 0, w->qp, 0}, srq[4] = {0, 0, w->srq, 0},
                      cq[4] = {0, 0, w->cq, 0};
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_DESTROY_QP, qp, 16, resp, 4), 0);
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_DESTROY_SRQ, srq, 16, NULL, 0), 0);
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_DESTROY_CQ, cq, 16, resp, 8), 0);
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_DEREG_MR, &w->mr, 4, NULL, 0), 0);
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_DEALLOC_PD, &w->pd, 4, NULL, 0), 0);
    assert_int_equal(anywarp_uverbs_close(w->channel), 0);
    assert_int_equal(anywarp_uverbs_close(w->fd), 0);
}

/* The head of all three commands that post, a work request and what it points to. */
static int post(struct uv_world *w, uint32_t number, uint32_t handle, const void *wr, size_t size,
                uint32_t len)
{
    uint64_t bytes[14] = {0};
    struct ib_uverbs_post_send head = {.qp_handle = handle, .wr_count = 1, .sge_count = len != 0};
    struct ib_uverbs_sge sge = {(uintptr_t)w->memory, len, w->lkey};
    uint32_t bad;
    head.wqe_size = (uint32_t)size;
    memcpy(bytes, &head, 24);
    memcpy(bytes + 3, wr, size);
    if (len)
        memcpy((uint8_t *)bytes + 24 + size, &sge, sizeof sge);
    return uv_send(w->fd, number, bytes, 24 + size + (len ? sizeof sge : 0), &bad, 4);
}

int uv_post_recv(struct uv_world *w, uint64_t wr_id, uint32_t len)
{
    struct ib_uverbs_recv_wr wr = {.wr_id = wr_id, .num_sge = len != 0};
    return post(w, IB_USER_VERBS_CMD_POST_RECV, w->qp, &wr, sizeof wr, len);
}

int uv_post_send(struct uv_world *w, const struct ib_uverbs_send_wr *wr, uint32_t len)
{
    struct ib_uverbs_send_wr copy = *wr;
    copy.num_sge = len != 0;
    return post(w, IB_USER_VERBS_CMD_POST_SEND, w->qp, &copy, sizeof copy, len);
}

uint32_t uv_poll(struct uv_world *w, struct ib_uverbs_wc *wc)
{
    uint64_t resp[(8 + sizeof *wc) / 8];
    uint32_t poll_cq[4] = {0, 0, w->cq, 1}, count;
    assert_int_equal(uv_send(w->fd, IB_USER_VERBS_CMD_POLL_CQ, poll_cq, 16, resp, sizeof resp), 0);
    memcpy(&count, resp, 4);
    memcpy(wc, resp + 1, sizeof *wc);
    return count;
}

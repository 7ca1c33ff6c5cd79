/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs by commands alone, as bytes. */
#include "api/uverbs_kit.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void every_row_checks_its_lengths(void **state)
{
    (void)state;
    int fd = uv_open();
    uint32_t in[40] = {0};
    for (size_t i = 0; i < uv_row_count; i++) {
        uint64_t resp[40];
        assert_int_equal(uv_send(fd, uv_rows[i].number, in, uv_rows[i].in - 4, resp, 200), EINVAL);
        if (uv_rows[i].out && uv_rows[i].number != IB_USER_VERBS_CMD_DESTROY_SRQ)
            assert_int_equal(
                uv_send(fd, uv_rows[i].number, in, uv_rows[i].in, resp, uv_rows[i].out - 4),
                ENOSPC);
        if (uv_rows[i].out) /* no memory there, and none that can be written */
            assert_int_equal(
                uv_send(fd, uv_rows[i].number, in, uv_rows[i].in, NULL, uv_rows[i].out), EFAULT);
        void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(page, MAP_FAILED);
        if (uv_rows[i].out)
            assert_int_equal(
                uv_send(fd, uv_rows[i].number, in, uv_rows[i].in, page, uv_rows[i].out), EFAULT);
        munmap(page, 4096);
    }
    for (uint32_t number = 0; number < 60; number++) {
        uint64_t resp[40];
        bool known = false;
        for (size_t i = 0; i < uv_row_count; i++)
            known |= uv_rows[i].number == number;
        if (!known)
            assert_int_equal(uv_send(fd, number, in, 112, resp, 200), EINVAL);
        assert_int_equal(uv_send(fd, number | 0x80000000, in, 112, resp, 200), ENOSYS);
    }
    uint32_t odd[2] = {IB_USER_VERBS_CMD_ALLOC_PD, 0};
    assert_int_equal(anywarp_uverbs_write(fd, odd, 4), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(anywarp_uverbs_write(fd, odd, 8), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(anywarp_uverbs_close(fd), 0);
    assert_int_equal(anywarp_uverbs_close(fd), -1);
    assert_int_equal(errno, EBADF);
}

/* Commands where there is no memory, and commands that end where memory does. */
static void bad_addresses_of_commands(void **state)
{
    (void)state;
    int fd = uv_open(), ucm = anywarp_ucm_open();
    assert_true(ucm >= 0);
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    uint8_t *const nowhere[] = {NULL, (uint8_t *)8, pages + 4096, pages + 4096 - 8,
                                (uint8_t *)UINTPTR_MAX - 3};
    struct ib_uverbs_cmd_hdr hdr = {IB_USER_VERBS_CMD_ALLOC_PD, 4, 1};
    struct rdma_ucm_cmd_hdr cm_hdr = {RDMA_USER_CM_CMD_CREATE_ID, 24, 4};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        if (nowhere[i] == pages + 4096 - 8)
            memcpy(nowhere[i], &hdr, sizeof hdr);
        assert_int_equal(anywarp_uverbs_write(fd, nowhere[i], 16), -1);
        assert_int_equal(errno, EFAULT);
        if (nowhere[i] == pages + 4096 - 8)
            memcpy(nowhere[i], &cm_hdr, sizeof cm_hdr);
        assert_int_equal(anywarp_uverbs_write(ucm, nowhere[i], 32), -1);
        assert_int_equal(errno, EFAULT);
    }
    uint64_t pd = 0, resp = (uintptr_t)&pd;
    memcpy(pages + 4096 - 16, &hdr, sizeof hdr);
    memcpy(pages + 4096 - 8, &resp, sizeof resp);
    assert_int_equal(anywarp_uverbs_write(fd, pages + 4096 - 16, 16), 16);
    assert_int_not_equal(pd, 0);
    munmap(pages, 8192);
    assert_int_equal(anywarp_uverbs_close(ucm), 0);
    assert_int_equal(anywarp_uverbs_close(fd), 0);
}

static void objects_by_commands(void **state)
{
    (void)state;
    int fd = uv_open();
    uint32_t resp[60], none[4] = {0};

    struct ib_uverbs_query_device_resp device;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, none, 8, &device, sizeof device),
                     0);
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_true(device.node_guid == ibv_get_device_guid(list[0]));
    ibv_free_device_list(list);
    assert_int_equal(device.phys_port_cnt, 1);

    uint32_t table[4] = {0, 0, 0, 1};
    uint16_t pkey[2];
    assert_int_equal(uv_send(fd, 46, table, 16, pkey, 4), 0);
    assert_int_equal(pkey[0], 0xffff);
    table[2] = 1;
    assert_int_equal(uv_send(fd, 46, table, 16, pkey, 4), EINVAL);

    memset(resp, 0xff, sizeof resp); /* all of the longer response is written */
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_ALLOC_PD, none, 8, resp, 200), 0);
    uint32_t pd = resp[0];
    for (int i = 1; i < 50; i++)
        assert_int_equal(resp[i], 0);
    assert_int_equal(resp[50], UINT32_MAX);

    static uint64_t memory[8];
    struct ib_uverbs_reg_mr reg = {
        .start = (uintptr_t)memory,
        .length = sizeof memory,
        .hca_va = (uintptr_t)memory,
        .pd_handle = pd,
        .access_flags = IBV_ACCESS_LOCAL_WRITE,
    };
    struct ib_uverbs_reg_mr_resp mr;
    reg.hca_va++;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_REG_MR, &reg, 40, &mr, 12), EINVAL);
    reg.hca_va--;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_REG_MR, &reg, 40, &mr, 12), 0);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DEALLOC_PD, &pd, 4, NULL, 0), EBUSY);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DEREG_MR, &pd, 4, NULL, 0), EINVAL);

    int32_t channel;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, none, 8, &channel, 4), 0);
    struct ib_uverbs_create_cq make_cq = {
        .user_handle = 0x1122334455667788, .cqe = 4, .comp_channel = fd};
    uint32_t cq[2];
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_CREATE_CQ, &make_cq, 32, cq, 8), EBADF);
    make_cq.comp_channel = channel;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_CREATE_CQ, &make_cq, 32, cq, 8), 0);
    assert_true(cq[1] >= 4);

    struct ib_uverbs_create_qp make_qp = {
        .pd_handle = pd,
        .send_cq_handle = cq[0],
        .recv_cq_handle = cq[0],
        .max_send_wr = 2,
        .max_recv_wr = 2,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .qp_type = IBV_QPT_RC,
    };
    struct ib_uverbs_create_qp_resp qp;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_CREATE_QP, &make_qp, 56, &qp, sizeof qp), 0);
    uint32_t destroy_cq[4] = {0, 0, cq[0], 0};
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DESTROY_CQ, destroy_cq, 16, resp, 8), EBUSY);

    /* Arm, to error with a receive posted: the event, then the flushed completion. */
    uint32_t arm[2] = {cq[0], 0};
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, arm, 8, NULL, 0), 0);
    struct ib_uverbs_modify_qp modify = {.qp_handle = qp.qp_handle};
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_MODIFY_QP, &modify, 112, NULL, 0), 0);
    modify.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    modify.qp_state = IBV_QPS_INIT;
    modify.port_num = 1;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_MODIFY_QP, &modify, 112, NULL, 0), 0);
    /* Each ends with an array without a length, so none is a member: what stands there is its. */
    uint64_t recv[(sizeof(struct ib_uverbs_post_recv) + sizeof(struct ib_uverbs_recv_wr) +
                   sizeof(struct ib_uverbs_sge)) /
                  8];
    struct ib_uverbs_post_recv *post = (void *)recv;
    struct ib_uverbs_recv_wr *wr = (void *)(post + 1);
    *post = (struct ib_uverbs_post_recv){
        .qp_handle = qp.qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = 16};
    *wr = (struct ib_uverbs_recv_wr){.wr_id = 77, .num_sge = 1};
    *(struct ib_uverbs_sge *)(wr + 1) =
        (struct ib_uverbs_sge){.addr = (uintptr_t)memory, .length = sizeof memory, .lkey = mr.lkey};
    uint32_t bad = 9;
    const uint32_t lies[][3] = {/* wr_count, sge_count, wqe_size */
                                {2, 1, 16},          {1, 2, 16},        {1, 0, 16},
                                {1, 1, 15},          {1, 1, 32},        {UINT32_MAX, 1, 16},
                                {1, UINT32_MAX, 16}, {1, 1, UINT32_MAX}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        post->wr_count = lies[i][0];
        post->sge_count = lies[i][1];
        post->wqe_size = lies[i][2];
        assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_POST_RECV, recv, sizeof recv, &bad, 4),
                         EINVAL);
    }
    post->wr_count = post->sge_count = 1;
    post->wqe_size = 16;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_POST_RECV, recv, sizeof recv, &bad, 4), 0);
    assert_int_equal(bad, 0);
    modify.attr_mask = IBV_QP_STATE;
    modify.qp_state = IBV_QPS_ERR;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_MODIFY_QP, &modify, 112, NULL, 0), 0);

    struct pollfd readable = {channel, POLLIN, 0};
    assert_int_equal(poll(&readable, 1, 20000), 1);
    uint64_t event;
    assert_int_equal(anywarp_uverbs_read(channel, &event, 4), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(anywarp_uverbs_read(channel, &event, 8), 8);
    assert_true(event == 0x1122334455667788);
    uint64_t polled[(sizeof(struct ib_uverbs_poll_cq_resp) + 2 * sizeof(struct ib_uverbs_wc)) / 8];
    const struct ib_uverbs_poll_cq_resp *head = (void *)polled;
    const struct ib_uverbs_wc *wc = (const void *)(head + 1);
    uint32_t poll_cq[4] = {0, 0, cq[0], 2};
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_POLL_CQ, poll_cq, 16, polled, 56), ENOSPC);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_POLL_CQ, poll_cq, 16, polled, 104), 0);
    assert_int_equal(head->count, 1);
    assert_int_equal(wc[0].wr_id, 77);
    assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc[0].qp_num, qp.qpn);

    uint32_t destroy_qp[4] = {0, 0, qp.qp_handle, 0};
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DESTROY_QP, destroy_qp, 16, resp, 4), 0);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DESTROY_QP, destroy_qp, 16, resp, 4), EINVAL);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DESTROY_CQ, destroy_cq, 16, resp, 8), 0);
    assert_int_equal(resp[0], 1);
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_DEREG_MR, &mr.mr_handle, 4, NULL, 0), 0);

    /* What is left goes with the descriptor. */
    assert_int_equal(anywarp_uverbs_close(channel), 0);
    assert_int_equal(anywarp_uverbs_close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_checks_its_lengths),
        cmocka_unit_test(bad_addresses_of_commands),
        cmocka_unit_test(objects_by_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands with lengths and handles that lie: an errno, nothing made, nothing gone. */
#include "api/uverbs_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Where commands have handles, from behind the header on, and whose. */
enum kind { PD, MR, CQ, SRQ, QP, KINDS };
static const struct {
    uint32_t number;
    size_t at;
    enum kind kind;
} handles[] = {
    {IB_USER_VERBS_CMD_DEALLOC_PD, 0, PD},    {IB_USER_VERBS_CMD_CREATE_AH, 16, PD},
    {IB_USER_VERBS_CMD_REG_MR, 32, PD},       {IB_USER_VERBS_CMD_DEREG_MR, 0, MR},
    {IB_USER_VERBS_CMD_RESIZE_CQ, 8, CQ},     {IB_USER_VERBS_CMD_DESTROY_CQ, 8, CQ},
    {IB_USER_VERBS_CMD_POLL_CQ, 8, CQ},       {IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, 0, CQ},
    {IB_USER_VERBS_CMD_CREATE_QP, 16, PD},    {IB_USER_VERBS_CMD_CREATE_QP, 20, CQ},
    {IB_USER_VERBS_CMD_CREATE_QP, 24, CQ},    {IB_USER_VERBS_CMD_CREATE_QP, 28, SRQ},
    {IB_USER_VERBS_CMD_QUERY_QP, 8, QP},      {IB_USER_VERBS_CMD_MODIFY_QP, 64, QP},
    {IB_USER_VERBS_CMD_DESTROY_QP, 8, QP},    {IB_USER_VERBS_CMD_POST_SEND, 8, QP},
    {IB_USER_VERBS_CMD_POST_RECV, 8, QP},     {IB_USER_VERBS_CMD_ATTACH_MCAST, 16, QP},
    {IB_USER_VERBS_CMD_DETACH_MCAST, 16, QP}, {IB_USER_VERBS_CMD_CREATE_SRQ, 16, PD},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, 0, SRQ},   {IB_USER_VERBS_CMD_QUERY_SRQ, 8, SRQ},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, 8, SRQ},  {IB_USER_VERBS_CMD_POST_SRQ_RECV, 8, SRQ},
};

static const struct uv_row *row_of(uint32_t number)
{
    for (size_t i = 0; i < uv_row_count; i++) {
        if (uv_rows[i].number == number)
            return &uv_rows[i];
    }
    fail();
    return NULL;
}

static uint32_t handle_of(const struct uv_world *w, enum kind kind)
{
    return kind == PD    ? w->pd
           : kind == MR  ? w->mr
           : kind == CQ  ? w->cq
           : kind == SRQ ? w->srq
                         : w->qp;
}

/* A command of zeros but for good handles. */
static void good_handles(const struct uv_world *w, uint32_t number, uint8_t bytes[112])
{
    memset(bytes, 0, 112);
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        uint32_t handle = handle_of(w, handles[i].kind);
        if (handles[i].number == number)
            memcpy(bytes + handles[i].at, &handle, 4);
    }
    if (number == IB_USER_VERBS_CMD_CREATE_QP)
        bytes[54] = 1; /* is_srq */
}

/* Every length that is too short, for the struct and for the response, before any handle is looked
 * at. */
static void all_short_lengths(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint8_t bytes[112];
    uint64_t resp[28];
    for (size_t i = 0; i < uv_row_count; i++) {
        const struct uv_row *row = &uv_rows[i];
        for (size_t in = 0; in < row->in; in += 4) {
            good_handles(&w, row->number, bytes);
            assert_int_equal(uv_send(w.fd, row->number, bytes, in, resp, sizeof resp), EINVAL);
        }
        for (size_t out = 0; out < row->out; out += 4) {
            if (row->number == IB_USER_VERBS_CMD_DESTROY_SRQ && out == 0)
                continue;
            good_handles(&w, row->number, bytes);
            assert_int_equal(uv_send(w.fd, row->number, bytes, row->in, resp, out), ENOSPC);
        }
    }
    uv_unmake(&w);
}

/* The words of the header against what was written. */
static void in_words_and_len_agree(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint64_t command[16] = {0};
    for (size_t i = 0; i < uv_row_count; i++) {
        const struct uv_row *row = &uv_rows[i];
        size_t len = row->in + 8;
        for (uint32_t words = 0; words < 70; words++) {
            struct ib_uverbs_cmd_hdr hdr = {row->number, (uint16_t)words, 0};
            memcpy(command, &hdr, sizeof hdr);
            if (words * 4 == len)
                continue;
            assert_int_equal(anywarp_uverbs_write(w.fd, command, len), -1);
            assert_int_equal(errno, EINVAL);
        }
        for (size_t odd = 0; odd < 12; odd++) {
            struct ib_uverbs_cmd_hdr hdr = {row->number, (uint16_t)(len / 4), 0};
            memcpy(command, &hdr, sizeof hdr);
            assert_int_equal(anywarp_uverbs_write(w.fd, command, odd), -1);
            assert_int_equal(errno, EINVAL);
        }
    }
    uv_unmake(&w);
}

/* Handles that were never given, that name another type, that are gone, or of another context. */
static void handles_that_name_nothing(void **state)
{
    (void)state;
    struct uv_world w = {0}, other = {0}, gone = {0};
    uv_make(&gone);
    uv_make(&w);
    uv_make(&other);
    struct uv_world stale = w;
    uint32_t none[2] = {0};
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_ALLOC_PD, none, 8, &stale.pd, 4), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &stale.pd, 4, NULL, 0), 0);
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        uint32_t good = handle_of(&w, handles[i].kind);
        uint32_t bad[] = {0,
                          UINT32_MAX,
                          good + (UINT32_C(1) << 20), /* of another generation */
                          good | 0xfffff,
                          stale.pd,
                          handle_of(&w, (handles[i].kind + 1) % KINDS),
                          handle_of(&w, (handles[i].kind + 2) % KINDS)};
        const struct uv_row *row = row_of(handles[i].number);
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            uint8_t bytes[112];
            uint64_t resp[28];
            good_handles(&w, row->number, bytes);
            memcpy(bytes + handles[i].at, &bad[k], 4);
            assert_int_equal(uv_send(w.fd, row->number, bytes, row->in, resp, row->out), EINVAL);
        }
    }
    /* The numbers are each context's own: what is destroyed by them here is there in the other. */
    uv_unmake(&gone);
    uint32_t destroy_qp[4] = {0, 0, w.qp, 0}, resp;
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_QP, destroy_qp, 16, &resp, 4), 0);
    assert_int_equal(uv_modify(&w, IBV_QPS_ERR, 0), EINVAL);
    assert_int_equal(uv_modify(&other, IBV_QPS_ERR, 0), 0);
    uv_unmake(&other);
    assert_int_equal(anywarp_uverbs_close(w.channel), 0);
    assert_int_equal(anywarp_uverbs_close(w.fd), 0);
}

/* What others need stays, in whatever order it is tried. */
static void what_is_needed_is_busy(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint32_t cq[4] = {0, 0, w.cq, 0}, srq[4] = {0, 0, w.srq, 0}, qp[4] = {0, 0, w.qp, 0}, resp[8];
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &w.pd, 4, NULL, 0), EBUSY);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_CQ, cq, 16, resp, 8), EBUSY);

    struct ib_uverbs_create_qp make = {
        .pd_handle = w.pd,
        .send_cq_handle = w.cq,
        .recv_cq_handle = w.cq,
        .srq_handle = w.srq,
        .max_send_wr = 1,
        .max_send_sge = 1,
        .qp_type = IBV_QPT_RC,
        .is_srq = 1,
    };
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_CREATE_QP, &make, 56, resp, 32), 0);
    uint32_t second[4] = {0, 0, resp[0], 0};
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_SRQ, srq, 16, resp, 4), EBUSY);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_QP, qp, 16, resp, 4), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_CQ, cq, 16, resp, 8), EBUSY);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_QP, second, 16, resp, 4), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_CQ, cq, 16, resp, 8), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &w.pd, 4, NULL, 0), EBUSY);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DESTROY_SRQ, srq, 16, resp, 4), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &w.pd, 4, NULL, 0), EBUSY);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEREG_MR, &w.mr, 4, NULL, 0), 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &w.pd, 4, NULL, 0), 0);
    assert_int_equal(anywarp_uverbs_close(w.channel), 0);
    assert_int_equal(anywarp_uverbs_close(w.fd), 0);
}

/* With the device go all objects, whichever descriptor is closed first; the rest reads as its end.
 */
static void closing_cascades(void **state)
{
    (void)state;
    for (int channel_first = 0; channel_first < 2; channel_first++) {
        struct uv_world w = {0};
        uint64_t event;
        uv_make(&w);
        assert_int_equal(uv_post_recv(&w, 1, 8), 0);
        if (channel_first)
            assert_int_equal(anywarp_uverbs_close(w.channel), 0);
        assert_int_equal(anywarp_uverbs_close(w.fd), 0);
        assert_int_equal(uv_modify(&w, IBV_QPS_ERR, 0), EBADF);
        if (!channel_first) {
            assert_int_equal(anywarp_uverbs_read(w.channel, &event, 7), -1);
            assert_int_equal(errno, EINVAL);
            assert_int_equal(anywarp_uverbs_close(w.channel), 0);
        }
    }
}

/* Inline data, and lists of work requests, that are not where they are said to be. */
static void hostile_work_requests(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint64_t bytes[24] = {0};
    uint32_t bad = 0;
    struct ib_uverbs_post_send head = {
        .qp_handle = w.qp, .wr_count = 1, .sge_count = 1, .wqe_size = 56};
    struct ib_uverbs_send_wr wr = {
        .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    uint8_t *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    const struct ib_uverbs_sge nowhere[] = {
        {8, 16, 0}, {(uintptr_t)page + 4, 8, 0}, {UINT64_MAX - 3, 16, 0}};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        memcpy(bytes, &head, 24);
        memcpy(bytes + 3, &wr, 56);
        memcpy(bytes + 10, &nowhere[i], 16);
        assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_POST_SEND, bytes, 96, &bad, 4), EFAULT);
    }
    munmap(page, 4096);
    const uint32_t lies[][4] = {
        /* wr_count, sge_count, wqe_size, num_sge */
        {2, 1, 56, 1},          {1, 2, 56, 1},          {1, 0, 56, 1},
        {1, 1, 55, 1},          {1, 1, 60, 1},          {1, 1, 56, 0},
        {1, 1, 56, 2},          {1, 1, 56, UINT32_MAX}, {UINT32_MAX, 1, 56, 1},
        {1, UINT32_MAX, 56, 1}, {1, 1, UINT32_MAX, 1},  {0x4924925, 0, 56, 0},
        {0, 0x10000000, 56, 0}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        head = (struct ib_uverbs_post_send){.qp_handle = w.qp,
                                            .wr_count = lies[i][0],
                                            .sge_count = lies[i][1],
                                            .wqe_size = lies[i][2]};
        wr.num_sge = lies[i][3];
        memcpy(bytes, &head, 24);
        memcpy(bytes + 3, &wr, 56);
        assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_POST_SEND, bytes, 96, &bad, 4), EINVAL);
    }
    /* None at all is a doorbell, and no error. */
    head = (struct ib_uverbs_post_send){.qp_handle = w.qp, .wqe_size = 56};
    memcpy(bytes, &head, 24);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_POST_SEND, bytes, 24, &bad, 4), 0);
    uv_unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_short_lengths),         cmocka_unit_test(in_words_and_len_agree),
        cmocka_unit_test(handles_that_name_nothing), cmocka_unit_test(what_is_needed_is_busy),
        cmocka_unit_test(closing_cascades),          cmocka_unit_test(hostile_work_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

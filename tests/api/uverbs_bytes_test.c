/* SPDX-License-Identifier: BSD-2-Clause */
/* Every verbs command byte by byte, and every response: what a libibverbs would write and find. */
#include "api/uverbs_kit.h"
#include "api/uverbs_text.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct uv_step steps[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, "00000000 0400 0200 @", "<a *4", 0},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, "01000000 0400 2c00 @", "*176", 0},
    {IB_USER_VERBS_CMD_QUERY_PORT, "02000000 0600 0a00 @ 01 0*7", "*40", 0},
    {IB_USER_VERBS_CMD_QUERY_PORT, "02000000 0600 0a00 @ 02 0*7", "", EINVAL},
    {IB_USER_VERBS_CMD_QUERY_GID, "2d000000 0600 0400 @ 00000000 01 0*3", "*16", 0},
    {IB_USER_VERBS_CMD_QUERY_PKEY, "2e000000 0600 0100 @ 00000000 01 0*3", "ffff 0000", 0},

    {IB_USER_VERBS_CMD_ALLOC_PD, "03000000 0400 3200 @", "<p 0*196", 0},
    {IB_USER_VERBS_CMD_ALLOC_PD, "03000000 0400 0100 @", "<x", 0},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "04000000 0300 0000 >x", "", 0},
    /* With a provider's part behind the struct. */
    {IB_USER_VERBS_CMD_ALLOC_PD, "03000000 0600 0100 @ dddddddddddddddd", "<x", 0},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "04000000 0400 0000 >x dddddddd", "", 0},
    {IB_USER_VERBS_CMD_REG_MR, "09000000 0c00 0300 @ M 40 0*7 M >p 01000000", "<m <l <r", 0},
    {IB_USER_VERBS_CMD_DESTROY_AH, "08000000 0300 0000 01000000", "", EINVAL},
    {IB_USER_VERBS_CMD_CREATE_AH,
     "05000000 1000 0100 @ 0*8 >p 00000000 0*16 0*4 00 40 00 00 0000 00 00 00 01 01 00", "<x", 0},
    {IB_USER_VERBS_CMD_DESTROY_AH, "08000000 0300 0000 >x", "", 0},

    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "11000000 0400 0100 @", "<c", 0},
    {IB_USER_VERBS_CMD_CREATE_CQ,
     "12000000 0a00 3200 @ 8877665544332211 04000000 00000000 >c 00000000", "<q *4 0*192", 0},
    {IB_USER_VERBS_CMD_CREATE_CQ, "12000000 0a00 0200 @ 0*8 01000000 00000000 ffffffff 00000000",
     "<x *4", 0},
    {IB_USER_VERBS_CMD_RESIZE_CQ, "13000000 0600 3200 @ >x 10000000", "*4 0*196", 0},
    {IB_USER_VERBS_CMD_DESTROY_CQ, "14000000 0600 0200 @ >x 00000000", "0*8", 0},
    {IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, "17000000 0400 0000 >q 00000000", "", 0},
    {IB_USER_VERBS_CMD_POLL_CQ, "15000000 0600 1a00 @ >q 02000000", "0*8", 0},

    {IB_USER_VERBS_CMD_CREATE_SRQ, "20000000 0a00 3400 @ 0*8 >p 04000000 01000000 00000000",
     "<s *8 0*196", 0},
    {IB_USER_VERBS_CMD_QUERY_SRQ, "22000000 0600 0400 @ >s 00000000", "*8 0*8", 0},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, "21000000 0600 0000 >s 02000000 00000000 01000000", "", 0},
    {IB_USER_VERBS_CMD_QUERY_SRQ, "22000000 0600 0400 @ >s 00000000", "*8 01000000 0*4", 0},
    {IB_USER_VERBS_CMD_POST_SRQ_RECV,
     "24000000 1000 0100 @ >s 01000000 01000000 10000000 2a 0*7 01000000 0*4 M 08000000 >l", "0*4",
     0},
    {IB_USER_VERBS_CMD_CREATE_SRQ, "20000000 0a00 0400 @ 0*8 >p 01000000 01000000 00000000",
     "<x *8 *4", 0},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, "23000000 0600 0000 0*8 >x 00000000", "", 0},

    {IB_USER_VERBS_CMD_CREATE_QP,
     "18000000 1000 3800 @ 0807060504030201 >p >q >q 00000000 02000000 02000000 01000000 01000000 "
     "00000000 01 02 00 00",
     "<k <o *20 0*196", 0},
    {IB_USER_VERBS_CMD_CREATE_QP,
     "18000000 1000 0800 @ 0*8 >p >q >q >s 02000000 0*4 01000000 0*8 00 02 01 00", "<x *24 *4", 0},
    {IB_USER_VERBS_CMD_DESTROY_QP, "1b000000 0600 0100 @ >x 00000000", "0*4", 0},
    {IB_USER_VERBS_CMD_MODIFY_QP,
     "1a000000 1e00 0000 0*64 >k 39000000 0*16 07000000 0000 0000 01 0*7 01 0*7", "", 0},
    {IB_USER_VERBS_CMD_QUERY_QP, "19000000 0600 2000 @ >k ffff0000",
     "*100 07000000 *4 01 *7 01 *5 01 *5", 0},
    {IB_USER_VERBS_CMD_ATTACH_MCAST, "1e000000 0800 0000 ff 0*15 >k 0000 0000", "", EINVAL},
    {IB_USER_VERBS_CMD_DETACH_MCAST, "1f000000 0800 0000 ff 0*15 >k 0000 0000", "", EINVAL},
    {IB_USER_VERBS_CMD_POST_RECV,
     "1d000000 1000 0100 @ >k 01000000 01000000 10000000 4d 0*7 01000000 0*4 M 08000000 >l", "0*4",
     0},
    {IB_USER_VERBS_CMD_MODIFY_QP, "1a000000 1e00 0000 0*64 >k 01000000 0*24 06 0*15", "", 0},
    {IB_USER_VERBS_CMD_POST_SEND,
     "1c000000 1a00 0100 @ >k 01000000 01000000 38000000 4e 0*7 01000000 02000000 02000000 0*4 "
     "0*32 M 08000000 >l",
     "0*4", 0},
    {IB_USER_VERBS_CMD_POLL_CQ, "15000000 0600 1a00 @ >q 02000000",
     "02000000 0*4 4d 0*7 05000000 *16 >o *16 4e 0*7 05000000 *16 >o *16", 0},

    {IB_USER_VERBS_CMD_DESTROY_QP, "1b000000 0600 0100 @ >k 00000000", "0*4", 0},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, "23000000 0600 0100 @ >s 00000000", "0*4", 0},
    {IB_USER_VERBS_CMD_DESTROY_CQ, "14000000 0600 0200 @ >q 00000000", "01000000 0*4", 0},
    {IB_USER_VERBS_CMD_DEREG_MR, "0d000000 0300 0000 >m", "", 0},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "04000000 0300 0000 >p", "", 0},
};

/* The program's number for the CQ, when its completion channel has an event. */
static void take_event(int channel)
{
    struct ib_uverbs_comp_event_desc event;
    struct pollfd readable = {channel, POLLIN, 0};
    assert_int_equal(poll(&readable, 1, 20000), 1);
    assert_int_equal(anywarp_uverbs_read(channel, &event, sizeof event), 8);
    assert_true(event.cq_handle == 0x1122334455667788);
}

static void all_commands_byte_by_byte(void **state)
{
    (void)state;
    bool played[64] = {false};
    int fd = anywarp_uverbs_open(NULL);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].number == IB_USER_VERBS_CMD_POLL_CQ && played[IB_USER_VERBS_CMD_POST_SEND])
            take_event((int)uv_kept['c']);
        uv_play(fd, &steps[i]);
        played[steps[i].number] = true;
    }
    for (size_t i = 0; i < uv_row_count; i++)
        assert_true(played[uv_rows[i].number]);
    assert_int_equal(anywarp_uverbs_close((int)uv_kept['a']), 0);
    assert_int_equal(anywarp_uverbs_close((int)uv_kept['c']), 0);
    assert_int_equal(anywarp_uverbs_close(fd), 0);
}

/* What the device says by commands is what it says by verbs. */
static void answers_of_the_verbs(void **state)
{
    (void)state;
    int fd = uv_open();
    uint32_t in[4] = {0};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *verbs = ibv_open_device(list[0]);
    assert_non_null(verbs);
    struct ib_uverbs_query_device_resp d;
    struct ibv_device_attr device;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, in, 8, &d, sizeof d), 0);
    assert_int_equal(ibv_query_device(verbs, &device), 0);
    assert_true(d.node_guid == device.node_guid && d.sys_image_guid == device.sys_image_guid);
    assert_true(d.max_mr_size == device.max_mr_size && d.page_size_cap == device.page_size_cap);
    assert_int_equal(d.vendor_id, device.vendor_id);
    assert_int_equal(d.device_cap_flags, device.device_cap_flags);
    assert_int_equal(d.max_qp, device.max_qp);
    assert_int_equal(d.max_qp_wr, device.max_qp_wr);
    assert_int_equal(d.max_sge, device.max_sge);
    assert_int_equal(d.max_cqe, device.max_cqe);
    assert_int_equal(d.max_mr, device.max_mr);
    assert_int_equal(d.max_qp_rd_atom, device.max_qp_rd_atom);
    assert_int_equal(d.atomic_cap, device.atomic_cap);
    assert_int_equal(d.max_srq_wr, device.max_srq_wr);
    assert_int_equal(d.max_pkeys, device.max_pkeys);
    assert_int_equal(d.phys_port_cnt, device.phys_port_cnt);
    char version[64];
    snprintf(version, sizeof version, "%d.%d.%d", (int)(d.fw_ver >> 32),
             (int)(d.fw_ver >> 16 & 0xffff), (int)(d.fw_ver & 0xffff));
    assert_string_equal(version, device.fw_ver);

    struct ib_uverbs_query_port ask = {.port_num = 1};
    struct ib_uverbs_query_port_resp p;
    struct ibv_port_attr port;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_QUERY_PORT, &ask, 16, &p, sizeof p), 0);
    assert_int_equal(ibv_query_port(verbs, 1, &port), 0);
    assert_int_equal(p.state, port.state);
    assert_int_equal(p.max_mtu, port.max_mtu);
    assert_int_equal(p.active_mtu, port.active_mtu);
    assert_int_equal(p.gid_tbl_len, port.gid_tbl_len);
    assert_int_equal(p.port_cap_flags, port.port_cap_flags);
    assert_int_equal(p.max_msg_sz, port.max_msg_sz);
    assert_int_equal(p.pkey_tbl_len, port.pkey_tbl_len);
    assert_int_equal(p.active_width, port.active_width);
    assert_int_equal(p.phys_state, port.phys_state);
    assert_int_equal(p.link_layer, port.link_layer);

    struct ib_uverbs_query_gid ask_gid = {.port_num = 1};
    struct ib_uverbs_query_gid_resp g;
    union ibv_gid gid;
    for (; ask_gid.gid_index < p.gid_tbl_len; ask_gid.gid_index++) {
        assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_QUERY_GID, &ask_gid, 16, &g, sizeof g), 0);
        assert_int_equal(ibv_query_gid(verbs, 1, (int)ask_gid.gid_index, &gid), 0);
        assert_memory_equal(g.gid, gid.raw, sizeof gid);
    }
    ask_gid.gid_index = 4096;
    assert_int_equal(uv_send(fd, IB_USER_VERBS_CMD_QUERY_GID, &ask_gid, 16, &g, sizeof g), EINVAL);
    ibv_close_device(verbs);
    ibv_free_device_list(list);
    assert_int_equal(anywarp_uverbs_close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_commands_byte_by_byte),
        cmocka_unit_test(answers_of_the_verbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

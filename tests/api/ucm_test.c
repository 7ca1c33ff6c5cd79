/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every rdma_cm command byte by byte, and every response and event: what a librdmacm would write
 * and find; then the same commands with lengths, ids and addresses that lie.
 */
#include "api/uverbs_kit.h"
#include "api/uverbs_text.h"

#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum end { SERVER, CLIENT, OTHER, ENDS };

#define LOOPBACK "7f000001"

/* Under letters: l listener, a its address's first four bytes, c client, r request, x, y what is
 * rejected, p and q numbers of queue pairs, o the server's channel, s and t whatever. */
static const struct {
    enum end end;
    struct uv_step step;
} steps[] = {
    {SERVER, {RDMA_USER_CM_CMD_CREATE_ID, "00000000 1800 0400 11 0*7 @ 0601 02 0*5", "<l", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_BIND_IP, "02000000 2800 0000 0*8 0200 0000 " LOOPBACK " 0*20 >l", "", 0}},
    {SERVER, {RDMA_USER_CM_CMD_LISTEN, "07000000 0800 0000 >l 04000000", "", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_QUERY_ROUTE, "05000000 1000 c800 @ >l 0*4",
      "*8 0*128 <a " LOOPBACK " 0*20 0*28 0*4 01 0*3", 0}},

    {CLIENT, {RDMA_USER_CM_CMD_CREATE_ID, "00000000 1800 0400 22 0*7 @ 0601 02 0*5", "<c", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_BIND, "14000000 8800 0000 >c 1000 0000 0200 0000 " LOOPBACK " 0*120", "",
      0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_RESOLVE_ADDR,
      "15000000 1001 0000 >c 88130000 0000 1000 0*4 0*128 >a " LOOPBACK " 0*120", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "22 0*7 >c 00000000 0*4 0*304", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_RESOLVE_ROUTE, "04000000 0800 0000 >c 88130000", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 5001 @", "22 0*7 >c 02000000 0*4 0*316", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_QUERY, "13000000 1000 1001 @ >c 00000000",
      "*8 01 00 ffff 1000 1000 <s " LOOPBACK " 0*120 >a " LOOPBACK " 0*120", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_QUERY, "13000000 1000 0800 @ >c 01000000", "0*8", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_QUERY, "13000000 1000 0800 @ >c 02000000", "", EOPNOTSUPP}},
    {CLIENT,
     {RDMA_USER_CM_CMD_INIT_QP_ATTR, "0b000000 1000 9000 @ >c 01000000",
      "29000000 01000000 0*28 *4 0*93 01 0*10", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_SET_OPTION, "0e000000 1800 0000 M >c 00000000 00000000 01000000", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_CONNECT,
      "06000000 1801 0000 >q 0*4 71756573 0*252 04 00 01 01 00 07 07 01 >c 0*4", "", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 5001 @",
      "11 0*7 <r 04000000 0*4 *8 71756573 0*252 04 *6 01 0*44", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_ACCEPT,
      "08000000 2001 0000 33 0*7 >p 0*4 796573 0*253 03 00 01 01 00 07 07 01 >r 0*4", "", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "33 0*7 >r 09000000 0*4 *272 0*32", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @",
      "22 0*7 >c 09000000 0*4 *8 796573 0*253 03 *6 01 0*32", 0}},
    {SERVER, {RDMA_USER_CM_CMD_NOTIFY, "0f000000 0800 0000 >r 04000000", "", 0}},

    /* The other end's events are another descriptor's from here on. */
    {OTHER, {RDMA_USER_CM_CMD_MIGRATE_ID, "12000000 1000 0400 @ >r >o", "01000000", 0}},
    {SERVER, {RDMA_USER_CM_CMD_DISCONNECT, "0a000000 0400 0000 >r", "", ENOENT}},
    {CLIENT, {RDMA_USER_CM_CMD_DISCONNECT, "0a000000 0400 0000 >c", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "22 0*7 >c 0a000000 0*4 0*304", 0}},
    {OTHER,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "33 0*7 >r 0a000000 0*4 0*304", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_DESTROY_ID, "01000000 1000 0400 @ >c 0*4", "04000000", 0}},
    {OTHER, {RDMA_USER_CM_CMD_DESTROY_ID, "01000000 1000 0400 @ >r 0*4", "02000000", 0}},

    /* Rejected. */
    {CLIENT, {RDMA_USER_CM_CMD_CREATE_ID, "00000000 1800 0400 44 0*7 @ 0601 02 0*5", "<x", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_RESOLVE_IP, "03000000 4000 0000 0*28 >a " LOOPBACK " 0*20 >x 88130000", "",
      0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "44 0*7 >x 00000000 0*4 0*304", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_RESOLVE_ROUTE, "04000000 0800 0000 >x 88130000", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @", "44 0*7 >x 02000000 0*4 0*304", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_CONNECT, "06000000 1801 0000 >t 0*4 0*256 00 00 01 01 00 07 07 01 >x 0*4",
      "", 0}},
    {SERVER,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @",
      "11 0*7 <y 04000000 0*4 *8 0*256 00 *6 01 0*32", 0}},
    {SERVER, {RDMA_USER_CM_CMD_REJECT, "09000000 0801 0000 >y 02 00 0000 6e6f 0*254", "", 0}},
    {CLIENT,
     {RDMA_USER_CM_CMD_GET_EVENT, "0c000000 0800 4401 @",
      "44 0*7 >x 08000000 *4 *8 6e6f 0*254 02 *6 01 0*32", 0}},
    {SERVER, {RDMA_USER_CM_CMD_DESTROY_ID, "01000000 1000 0400 @ >y 0*4", "00000000", 0}},
    {CLIENT, {RDMA_USER_CM_CMD_DESTROY_ID, "01000000 1000 0400 @ >x 0*4", "03000000", 0}},
    {SERVER, {RDMA_USER_CM_CMD_DESTROY_ID, "01000000 1000 0400 @ >l 0*4", "02000000", 0}},
};

static void all_commands_byte_by_byte(void **state)
{
    (void)state;
    struct uv_world server = {0}, client = {0}, refused = {0};
    int fds[ENDS];
    uv_make(&server);
    uv_make(&client);
    uv_make(&refused);
    for (enum end i = 0; i < ENDS; i++) {
        fds[i] = anywarp_ucm_open();
        assert_true(fds[i] >= 0);
    }
    uv_kept['p'] = server.qpn;
    uv_kept['q'] = client.qpn;
    uv_kept['t'] = refused.qpn;
    uv_kept['o'] = (uint32_t)fds[SERVER];
    alarm(120);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        uv_play(fds[steps[i].end], &steps[i].step);
    alarm(0);
    for (enum end i = 0; i < ENDS; i++)
        assert_int_equal(anywarp_uverbs_close(fds[i]), 0);
    uv_unmake(&server);
    uv_unmake(&client);
    uv_unmake(&refused);
}

/* What each command has at least, what it wants for its response, where that's address is and where
 * the id is; -1: it has none. */
static const struct {
    uint32_t number;
    uint16_t in, out;
    int response_at, id_at;
} rows[] = {
    {RDMA_USER_CM_CMD_CREATE_ID, 24, 4, 8, -1},     {RDMA_USER_CM_CMD_DESTROY_ID, 12, 4, 0, 8},
    {RDMA_USER_CM_CMD_BIND_IP, 40, 0, -1, 36},      {RDMA_USER_CM_CMD_RESOLVE_IP, 64, 0, -1, 56},
    {RDMA_USER_CM_CMD_RESOLVE_ROUTE, 8, 0, -1, 0},  {RDMA_USER_CM_CMD_QUERY_ROUTE, 12, 200, 0, 8},
    {RDMA_USER_CM_CMD_CONNECT, 276, 0, -1, 272},    {RDMA_USER_CM_CMD_LISTEN, 8, 0, -1, 0},
    {RDMA_USER_CM_CMD_ACCEPT, 284, 0, -1, 280},     {RDMA_USER_CM_CMD_REJECT, 264, 0, -1, 0},
    {RDMA_USER_CM_CMD_DISCONNECT, 4, 0, -1, 0},     {RDMA_USER_CM_CMD_INIT_QP_ATTR, 16, 144, 0, 8},
    {RDMA_USER_CM_CMD_GET_EVENT, 8, 324, 0, -1},    {RDMA_USER_CM_CMD_SET_OPTION, 24, 0, -1, 8},
    {RDMA_USER_CM_CMD_NOTIFY, 8, 0, -1, 0},         {RDMA_USER_CM_CMD_MIGRATE_ID, 16, 4, 0, 8},
    {RDMA_USER_CM_CMD_QUERY, 16, 8, 0, 8},          {RDMA_USER_CM_CMD_BIND, 136, 0, -1, 0},
    {RDMA_USER_CM_CMD_RESOLVE_ADDR, 272, 0, -1, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0], LONGEST = 288 };

/* A good command but for what the caller puts in; @return 0 or errno */
static int send_row(int fd, size_t i, uint8_t *bytes, size_t in, size_t out)
{
    uint8_t command[8 + LONGEST];
    struct rdma_ucm_cmd_hdr hdr = {rows[i].number, (uint16_t)in, (uint16_t)out};
    memcpy(command, &hdr, sizeof hdr);
    memcpy(command + sizeof hdr, bytes, in);
    errno = 0;
    ssize_t n = anywarp_uverbs_write(fd, command, sizeof hdr + in);
    return n < 0 ? errno : 0;
}

static void fill(size_t i, uint8_t bytes[LONGEST], uint64_t response, uint32_t id)
{
    memset(bytes, 0, LONGEST);
    if (rows[i].response_at >= 0)
        memcpy(bytes + rows[i].response_at, &response, sizeof response);
    if (rows[i].id_at >= 0)
        memcpy(bytes + rows[i].id_at, &id, sizeof id);
    if (rows[i].number == RDMA_USER_CM_CMD_CONNECT)
        bytes[271] = 1; /* valid */
    if (rows[i].number == RDMA_USER_CM_CMD_RESOLVE_IP)
        bytes[28] = 2; /* AF_INET */
    if (rows[i].number == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
        bytes[10] = 16; /* dst_size */
        bytes[144] = 2;
    }
}

/* Every length that is too short, a response that nobody can write, an id that is no one's, or of
 * another descriptor. */
static void commands_that_lie(void **state)
{
    (void)state;
    int fd = anywarp_ucm_open(), other = anywarp_ucm_open();
    assert_true(fd >= 0 && other >= 0);
    uint64_t response[64];
    uint8_t bytes[LONGEST];
    uint32_t id;
    fill(0, bytes, (uintptr_t)&id, 0);
    bytes[16] = 6; /* RDMA_PS_TCP */
    bytes[17] = 1;
    assert_int_equal(send_row(other, 0, bytes, 24, 4), 0);
    const uint32_t ids[] = {0, 1 << 19, UINT32_MAX, id ^ 1 << 20, id};
    for (size_t i = 0; i < ROWS; i++) {
        fill(i, bytes, (uintptr_t)response, id);
        for (size_t in = 0; in < rows[i].in; in++)
            assert_int_equal(send_row(fd, i, bytes, in, sizeof response), EINVAL);
        for (size_t out = 0; out < rows[i].out; out++)
            assert_int_equal(send_row(fd, i, bytes, rows[i].in, out), ENOSPC);
        for (size_t k = 0; rows[i].id_at >= 0 && k < sizeof ids / sizeof ids[0]; k++) {
            fill(i, bytes, (uintptr_t)response, ids[k]);
            assert_int_equal(send_row(fd, i, bytes, rows[i].in, sizeof response), ENOENT);
        }
        fill(i, bytes, 8, id);
        if (rows[i].out)
            assert_int_equal(send_row(fd, i, bytes, rows[i].in, rows[i].out), EFAULT);
    }
    /* A header alone that promises more, and numbers that no row has. */
    struct rdma_ucm_cmd_hdr lonely = {RDMA_USER_CM_CMD_LISTEN, 8, 0};
    assert_int_equal(anywarp_uverbs_write(fd, &lonely, sizeof lonely), -1);
    assert_int_equal(errno, EINVAL);
    for (uint32_t number = 0; number < 40; number++) {
        bool known = false;
        for (size_t i = 0; i < ROWS; i++)
            known |= rows[i].number == number;
        struct rdma_ucm_cmd_hdr hdr = {known ? UINT32_MAX - number : number, 0, 0};
        assert_int_equal(anywarp_uverbs_write(fd, &hdr, sizeof hdr), -1);
        assert_int_equal(errno, ENOSYS);
    }
    assert_int_equal(anywarp_uverbs_close(fd), 0);
    assert_int_equal(anywarp_uverbs_close(other), 0); /* with its id */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_commands_byte_by_byte),
        cmocka_unit_test(commands_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

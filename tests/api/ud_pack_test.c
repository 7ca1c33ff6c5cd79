/* SPDX-License-Identifier: BSD-2-Clause */
/* UD on one host: several datagrams in one message. */
#include "api/ud_kit.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/** Posts @p n with an immediate from 0 on, of @p len bytes; they complete. */
static void post_many(unsigned n, uint32_t len)
{
    struct ibv_sge sge[64];
    struct ibv_send_wr wr[64];
    for (unsigned i = 0; i < n; i++) {
        wr[i] = request(&a, &b, &sge[i], len);
        wr[i].opcode = IBV_WR_SEND_WITH_IMM;
        wr[i].imm_data = i;
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    }
    assert_int_equal(post(&a, wr), 0);
    for (unsigned i = 0; i < n; i++)
        sent(&a);
}

/** @return false: none comes within a second */
static bool comes(uint32_t *imm)
{
    struct ibv_wc wc;
    time_t end = time(NULL) + 2;
    while (!ibv_poll_cq(b.cq, 1, &wc))
        if (time(NULL) >= end)
            return false;
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    *imm = wc.imm_data;
    return true;
}

/** Receives some of @p n, then one at a time. @return whether all have come */
static bool in_parts(unsigned n, unsigned at_first)
{
    uint32_t imm;
    for (unsigned i = 0; i < at_first; i++)
        receive(&b, 0, 256);
    post_many(n, 8);
    for (unsigned i = 0; i < n; i++) {
        if (i >= at_first)
            receive(&b, 0, 256);
        if (!comes(&imm)) {  /* the test was not run for long, so they were dropped */
            post_many(1, 8); /* the receive is there */
            assert_true(comes(&imm));
            return false;
        }
        assert_int_equal(imm, i);
    }
    return true;
}

static void more_than_there_are_receives_for(void **state)
{
    static const unsigned at_first[] = {0, 1, 7};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        unsigned tries = 0;
        while (!in_parts(40, at_first[i]))
            assert_true(++tries < 20);
    }
}

/** What waits for receives when the QP ends is nobody's. */
static void the_end_of_one_that_keeps_some(void **state)
{
    (void)state;
    receive(&b, 0, 256);
    post_many(40, 8);
    received(&b, 0);
    move(&b, IBV_QPS_RESET);
    to_rts(&b);
    receive(&b, 0, 256);
    post_many(40, 8);
    received(&b, 0); /* and the test destroys it */
}

static void many_of_the_longest(void **state)
{
    struct ibv_port_attr port;
    (void)state;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    uint32_t max = 128u << port.active_mtu;
    for (unsigned i = 0; i < 30; i++)
        receive(&b, 0, GRH + max);
    post_many(30, max);
    for (unsigned i = 0; i < 30; i++) {
        struct ibv_wc wc = received(&b, 0);
        assert_int_equal(wc.imm_data, i);
        assert_int_equal(wc.byte_len, GRH + max);
    }
}

/** The kernel allows some processes small sockets only. */
static void small_buffers(void **state)
{
    int size = 4608, limit = (int)sysconf(_SC_OPEN_MAX), type;
    (void)state;
    pass(&a, &b, 1);
    for (int fd = 3; fd < limit && fd < 1 << 20; fd++) {
        struct sockaddr_un name;
        socklen_t len = sizeof(name), type_len = sizeof(type);
        if (getsockname(fd, (struct sockaddr *)&name, &len) || name.sun_family != AF_UNIX ||
            len > sizeof(name.sun_family) ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) || type != SOCK_DGRAM)
            continue;
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    }
    for (unsigned i = 0; i < 20; i++)
        receive(&b, 0, GRH + 2048);
    post_many(20, 2048);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(received(&b, 0).imm_data, i);
}

/** Memory that is gone fails its own work request, and not those that would go with it. */
static void memory_that_is_gone(void **state)
{
    struct ibv_sge sge[3];
    struct ibv_send_wr wr[3];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, gone, page, 0);
    (void)state;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux sends nothing in place of memory that is gone */
    assert_non_null(mr);
    for (unsigned i = 0; i < 3; i++) {
        wr[i] = request(&a, &b, &sge[i], 8);
        wr[i].wr_id = i;
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        receive(&b, 0, 256);
    }
    sge[1] = (struct ibv_sge){(uintptr_t)gone, 8, mr->lkey};
    munmap(gone, page);
    assert_int_equal(post(&a, wr), 0);
    struct ibv_wc wc = next(&a);
    assert_int_equal(wc.wr_id, 0);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    wc = next(&a);
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(next(&a).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(&a), IBV_QPS_SQE);
    received(&b, 0);
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

/** A pack whose second length is wrong, and one that came by UDP. */
static void packs_of_strangers(void **state)
{
    uint8_t one[28 + GRH + 8] = {'A', 'W', 'D', 1}, pack[512] = {'A', 'W', 'P', 1};
    uint32_t len = htonl(sizeof(one)), to = htonl(b.qp->qp_num), qkey = htonl(QKEY);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    (void)state;
    memcpy(one + 8, &to, 4);
    memcpy(one + 16, &qkey, 4);
    memcpy(pack + 4, &len, 4);
    memcpy(pack + 8, one, sizeof(one));
    len = htonl(5000);
    memcpy(pack + 8 + sizeof(one), &len, 4);
    int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "anywarp-ud-%06x", b.qp->qp_num);
    socklen_t name_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    struct sockaddr_in port = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(b.qp->qp_num >> 8)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    receive(&b, 0, 256);
    receive(&b, 1, 256);
    assert_int_equal(sendto(udp, pack, sizeof(pack), 0, (struct sockaddr *)&port, sizeof(port)),
                     sizeof(pack));
    assert_int_equal(sendto(fd, pack, sizeof(pack), 0, (struct sockaddr *)&name, name_len),
                     sizeof(pack));
    assert_int_equal(received(&b, 0).byte_len, GRH + 8);
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 3);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&b, 1).byte_len, GRH + 3);
    close(fd);
    close(udp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_than_there_are_receives_for, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_one_that_keeps_some, setup, teardown),
        cmocka_unit_test_setup_teardown(many_of_the_longest, setup, teardown),
        cmocka_unit_test_setup_teardown(small_buffers, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(packs_of_strangers, setup, teardown),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    open_device("r0", 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What other processes of the host, of whatever user, do to queue pairs for datagrams: they know
 * the Q_Key, send to the abstract unix socket what they like, and take names in advance.
 */
#include "api/ud_kit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADER 28
#define FRONT  (HEADER + GRH)
#define PORTS  8
#define RULES  "neighbour_test.access"

static uint16_t first_port;

/* ---- a neighbour ---- */

static const struct in6_addr loopback = {.s6_addr = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
static const struct in6_addr far_away = {.s6_addr = {[10] = 0xff, 0xff, 198, 51, 100, 7}};

static socklen_t name_of(struct sockaddr_un *name, uint32_t qpn)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "anywarp-ud-%06x", qpn);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void put(uint8_t *at, uint32_t v)
{
    v = htonl(v);
    memcpy(at, &v, sizeof(v));
}

/** A datagram that is right, from a queue pair that there is not, with an IPv6 header. */
static void compose(uint8_t *bytes, const struct peer *to, const struct in6_addr *from)
{
    memcpy(bytes, "AWD\1", 4);
    put(bytes + 8, to->qp->qp_num);
    put(bytes + 12, 0x123456);
    put(bytes + 16, QKEY);
    bytes[HEADER] = 0x60;
    memcpy(bytes + HEADER + 8, from, 16);
    memcpy(bytes + HEADER + 24, &loopback, 16);
}

static void hand(const struct peer *to, const uint8_t *bytes, size_t len)
{
    struct sockaddr_un name;
    socklen_t name_len = name_of(&name, to->qp->qp_num);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), buffer = 1 << 20;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    assert_int_equal(sendto(fd, bytes, len, 0, (struct sockaddr *)&name, name_len), len);
    close(fd);
}

static void rule(const char *text)
{
    FILE *f = fopen(RULES, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int start(void **state)
{
    rule("allow from any\nallow to any\n");
    return setup(state);
}

/* ---- what it sends ---- */

static void lengths_and_garbage(void **state)
{
    uint8_t bytes[FRONT + 64] = {0};
    (void)state;
    compose(bytes, &b, &loopback);
    receive(&b, 0, 256);
    for (size_t len = 0; len < FRONT; len++)
        hand(&b, bytes, len);
    for (unsigned i = 0; i < HEADER; i++) { /* the number of the sender, the immediate and so on */
        if (i == 5 || i == 6 || (i >= 13 && i < 16) || i >= 20)
            continue;
        bytes[i] ^= 0x80;
        hand(&b, bytes, sizeof(bytes));
        bytes[i] ^= 0x80;
    }
    bytes[FRONT] = 0x77;
    hand(&b, bytes, FRONT + 1);
    assert_int_equal(received(&b, 0).byte_len, GRH + 1);
    assert_int_equal(b.data[GRH], 0x77);
}

/* A program makes room for the longest that there is, and parses what it gets. */
static void what_the_program_finds_is_a_header(void **state)
{
    uint8_t bytes[FRONT + 8] = {0};
    (void)state;
    compose(bytes, &b, &loopback);
    bytes[HEADER] = 0x45; /* neither IPv6 nor, 20 bytes further, IPv4 */
    put(bytes + HEADER + 4, 0xffffffff);
    receive(&b, 0, 256);
    hand(&b, bytes, sizeof(bytes));
    received(&b, 0);
    bool six = b.data[0] >> 4 == 6, four = b.data[20] == 0x45;
    assert_true(six || four);
    assert_true(six ? b.data[4] == 0 && b.data[5] == 8 + HEADER + 8
                    : b.data[22] == 0 && b.data[23] == 20 + 8 + HEADER + 8);
}

static void longer_than_any(void **state)
{
    struct ibv_port_attr port;
    uint8_t bytes[FRONT + 8192] = {0};
    (void)state;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    uint32_t max = 128u << port.active_mtu;
    compose(bytes, &b, &loopback);
    receive(&b, 0, GRH + max);
    hand(&b, bytes, FRONT + max + 1);
    hand(&b, bytes, FRONT + max + GRH);
    hand(&b, bytes, FRONT + max);
    assert_int_equal(received(&b, 0).byte_len, GRH + max);
    assert_int_equal(state_of(&b), IBV_QPS_RTS);
}

/* By UDP there is no header of IP in front, so that more fits behind. */
static void longer_than_any_by_udp(void **state)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in to = own;
    socklen_t len = sizeof(own);
    struct ibv_port_attr port;
    uint8_t bytes[HEADER + 8192] = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&own, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    uint32_t max = 128u << port.active_mtu;
    compose(bytes, &b, &loopback);
    put(bytes + 12, (uint32_t)ntohs(own.sin_port) << 8);
    to.sin_port = htons((uint16_t)(b.qp->qp_num >> 8));
    receive(&b, 0, GRH + max);
    for (uint32_t more = 1; more <= 41; more += 20)
        assert_true(sendto(fd, bytes, HEADER + max + more, 0, (struct sockaddr *)&to, len) > 0);
    assert_true(sendto(fd, bytes, HEADER + max, 0, (struct sockaddr *)&to, len) > 0);
    assert_int_equal(received(&b, 0).byte_len, GRH + max);
    close(fd);
}

/* ---- whom it says it is ---- */

static void an_address_of_another_host(void **state)
{
    uint8_t bytes[FRONT + 8] = {0};
    (void)state;
    rule("allow from 198.51.100.0/24\nallow to any\n");
    compose(bytes, &b, &far_away);
    receive(&b, 0, 256);
    hand(&b, bytes, sizeof(bytes)); /* that is no address of this host */
    compose(bytes, &b, &loopback);
    hand(&b, bytes, sizeof(bytes)); /* the rules do not know it */
    sleep(2);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    rule("allow from 127.0.0.0/8\nallow to any\n");
    bytes[FRONT] = 0x21;
    hand(&b, bytes, sizeof(bytes));
    received(&b, 0);
    assert_int_equal(b.data[GRH], 0x21);
}

/* ---- what it takes in advance ---- */

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void names_that_are_taken(void **state)
{
    enum { HALF_OF_THEM = PORTS * 128 };
    static int taken[HALF_OF_THEM];
    (void)state;
    for (unsigned i = 0; i < HALF_OF_THEM; i++) {
        struct sockaddr_un name;
        socklen_t len = name_of(&name, ((uint32_t)first_port << 8) + 2 * i);
        taken[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
        assert_true(taken[i] >= 0);
        (void)!bind(taken[i], (struct sockaddr *)&name, len); /* those in use are */
    }
    for (unsigned i = 0; i < 30; i++) {
        struct peer c;
        make(&c);
        int open = open_files();
        drop(&c);
        make(&c);
        assert_int_equal(open_files(), open);
        drop(&c);
    }
    for (unsigned i = 0; i < HALF_OF_THEM; i++)
        close(taken[i]);
}

/* The limit is raised for the library's descriptors, as with connections. */
static void no_descriptor_left_below_the_limit(void **state)
{
    struct rlimit was, limit;
    static int full[4096];
    unsigned n = 0;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &was);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    limit = was;
    limit.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < 4096 && (full[n] = dup(0)) >= 0)
        n++;
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    while (n)
        close(full[--n]);
    setrlimit(RLIMIT_NOFILE, &was);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static int run(const char *device, uint8_t index)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths_and_garbage, start, teardown),
        cmocka_unit_test_setup_teardown(what_the_program_finds_is_a_header, start, teardown),
        cmocka_unit_test_setup_teardown(longer_than_any, start, teardown),
        cmocka_unit_test_setup_teardown(longer_than_any_by_udp, start, teardown),
        cmocka_unit_test_setup_teardown(an_address_of_another_host, start, teardown),
        cmocka_unit_test_setup_teardown(names_that_are_taken, start, teardown),
        cmocka_unit_test_setup_teardown(no_descriptor_left_below_the_limit, start, teardown),
    };
    open_device(device, index);
    int failed = cmocka_run_group_tests_name(device, tests, NULL, NULL);
    close_device();
    return failed;
}

int main(void)
{
    struct rlimit limit;
    char ports[32];
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    first_port = (uint16_t)(20000 + (unsigned)getpid() % 1000 * PORTS);
    snprintf(ports, sizeof(ports), "%u-%u", first_port, first_port + PORTS - 1);
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_PORTS", ports, 1);
    setenv("ANYWARP_ACCESS", RULES, 1);
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    int failed = run("r0", 0);
    unlink(RULES);
    return failed;
}

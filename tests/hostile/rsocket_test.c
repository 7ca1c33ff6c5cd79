/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer of an rsocket that says what none should: hellos that are none, messages that break the
 * protocol, buffers that are not there. It is a QP of this process that shares no code with
 * rsockets. Each ends one connection, and another goes on.
 */
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS  20000
#define RECEIVES 64
#define CREDITS  32
#define HALF     4096
#define ROOM     65536

static struct sockaddr_in addr;
static int listener;

struct rogue {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t hello[40];
    uint8_t memory[ROOM]; /* tables, then two halves of a buffer */
};

static struct rogue rogue;

static int begin(void **unused)
{
    socklen_t len = sizeof addr;
    int mappings = 2;
    (void)unused;
    addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = rsocket(AF_INET, SOCK_STREAM, 0);
    return rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings) ||
           rbind(listener, (struct sockaddr *)&addr, sizeof addr) || rlisten(listener, 8) ||
           rgetsockname(listener, (struct sockaddr *)&addr, &len);
}

static int finish(void **unused)
{
    (void)unused;
    return rclose(listener);
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Ready to connect, with a hello that is good. */
static void prepare(struct rogue *r)
{
    memset(r, 0, sizeof *r);
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {RECEIVES, RECEIVES, 1, 1, 64},
    };
    assert_int_equal(rdma_create_id(NULL, &r->id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&addr, WAIT_MS), 0);
    assert_int_equal(rdma_resolve_route(r->id, WAIT_MS), 0);
    assert_int_equal(rdma_create_qp(r->id, NULL, &attr), 0);
    r->mr = rdma_reg_write(r->id, r->memory, sizeof r->memory);
    assert_non_null(r->mr);
    for (int i = 1; i <= RECEIVES; i++) {
        uint8_t *message = r->memory + ROOM - 4 * i;
        assert_int_equal(rdma_post_recv(r->id, message, message, 4, r->mr), 0);
    }
    r->hello[0] = 1;
    r->hello[1] = 2; /* it has mappings */
    put(r->hello + 2, CREDITS, 2);
    put(r->hello + 8, (uintptr_t)r->memory, 8);
    put(r->hello + 16, r->mr->rkey, 4);
    put(r->hello + 20, 2, 4);
    put(r->hello + 24, (uintptr_t)r->memory + HALF, 8);
    put(r->hello + 32, r->mr->rkey, 4);
    put(r->hello + 36, HALF, 4);
}

static int connect_with(struct rogue *r, uint8_t len)
{
    struct rdma_conn_param param = {
        .private_data = len ? r->hello : NULL,
        .private_data_len = len,
        .initiator_depth = 1,
    };
    return rdma_connect(r->id, &param);
}

static void leave(struct rogue *r)
{
    rdma_disconnect(r->id);
    rdma_dereg_mr(r->mr);
    rdma_destroy_qp(r->id);
    rdma_destroy_id(r->id);
}

static int accept_it(void)
{
    struct pollfd p = {listener, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    int fd = raccept(listener, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Two that behave still can. */
static void others_go_on(void)
{
    char text[6] = {0};
    int a = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rconnect(a, (struct sockaddr *)&addr, sizeof addr), 0);
    int b = accept_it();
    assert_int_equal(rsend(a, "hello", 5, 0), 5);
    assert_int_equal(rrecv(b, text, 5, MSG_WAITALL), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

static const struct {
    const char *what;
    uint8_t len, at, value;
} hellos[] = {
    {"none", 0, 0, 1},         {"a byte too short", 39, 0, 1},   {"version 0", 40, 0, 0},
    {"version 2", 40, 0, 2},   {"another byte order", 40, 1, 3}, {"no credits", 40, 3, 0},
    {"no buffers", 40, 23, 0},
};

static void bad_hellos_are_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof hellos / sizeof hellos[0]; i++) {
        struct pollfd p = {listener, POLLIN, 0};
        printf("%s\n", hellos[i].what);
        prepare(&rogue);
        rogue.hello[hellos[i].at] = hellos[i].value;
        assert_int_equal(connect_with(&rogue, hellos[i].len), -1);
        assert_int_equal(errno, ECONNREFUSED);
        assert_int_equal(rpoll(&p, 1, 0), 0);
        leave(&rogue);
    }
    others_go_on();
}

#define MESSAGE(op, data) ((uint32_t)(op) << 29 | (uint32_t)(data))

/* The victim has 384 receives, and a buffer of 128 KiB, half of which it offers at first. */
static const struct {
    const char *what;
    uint32_t message;
    uint32_t len;
} messages[] = {
    {"no data", MESSAGE(0, 0), 4},
    {"more data than fits", MESSAGE(0, 128 * 1024 + 1), 4},
    {"all the data there can be", MESSAGE(0, 0x1fffffff), 4},
    {"operation 1", MESSAGE(1, 1), 4},
    {"operation 2", MESSAGE(2, 1), 4},
    {"operation 3", MESSAGE(3, 1), 4},
    {"operation 5", MESSAGE(5, 1), 4},
    {"credits taken back", MESSAGE(4, CREDITS - 1), 4},
    {"credits for more receives than it has", MESSAGE(4, CREDITS + 1), 4},
    {"a mapping behind the table", MESSAGE(6, 2), 4},
    {"a mapping far behind it", MESSAGE(6, 0x1fffffff), 4},
    {"a control that is none", MESSAGE(7, 1), 4},
    {"another control that is none", MESSAGE(7, 0x1fffffff), 4},
    {"an empty message", 0, 0},
    {"a message too short", MESSAGE(0, 1), 3},
    {"a message too long", MESSAGE(0, 1), 5},
};

/* Waits for the next message that tells of data. */
static void expect_bytes(const uint8_t *at, const char *text)
{
    uint32_t message;
    struct ibv_wc wc;
    do {
        assert_int_equal(rdma_get_recv_comp(rogue.id, &wc), 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        memcpy(&message, (const void *)(uintptr_t)wc.wr_id, sizeof message);
    } while (message >> 29);
    assert_memory_equal(at, text, strlen(text));
}

/* Also as many as a stock rsocket has on a device with queues of 32768. */
static void credits_of_all_sizes(void **unused)
{
    static const unsigned credits[] = {1, 0x7fff, 0x8000, 0xffff};
    (void)unused;
    for (size_t i = 0; i < sizeof credits / sizeof credits[0]; i++) {
        struct ibv_wc wc;
        uint32_t more = MESSAGE(4, credits[i]), grown = MESSAGE(4, (credits[i] + 1) & 0xffff);
        prepare(&rogue);
        put(rogue.hello + 2, credits[i], 2);
        assert_int_equal(connect_with(&rogue, sizeof rogue.hello), 0);
        int fd = accept_it();
        assert_int_equal(rdma_post_send(rogue.id, NULL, &more, sizeof more, NULL, IBV_SEND_INLINE),
                         0);
        assert_int_equal(rdma_get_send_comp(rogue.id, &wc), 1);
        assert_int_equal(rsend(fd, "hello", 5, MSG_DONTWAIT), 5);
        expect_bytes(rogue.memory + HALF, "hello");
        assert_int_equal(
            rdma_post_send(rogue.id, NULL, &grown, sizeof grown, NULL, IBV_SEND_INLINE), 0);
        assert_int_equal(rdma_get_send_comp(rogue.id, &wc), 1);
        assert_int_equal(rsend(fd, "again", 5, 0), 5);
        expect_bytes(rogue.memory + HALF + 5, "again");
        assert_int_equal(rclose(fd), 0);
        leave(&rogue);
    }
}

static void expect_reset(int fd)
{
    char c;
    struct pollfd p = {fd, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    errno = 0;
    assert_int_equal(rrecv(fd, &c, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(rsend(fd, "x", 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

static void bad_messages_end_a_connection(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        uint8_t bytes[8] = {0};
        printf("%s\n", messages[i].what);
        prepare(&rogue);
        assert_int_equal(connect_with(&rogue, sizeof rogue.hello), 0);
        int fd = accept_it();
        memcpy(bytes, &messages[i].message, sizeof messages[i].message);
        assert_int_equal(
            rdma_post_send(rogue.id, NULL, bytes, messages[i].len, NULL, IBV_SEND_INLINE), 0);
        expect_reset(fd);
        assert_int_equal(rclose(fd), 0);
        leave(&rogue);
    }
    others_go_on();
}

/* Each message is good, but their bytes cannot all be there. */
static void more_than_was_offered(void **unused)
{
    (void)unused;
    uint32_t message = MESSAGE(0, 60000);
    prepare(&rogue);
    assert_int_equal(connect_with(&rogue, sizeof rogue.hello), 0);
    int fd = accept_it();
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            rdma_post_send(rogue.id, NULL, &message, sizeof message, NULL, IBV_SEND_INLINE), 0);
    char c;
    ssize_t n;
    struct pollfd p = {fd, POLLIN, 0};
    do /* what was announced before is read first */
        assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    while ((n = rrecv(fd, &c, 1, MSG_DONTWAIT)) == 1);
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(rclose(fd), 0);
    leave(&rogue);
    others_go_on();
}

/* The first buffer, or the table, is not the peer's to offer. */
static void buffers_that_are_not_there(void **unused)
{
    (void)unused;
    static const uint8_t keys[] = {16, 32};
    for (size_t i = 0; i < sizeof keys; i++) {
        prepare(&rogue);
        rogue.hello[keys[i]] ^= 0x55;
        assert_int_equal(connect_with(&rogue, sizeof rogue.hello), 0);
        int fd = accept_it();
        struct pollfd p = {fd, POLLIN, 0};
        rsend(fd, "x", 1, 0); /* it may have ended by now */
        assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
        char c;
        assert_true(rrecv(fd, &c, 1, MSG_DONTWAIT) <= 0);
        assert_int_equal(rsend(fd, "x", 1, 0), -1);
        assert_int_equal(errno, ECONNRESET);
        assert_int_equal(rclose(fd), 0);
        leave(&rogue);
    }
    others_go_on();
}

/* The peer's mapping has another key: what is written there ends the connection. */
static void a_mapping_without_rights(void **unused)
{
    (void)unused;
    int mappings = 2;
    char text[16];
    int a = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rsetsockopt(a, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings), 0);
    assert_int_equal(rconnect(a, (struct sockaddr *)&addr, sizeof addr), 0);
    int b = accept_it();
    assert_int_equal(riomap(b, text, sizeof text, PROT_WRITE, 0, 0), 0);
    assert_int_equal(rsend(b, "m", 1, 0), 1);
    assert_int_equal(rrecv(a, text, 1, MSG_WAITALL), 1);
    assert_int_equal(riounmap(b, text, sizeof text), 0); /* the peer is not told */
    memset(text, 'a', sizeof text);
    riowrite(a, "0123456789", 10, 0, 0);
    struct pollfd p = {a, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    assert_true(rrecv(a, text, 1, MSG_DONTWAIT) <= 0);
    for (size_t i = 0; i < sizeof text; i++)
        assert_int_equal(text[i], 'a');
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
    others_go_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_of_all_sizes),          cmocka_unit_test(bad_hellos_are_refused),
        cmocka_unit_test(bad_messages_end_a_connection), cmocka_unit_test(more_than_was_offered),
        cmocka_unit_test(buffers_that_are_not_there),    cmocka_unit_test(a_mapping_without_rights),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}

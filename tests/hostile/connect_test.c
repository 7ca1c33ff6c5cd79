/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A victim that connects: Replies that are wrong, come in pieces or with what should not follow
 * them, ends at each stage, and the id destroyed at each stage.
 */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define QUIET_MS 30
#define ROUNDS   30 /* of what two threads race for */

/* ---- the victim's side ---- */

static void open_victim(struct peer *p)
{
    peer_listen(p, &(struct peer_conf){.no_crc = true});
    peer_called(p);
}

/** No event and no further connection. */
static void expect_quiet(struct peer *p)
{
    struct pollfd f[2] = {{.fd = p->victim.events->fd, .events = POLLIN},
                          {.fd = p->listening, .events = POLLIN}};
    assert_int_equal(poll(f, 2, QUIET_MS), 0);
}

static void expect_end(struct peer *p, enum rdma_cm_event_type type, int status)
{
    assert_int_equal(side_event(&p->victim, type), status);
    expect_quiet(p);
    peer_close(p);
}

/* ---- what goes out in one segment with the Reply ---- */

static size_t garbage(struct peer *p, uint8_t *at)
{
    (void)p;
    memset(at, 0xff, 64);
    return 64;
}

static size_t wrong_opcode(struct peer *p, uint8_t *at)
{
    struct peer_seg s = peer_untagged(p, 0xc, NULL, 16);
    return peer_fpdu(p, &s, at);
}

static size_t terminate(struct peer *p, uint8_t *at)
{
    static const uint8_t crc_error[4] = {0x20, 0x02};
    struct peer_seg s = peer_untagged(p, PEER_TERMINATE, crc_error, sizeof(crc_error));
    return peer_fpdu(p, &s, at);
}

static size_t terminate_and_garbage(struct peer *p, uint8_t *at)
{
    size_t n = terminate(p, at);
    return n + garbage(p, at + n);
}

static size_t empty_write(struct peer *p, uint8_t *at)
{
    struct peer_seg s = peer_tagged(PEER_WRITE, 1, 0, NULL, 0);
    return peer_fpdu(p, &s, at);
}

static size_t half_an_fpdu(struct peer *p, uint8_t *at)
{
    return empty_write(p, at) / 2;
}

static size_t nothing(struct peer *p, uint8_t *at)
{
    (void)p, (void)at;
    return 0;
}

static const struct {
    const char *name;
    size_t (*put)(struct peer *p, uint8_t *at);
    bool fin;
} glued[] = {
    {"garbage", garbage, false},
    {"garbage, FIN", garbage, true},
    {"opcode", wrong_opcode, false},
    {"opcode, FIN", wrong_opcode, true},
    {"Terminate", terminate, false},
    {"Terminate, FIN", terminate, true},
    {"Terminate, garbage, FIN", terminate_and_garbage, true},
    {"FIN", nothing, true},
    {"Write, FIN", empty_write, true},
    {"half an FPDU, FIN", half_an_fpdu, true},
};

/** The Reply and what is glued to it, in one segment, and a FIN behind. */
static void send_glued(struct peer *p, size_t row)
{
    uint8_t bytes[256];
    int on = 1, off = 0;
    size_t n = peer_reply(p, bytes);
    n += glued[row].put(p, bytes + n);
    setsockopt(p->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
    peer_send(p, bytes, n);
    if (glued[row].fin)
        assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
    setsockopt(p->fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

static void a_reply_with_more_behind_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(glued); i++) {
        static struct peer p;
        print_message("  %s\n", glued[i].name);
        open_victim(&p);
        peer_take_request(&p);
        send_glued(&p, i);
        side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
        expect_end(&p, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
}

/* ---- Replies ---- */

static const struct {
    const char *name;
    size_t at; /* where a byte of the Reply is changed */
    uint8_t byte;
    enum rdma_cm_event_type event;
    int status;
} wrong[] = {
    {"key, first byte", 0, 'm', RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"key, last byte", 15, 'x', RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"key of a Request", 9, 'q', RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"revision 0", 17, 0, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"revision 3", 17, 3, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"1028 bytes of private data", 18, 4, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"no room for the depths", 19, 3, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO},
    {"more reads than were asked for", 22, 0x3f, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL},
    {"rejected", 16, 0x30, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED},
};

static void a_wrong_reply(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        static struct peer p;
        uint8_t reply[PEER_REPLY_MAX];
        print_message("  %s\n", wrong[i].name);
        open_victim(&p);
        peer_take_request(&p);
        size_t n = peer_reply(&p, reply);
        reply[wrong[i].at] = wrong[i].byte;
        peer_send(&p, reply, n);
        expect_end(&p, wrong[i].event, wrong[i].status);
    }
}

static void send_bytes(struct peer *p, const uint8_t *bytes, size_t n)
{
    int on = 1;
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (size_t i = 0; i < n; i++)
        peer_send(p, bytes + i, 1);
}

static void a_reply_byte_by_byte(void **state)
{
    static struct peer p;
    uint8_t reply[PEER_REPLY_MAX];
    (void)state;
    open_victim(&p);
    peer_take_request(&p);
    size_t n = peer_reply(&p, reply);
    send_bytes(&p, reply, n - 1);
    expect_quiet(&p);
    send_bytes(&p, reply + n - 1, 1);
    side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
    peer_hang_up(&p, false);
    expect_end(&p, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* ---- revision 1 ---- */

/** The peer hung up without a word: one more attempt, with revision 1. */
static void expect_retry(struct peer *p)
{
    peer_take_request(p);
    assert_int_equal(p->rev, 2);
    peer_hang_up(p, false);
    peer_take_request(p);
    assert_int_equal(p->rev, 1);
}

static void one_retry_with_revision_1(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        static struct peer p;
        open_victim(&p);
        expect_retry(&p);
        peer_hang_up(&p, reset);
        expect_end(&p, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
    }
}

static void revision_1_is_answered(void **state)
{
    static struct peer p;
    uint8_t reply[PEER_REPLY_MAX];
    (void)state;
    open_victim(&p);
    expect_retry(&p);
    peer_send(&p, reply, peer_reply(&p, reply));
    side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
    peer_hang_up(&p, false);
    expect_end(&p, RDMA_CM_EVENT_DISCONNECTED, 0);

    open_victim(&p);
    expect_retry(&p);
    p.rev = 2; /* which nobody asked for now */
    peer_send(&p, reply, peer_reply(&p, reply));
    expect_end(&p, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
}

/** This thread goes into a network of its own, which has loopback only. @return whether it may */
static bool leave_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET))
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(ioctl(fd, SIOCSIFFLAGS, &lo), errno);
    close(fd);
    return true;
}

/** The thread that finds out, the engine's, is in another one. */
static void the_retry_stays_in_its_network(void **state)
{
    static struct peer p;
    uint8_t reply[PEER_REPLY_MAX];
    (void)state;
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_return_code(home, errno);
    if (!leave_network())
        skip();
    open_victim(&p);
    uint16_t port = rdma_get_src_port(p.victim.id);
    expect_retry(&p);
    peer_send(&p, reply, peer_reply(&p, reply));
    side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_get_src_port(p.victim.id), port);
    peer_hang_up(&p, false);
    expect_end(&p, RDMA_CM_EVENT_DISCONNECTED, 0);
    assert_return_code(setns(home, CLONE_NEWNET), errno);
    close(home);
}

/* ---- stages ---- */

static void untaken(struct peer *p)
{
    (void)p;
}

static void half_a_reply(struct peer *p)
{
    uint8_t reply[PEER_REPLY_MAX];
    peer_take_request(p);
    peer_send(p, reply, peer_reply(p, reply) / 2);
}

static void hung_up(struct peer *p)
{
    peer_take_request(p);
    peer_hang_up(p, false);
}

static void a_whole_reply(struct peer *p)
{
    uint8_t reply[PEER_REPLY_MAX];
    peer_take_request(p);
    peer_send(p, reply, peer_reply(p, reply));
}

static void retried(struct peer *p)
{
    peer_take_request(p);
    peer_hang_up(p, true);
    peer_take_request(p);
}

static void a_bad_reply(struct peer *p)
{
    peer_take_request(p);
    peer_send(p, "MPA ID Rep Xrame", 16);
}

static void up(struct peer *p)
{
    a_whole_reply(p);
    side_event(&p->victim, RDMA_CM_EVENT_ESTABLISHED);
}

static void (*const stages[])(struct peer *) = {
    untaken, peer_take,     peer_take_request, half_a_reply, hung_up,
    retried, a_whole_reply, a_bad_reply,       up,
};

static void a_reset_after_part_of_the_reply(void **state)
{
    static struct peer p;
    (void)state;
    open_victim(&p);
    half_a_reply(&p);
    peer_hang_up(&p, true);
    /* If the reset overtakes the bytes nothing was heard, and there is a second attempt. */
    struct pollfd f[2] = {{.fd = p.victim.events->fd, .events = POLLIN},
                          {.fd = p.listening, .events = POLLIN}};
    assert_true(poll(f, 2, 10000) > 0);
    if (f[1].revents) {
        peer_take_request(&p);
        peer_hang_up(&p, true);
    }
    expect_end(&p, RDMA_CM_EVENT_REJECTED, -ECONNRESET);

    open_victim(&p);
    up(&p);
    peer_hang_up(&p, true);
    expect_end(&p, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/** As in rdma-core, where the call waits for the peer's answer: that comes first, then the end. */
static void disconnected_before_the_reply(void **state)
{
    (void)state;
    for (int accepted = 0; accepted < 2; accepted++)
        for (int taken = 0; taken < 2; taken++) {
            static struct peer p;
            uint8_t reply[PEER_REPLY_MAX], byte;
            open_victim(&p);
            if (taken)
                peer_take_request(&p);
            assert_int_equal(rdma_disconnect(p.victim.id), 0);
            assert_int_equal(rdma_disconnect(p.victim.id), 0);
            if (!taken)
                peer_take_request(&p);
            expect_quiet(&p);
            size_t n = peer_reply(&p, reply);
            reply[16] |= accepted ? 0 : 0x20;
            peer_send(&p, reply, n);
            side_event(&p.victim, accepted ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED);
            assert_int_equal(recv(p.fd, &byte, 1, 0), 0);
            peer_hang_up(&p, false);
            if (accepted)
                side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
            assert_int_equal(p.victim.id->qp->state, IBV_QPS_ERR);
            expect_quiet(&p);
            peer_close(&p);
        }
}

/** Whatever the peer did last may be under way: nothing is heard of it afterwards. */
static void destroyed_at_each_stage(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < COUNT(stages); i++) {
            static struct peer p;
            open_victim(&p);
            stages[i](&p);
            if (round % 3 == 1)
                assert_int_equal(rdma_disconnect(p.victim.id), 0);
            if (round % 3 == 2)
                rdma_destroy_qp(p.victim.id);
            side_close(&p.victim);
            p.victim.id = NULL;
            struct pollfd f = {.fd = p.victim.events->fd, .events = POLLIN};
            assert_int_equal(poll(&f, 1, 0), 0);
            peer_close(&p);
        }
}

static void destroyed_behind_a_glued_reply(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < COUNT(glued); i++) {
            static struct peer p;
            open_victim(&p);
            peer_take_request(&p);
            send_glued(&p, i);
            if (round % 2)
                rdma_destroy_qp(p.victim.id);
            peer_close(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_with_more_behind_it),
        cmocka_unit_test(a_wrong_reply),
        cmocka_unit_test(a_reply_byte_by_byte),
        cmocka_unit_test(one_retry_with_revision_1),
        cmocka_unit_test(revision_1_is_answered),
        cmocka_unit_test(the_retry_stays_in_its_network),
        cmocka_unit_test(disconnected_before_the_reply),
        cmocka_unit_test(a_reset_after_part_of_the_reply),
        cmocka_unit_test(destroyed_at_each_stage),
        cmocka_unit_test(destroyed_behind_a_glued_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

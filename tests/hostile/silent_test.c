/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that say nothing, or too little too slowly, where a handshake waits for them. */
#include "api/cm_kit.h"
#include "peer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS "250" /* of each wait for the peer */
#define BYTE_MS  20    /* 24 bytes are too many at this rate */
#define SILENT   8
#define QUIET_MS 50

/** Revision 2, peer-to-peer with a Write first. */
static const uint8_t request[] = "MPA ID Req Frame\x10\x02\x00\x04\x80\x01\x80\x01";
#define REQUEST_LEN (sizeof(request) - 1)

static int call(const struct cm_sides *s)
{
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_return_code(connect(fd, (const struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)),
                       errno);
    return fd;
}

/** The other side closes it. */
static void expect_closed(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, 0);
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
    close(fd);
}

/** A byte now and then. @return whether the other side took all of them */
static bool dribble(int fd, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (send(fd, bytes + i, 1, MSG_NOSIGNAL) != 1)
            return false;
        usleep(BYTE_MS * 1000);
    }
    return true;
}

static void no_reply(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        static struct peer p;
        uint8_t reply[PEER_REPLY_MAX];
        peer_listen(&p, &(struct peer_conf){.no_crc = true});
        peer_called(&p);
        peer_take_request(&p);
        if (half)
            dribble(p.fd, reply, peer_reply(&p, reply) - 1);
        assert_int_equal(side_event(&p.victim, RDMA_CM_EVENT_UNREACHABLE), -ETIMEDOUT);
        cm_quiet(p.victim.events, QUIET_MS);
        expect_closed(p.fd);
        p.fd = -1;
        peer_close(&p);
    }
}

static void no_request(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *a2, *b2;
    int silent[SILENT];
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    for (int i = 0; i < SILENT; i++)
        silent[i] = call(&s);
    int slow = call(&s);
    cm_connect(&s, &a2, &b2); /* nobody stands in the way */
    dribble(slow, request, REQUEST_LEN);
    expect_closed(slow);
    for (int i = 0; i < SILENT; i++)
        expect_closed(silent[i]);
    cm_quiet(s.a, QUIET_MS); /* of the connections, and no request */
    cm_quiet(s.b, 0);
    cm_drop(a);
    cm_drop(b);
    cm_drop(a2);
    cm_drop(b2);
    cm_close(&s);
}

/** Peer-to-peer: the connection is up when the first message is in, which never comes. */
static void no_first_message(void **state)
{
    struct cm_sides s;
    char reply[64];
    (void)state;
    cm_open(&s, NULL);
    int fd = call(&s);
    assert_int_equal(send(fd, request, REQUEST_LEN, MSG_NOSIGNAL), REQUEST_LEN);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_true(recv(fd, reply, sizeof(reply), 0) > 20);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(b->qp->state, IBV_QPS_ERR);
    while (recv(fd, reply, sizeof(reply), 0) > 0) /* a Terminate */
        ;
    close(fd);
    cm_quiet(s.b, QUIET_MS);
    cm_drop(b);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reply),
        cmocka_unit_test(no_request),
        cmocka_unit_test(no_first_message),
    };
    setenv("ANYWARP_CONNECT_MS", LIMIT_MS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

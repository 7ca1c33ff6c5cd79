/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody who calls the port of a QP's number, and says what no peer should: of who it is, and, as
 * the peer, of what it has received. The bytes are written by hand.
 */
#include "api/by_number.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define FRAME    (20 + 4 + 64)
#define SLOT     1
#define NOTE     20 /* an FPDU of a Write without bytes */
#define RTR      1
#define ACK      2
#define RETRY    3
#define CROWD    10000
#define SPARE    2500 /* descriptors, for the other end of what is let in */
#define CROWD_KB 65536
#define QUIET_MS 100
#define WAIT_S   20 /* for the victim to call */
#define PATIENT  22 /* a timeout of 17 s */
#define PIECE    1024

#define DOUBTS   2
#define VOUCHES  3
#define PATIENCE "2000" /* ms, for the first FPDU */

static struct end victim, peer;
static union ibv_gid gid;
static int own_port;    /* a listener's descriptor */
static uint32_t caller; /* of that port, a number lower than the victim's: it calls */
static uint32_t epoch = 0x1234;

/** The lowest port that is free. */
static void open_own_port(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    struct timeval wait = {.tv_sec = WAIT_S};
    int r = -1;
    own_port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(own_port, errno);
    setsockopt(own_port, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    for (uint16_t port = 1024; r; port++) {
        own.sin_port = htons(port);
        caller = (uint32_t)port << 8 | SLOT;
        r = bind(own_port, (struct sockaddr *)&own, sizeof(own));
    }
    assert_return_code(listen(own_port, CROWD), errno);
}

static int setup(void **state)
{
    (void)state;
    open_own_port();
    end_make(&victim);
    end_make(&peer);
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    end_init(&victim);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_drop(&victim);
    end_drop(&peer);
    close(own_port);
    return 0;
}

static void put32(uint8_t *p, uint32_t v)
{
    v = htonl(v);
    memcpy(p, &v, sizeof(v));
}

/** From the address of the victim's GID, as its peer on this host would. */
static int call(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(victim.qp->qp_num >> 8))},
                       from = {.sin_family = AF_INET};
    memcpy(&to.sin_addr, gid.raw + 12, sizeof(to.sin_addr));
    from.sin_addr = to.sin_addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_return_code(bind(fd, (struct sockaddr *)&from, sizeof(from)), errno);
    assert_return_code(connect(fd, (struct sockaddr *)&to, sizeof(to)), errno);
    return fd;
}

/** MPA revision 2, peer-to-peer with a Write first, and the hello of QP @p from. */
static void make_request(uint8_t request[FRAME], uint32_t from)
{
    static const uint8_t frame[] = "MPA ID Req Frame\x10\x02\0\x44\x80\x01\x80\x01"
                                   "AWQPN\2\0\0";
    memset(request, 0, FRAME);
    memcpy(request, frame, sizeof(frame) - 1);
    put32(request + 32, from);
    put32(request + 36, victim.qp->qp_num);
    put32(request + 40, epoch);
    memcpy(request + 48, &gid, sizeof(gid));
    memcpy(request + 64, &gid, sizeof(gid));
}

static void say(int fd, const void *p, size_t len)
{
    assert_int_equal(send(fd, p, len, MSG_NOSIGNAL), len);
}

static void say_note(int fd, uint32_t stag, uint64_t offset)
{
    uint8_t fpdu[NOTE] = {0, 14, 0xc1, 0x40};
    put32(fpdu + 4, stag);
    put32(fpdu + 8, (uint32_t)(offset >> 32));
    put32(fpdu + 12, (uint32_t)offset);
    say(fd, fpdu, sizeof(fpdu));
}

/** @return bytes until the end of the stream, or until nothing comes any more */
static size_t hear(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t bytes[4096];
    size_t all = 0;
    ssize_t n = 1;
    while (n > 0 && poll(&p, 1, QUIET_MS) == 1) {
        n = recv(fd, bytes, sizeof(bytes), 0);
        all += n > 0 ? (size_t)n : 0;
    }
    return all;
}

/** The process of the caller's number: it is asked whether it has called. */
static void vouch(bool yes)
{
    uint8_t doubt[FRAME], reply[FRAME];
    int fd = accept(own_port, NULL, NULL);
    assert_return_code(fd, errno);
    assert_int_equal(recv(fd, doubt, sizeof(doubt), MSG_WAITALL), sizeof(doubt));
    make_request(reply, caller);
    assert_int_equal(doubt[30], DOUBTS);
    assert_memory_equal(doubt + 32, reply + 36, 4); /* from whom that went to */
    assert_memory_equal(doubt + 36, reply + 32, 4);
    assert_memory_equal(doubt + 44, reply + 40, 4);
    memcpy(reply + 7, "Rep", 3);
    reply[16] = 0x30; /* rejected: no connection is wanted */
    reply[30] = VOUCHES;
    memcpy(reply + 44, doubt + 40, 4);
    if (yes)
        say(fd, reply, sizeof(reply));
    close(fd);
}

static int call_as_peer(void)
{
    uint8_t request[FRAME];
    int fd = call();
    make_request(request, caller);
    say(fd, request, sizeof(request));
    return fd;
}

static void expect_reply(int fd)
{
    uint8_t reply[FRAME];
    vouch(true);
    assert_int_equal(recv(fd, reply, sizeof(reply), MSG_WAITALL), sizeof(reply));
    assert_memory_equal(reply, "MPA ID Rep Frame", 16);
}

/** As the victim's peer, as far as it can tell, which does not begin. */
static int be_let_in(void)
{
    int fd = call_as_peer();
    expect_reply(fd);
    return fd;
}

static void expect_peer(void)
{
    assert_int_equal(end_try_rtr(&victim, caller, &gid), 0);
    end_rts(&victim, 7);
}

static int connect_as_peer(void)
{
    expect_peer();
    int fd = be_let_in();
    say_note(fd, RTR, caller);
    return fd;
}

static void nothing_completes(void)
{
    struct ibv_wc wc;
    usleep(QUIET_MS * 1000);
    assert_int_equal(ibv_poll_cq(victim.cq, 1, &wc), 0);
}

static void goes_on(void)
{
    uint32_t number = victim.qp->qp_num;
    end_move(&victim, IBV_QPS_RESET);
    assert_int_equal(victim.qp->qp_num, number);
    ends_connect(&victim, &peer);
    end_send_once(&victim, &peer, 1);
    end_send_once(&peer, &victim, 2);
}

/* ---- who it is ---- */

/** A stranger, a liar about its address, and a wrong number are hung up on, before and after. */
static void not_the_peer(void **state)
{
    uint8_t request[FRAME];
    (void)state;
    end_init(&peer);
    end_rtr(&victim, peer.qp->qp_num);
    for (int lie = 0; lie < 5; lie++) {
        make_request(request, lie == 0 ? caller : peer.qp->qp_num);
        if (lie == 1)
            request[48 + 15] ^= 1;
        if (lie == 2)
            request[64 + 15] ^= 1;
        if (lie == 3)
            put32(request + 36, victim.qp->qp_num ^ 0x80);
        if (lie == 4)
            request[24] ^= 1;
        int fd = call();
        say(fd, request, sizeof(request));
        hear(fd);
        assert_int_not_equal(send(fd, request, 1, MSG_NOSIGNAL), 0);
        close(fd);
    }
    end_rtr(&peer, victim.qp->qp_num);
    end_rts(&victim, 7);
    end_rts(&peer, 7);
    end_send_once(&peer, &victim, 3);
}

/** It says all that the peer would, from the peer's host, but the peer's process has not called. */
static void an_impostor(void **state)
{
    uint8_t request[FRAME];
    (void)state;
    assert_int_equal(end_try_rtr(&victim, caller, &gid), 0);
    int fd = call();
    make_request(request, caller);
    say(fd, request, sizeof(request));
    vouch(false);
    assert_int_equal(recv(fd, request, sizeof(request), MSG_WAITALL), FRAME - 64);
    assert_int_equal(request[16] & 0x20, 0x20);
    close(fd);
    goes_on();
}

/** The token is what the process was given: another, or that of another, is none. */
static void a_wrong_token(void **state)
{
    uint8_t request[FRAME];
    (void)state;
    close(connect_as_peer());
    end_move(&victim, IBV_QPS_RESET);
    end_init(&victim);
    assert_int_equal(end_try_rtr(&victim, caller, &gid), 0);
    int fd = call();
    make_request(request, caller);
    memset(request + 80, 0x5a, 8);
    say(fd, request, sizeof(request));
    vouch(false);
    hear(fd);
    close(fd);
    goes_on();
}

/** It is let in, and says nothing more: nobody is told, and what is posted then fails. */
static void it_never_begins(void **state)
{
    uint8_t reply[FRAME];
    (void)state;
    expect_peer();
    end_receive(&victim);
    int fd = be_let_in();
    while (recv(fd, reply, sizeof(reply), 0) > 0) /* until it has waited long enough */
        ;
    close(fd);
    nothing_completes();
    assert_int_equal(end_state(&victim), IBV_QPS_RTS);
    assert_int_equal(end_post(&victim, &victim, IBV_WR_RDMA_WRITE), 0);
    end_expect(&victim, IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR);
    end_expect(&victim, END_RECV, IBV_WC_WR_FLUSH_ERR);
    goes_on();
}

/** It was reset before it began: its next incarnation is let in, and gets what was posted before.
 */
static void it_goes_before_it_begins(void **state)
{
    (void)state;
    expect_peer();
    end_set_timeout(&victim, PATIENT);
    end_receive(&victim);
    for (int i = 0; i < 3; i++) {
        int fd = be_let_in();
        if (i == 1)
            assert_int_equal(end_post(&victim, &victim, IBV_WR_RDMA_WRITE), 0);
        close(fd);
        epoch++;
        usleep(QUIET_MS * 1000); /* or it is turned away, and has to call again */
    }
    nothing_completes();
    int fd = be_let_in();
    say_note(fd, RTR, caller);
    say_note(fd, ACK, hear(fd));
    end_expect(&victim, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    close(fd);
    goes_on();
}

/** Whether the port of the caller's number is asked; else it is turned away. */
static bool is_doubted(int fd)
{
    struct pollfd p[] = {{own_port, POLLIN, 0}, {fd, POLLIN, 0}};
    assert_true(poll(p, 2, WAIT_S * 1000) > 0);
    return p[0].revents;
}

/** The next incarnation calls while nobody has noticed yet that this one is gone. */
static void it_calls_before_it_goes(void **state)
{
    (void)state;
    expect_peer();
    end_set_timeout(&victim, PATIENT);
    int before = be_let_in();
    epoch++;
    int fd = call_as_peer();
    usleep(QUIET_MS * 1000);
    close(before);
    while (!is_doubted(fd)) {
        close(fd);
        usleep(QUIET_MS * 1000);
        fd = call_as_peer();
    }
    expect_reply(fd);
    say_note(fd, RTR, caller);
    close(fd);
    goes_on();
}

/** @return how many connections this process may hold, up to CROWD */
static int room_for_crowd(void)
{
    struct rlimit limit;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
    limit.rlim_cur = limit.rlim_max;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
    return limit.rlim_max < CROWD + SPARE ? (int)limit.rlim_max - SPARE : CROWD;
}

static long resident_kb(void)
{
    struct rusage usage;
    assert_return_code(getrusage(RUSAGE_SELF, &usage), errno);
    return usage.ru_maxrss;
}

/** Hellos that never end do not keep the peer out, and cost no more than those that may wait. */
static void a_crowd_of_halves(void **state)
{
    uint8_t request[FRAME];
    static int fd[CROWD];
    int crowd = room_for_crowd();
    long before = resident_kb();
    (void)state;
    assert_in_range(crowd, 100, CROWD);
    make_request(request, caller);
    for (int i = 0; i < crowd; i++) {
        fd[i] = call();
        send(fd[i], request, (size_t)i % sizeof(request), MSG_NOSIGNAL); /* or it is hung up on */
    }
    goes_on();
    assert_in_range(resident_kb() - before, 0, CROWD_KB);
    for (int i = 0; i < crowd; i++)
        close(fd[i]);
}

/* ---- what it has received ---- */

static void acknowledged_in_part(void **state)
{
    (void)state;
    int fd = connect_as_peer();
    victim.data[END_HALF / 8] = 5;
    assert_int_equal(end_post(&victim, &victim, IBV_WR_RDMA_WRITE), 0);
    uint64_t all = hear(fd);
    assert_in_range(all, 8, 100);
    say_note(fd, ACK, all - 1);
    say_note(fd, ACK, 0);
    nothing_completes();
    say_note(fd, ACK, all);
    end_expect(&victim, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    say_note(fd, ACK, 1); /* it was further once */
    say_note(fd, 4, 7);   /* to a key that is none */
    nothing_completes();
    assert_int_equal(end_state(&victim), IBV_QPS_RTS);
    close(fd);
    goes_on();
}

static void acknowledged_and_never_sent(void **state)
{
    static const uint64_t past[] = {1, 1 << 20, UINT64_MAX};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int fd = connect_as_peer();
        assert_int_equal(end_post(&victim, &victim, IBV_WR_RDMA_WRITE), 0);
        uint64_t all = hear(fd);
        say_note(fd, ACK, i < 2 ? all + past[i] : past[i]);
        end_expect(&victim, IBV_WR_RDMA_WRITE, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(end_state(&victim), IBV_QPS_ERR);
        close(fd);
        end_move(&victim, IBV_QPS_RESET);
        end_init(&victim);
    }
    goes_on();
}

/** Only its lowest bits are an rnr_retry. */
static void retries_without_end(void **state)
{
    (void)state;
    int fd = connect_as_peer();
    for (int i = 0; i < 1000; i++)
        say_note(fd, RETRY, UINT64_MAX - (uint64_t)i);
    hear(fd);
    assert_int_equal(end_state(&victim), IBV_QPS_RTS);
    close(fd);
    goes_on();
}

/** A refusal of nothing is none. */
static void refused_and_never_asked(void **state)
{
    static const uint8_t terminate[] = {0, 22, 0x41, 0x47, 0, 0, 0,    0, 0, 0, 0, 2, 0, 0,
                                        0, 1,  0,    0,    0, 0, 0x12, 2, 0, 0, 0, 0, 0, 0};
    (void)state;
    int fd = connect_as_peer();
    say(fd, terminate, sizeof(terminate));
    nothing_completes();
    assert_int_equal(end_state(&victim), IBV_QPS_RTS);
    close(fd);
    goes_on();
}

/** A segment that others would have to follow. */
static void say_half_a_send(int fd)
{
    uint8_t fpdu[2 + 18 + PIECE + 4] = {(18 + PIECE) >> 8, (18 + PIECE) & 255, 0x01, 0x43};
    put32(fpdu + 12, 1);
    say(fd, fpdu, sizeof(fpdu));
}

/** It is told that nobody receives it, and does not answer: that is no reason to wait for it. */
static void silent_behind_half_a_send(void **state)
{
    struct ibv_async_event event;
    (void)state;
    for (int time = 0; time < 2; time++) {
        assert_int_equal(end_try_rtr(&victim, caller, &gid), 0);
        int fd = be_let_in();
        say_note(fd, RTR, caller);
        say_note(fd, RETRY, 1);
        say_half_a_send(fd);
        assert_true(hear(fd) > 0);
        alarm(WAIT_S);
        assert_int_equal(ibv_get_async_event(ctx, &event), 0);
        assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
        ibv_ack_async_event(&event);
        if (time)
            end_drop_qp(&victim);
        else
            goes_on();
        alarm(0);
        close(fd);
        if (!time) {
            end_move(&victim, IBV_QPS_RESET);
            end_init(&victim);
        }
    }
}

static int tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest all[] = {
        T(not_the_peer),
        T(an_impostor),
        T(a_wrong_token),
        T(it_never_begins),
        T(it_goes_before_it_begins),
        T(it_calls_before_it_goes),
        T(a_crowd_of_halves),
        T(acknowledged_in_part),
        T(acknowledged_and_never_sent),
        T(retries_without_end),
        T(refused_and_never_asked),
        T(silent_behind_half_a_send),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    setenv("ANYWARP_CONNECT_MS", PATIENCE, 1);
    return ends_run(tests);
}

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
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLER   0x040001 /* a number lower than all that there are: it calls */
#define REQUEST  (20 + 4 + 56)
#define NOTE     20 /* an FPDU of a Write without bytes */
#define RTR      1
#define ACK      2
#define RETRY    3
#define CROWD    300
#define QUIET_MS 100

static struct end victim, peer;
static union ibv_gid gid;

static int setup(void **state)
{
    (void)state;
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
static void make_request(uint8_t request[REQUEST], uint32_t from)
{
    static const uint8_t frame[] = "MPA ID Req Frame\x10\x02\0\x3c\x80\x01\x80\x01"
                                   "AWQPN\1\0\0";
    memset(request, 0, REQUEST);
    memcpy(request, frame, sizeof(frame) - 1);
    put32(request + 32, from);
    put32(request + 36, victim.qp->qp_num);
    put32(request + 40, 0x1234);
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

/** The victim's peer, as far as it can tell. */
static int connect_as_peer(void)
{
    uint8_t request[REQUEST], reply[REQUEST];
    assert_int_equal(end_try_rtr(&victim, CALLER, &gid), 0);
    end_rts(&victim, 7);
    int fd = call();
    make_request(request, CALLER);
    say(fd, request, sizeof(request));
    assert_int_equal(recv(fd, reply, sizeof(reply), MSG_WAITALL), sizeof(reply));
    assert_memory_equal(reply, "MPA ID Rep Frame", 16);
    say_note(fd, RTR, CALLER);
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
    uint8_t request[REQUEST];
    (void)state;
    end_init(&peer);
    end_rtr(&victim, peer.qp->qp_num);
    for (int lie = 0; lie < 5; lie++) {
        make_request(request, lie == 0 ? CALLER : peer.qp->qp_num);
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

/** Hellos that never end do not keep the peer out. */
static void a_crowd_of_halves(void **state)
{
    uint8_t request[REQUEST];
    static int fd[CROWD];
    (void)state;
    make_request(request, CALLER);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = call();
        say(fd[i], request, (size_t)i % sizeof(request));
    }
    goes_on();
    for (int i = 0; i < CROWD; i++)
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

static int tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest all[] = {
        T(not_the_peer),         T(a_crowd_of_halves),
        T(acknowledged_in_part), T(acknowledged_and_never_sent),
        T(retries_without_end),  T(refused_and_never_asked),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return ends_run(tests);
}

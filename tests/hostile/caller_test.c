/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that call and are gone: after every byte of a Request, and while the program accepts,
 * rejects or destroys what they asked for. Nothing is left of them.
 */
#include "api/cm_kit.h"
#include "entries.h"
#include "witness.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS  40
#define WAIT_MS 10000

/** Revision 2, peer-to-peer with a Write first, and 4 bytes for the program. */
static const uint8_t request[] = "MPA ID Req Frame\x10\x02\x00\x08\x80\x01\x80\x01ping";
#define REQUEST_LEN (sizeof(request) - 1)

static struct cm_sides sides;

static int call(size_t bytes)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_return_code(
        connect(fd, (const struct sockaddr *)&sides.addr, sizeof(struct sockaddr_in)), errno);
    assert_int_equal(send(fd, request, bytes, MSG_NOSIGNAL), bytes);
    return fd;
}

static void hang_up(int fd, bool reset)
{
    struct linger now = {.l_onoff = 1};
    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static void expect_nothing_left(int before)
{
    for (int ms = 0; descriptors() > before && ms < WAIT_MS; ms += 10)
        usleep(10000);
    assert_in_range(descriptors(), 1, before); /* a line of the log has one for a moment */
    witness_goes_on();
    log_clear();
}

/** The program hears of whole Requests only. */
static void gone_after_every_byte(void **state)
{
    int before = descriptors();
    (void)state;
    for (int reset = 0; reset < 2; reset++)
        for (size_t n = 0; n < REQUEST_LEN; n++)
            hang_up(call(n), reset);
    expect_nothing_left(before);
    cm_quiet(sides.b, 0);
}

static void wrong_at_every_byte(void **state)
{
    int before = descriptors();
    (void)state;
    for (size_t n = 0; n < 16; n++) {
        uint8_t bytes[REQUEST_LEN], c;
        int fd = call(0);
        memcpy(bytes, request, sizeof(bytes));
        bytes[n] ^= 0x20;
        assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
        assert_true(recv(fd, &c, 1, 0) <= 0);
        close(fd);
    }
    expect_nothing_left(before);
    cm_quiet(sides.b, 0);
}

static void take_in(struct rdma_cm_id *id)
{
    cm_add_qp(id);
    if (rdma_accept(id, NULL) == 0)
        assert_int_equal(cm_expect(sides.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    else
        assert_int_equal(errno, ECONNRESET);
    assert_int_equal(id->qp->state == IBV_QPS_RTS, 0);
}

static void turn_away(struct rdma_cm_id *id)
{
    if (rdma_reject(id, "no", 2))
        assert_int_equal(errno, ECONNRESET);
}

static void ignore(struct rdma_cm_id *id)
{
    (void)id;
}

/** Whether the end is seen before the decision, in it or afterwards is left to chance. */
static void gone_while_the_program_decides(void **state)
{
    static void (*const decide[])(struct rdma_cm_id *) = {take_in, turn_away, ignore};
    int before = descriptors();
    (void)state;
    for (int i = 0; i < ROUNDS * 6; i++) {
        int fd = call(REQUEST_LEN);
        if (i % 4 == 0)
            hang_up(fd, i % 2);
        struct rdma_cm_id *id = cm_request(sides.b);
        if (i % 4 == 1)
            hang_up(fd, i / 4 % 2);
        if (i % 4 == 2)
            assert_int_equal(shutdown(fd, SHUT_WR), 0);
        if (i % 4 == 3) {
            send(fd, "more than may be", 16, MSG_NOSIGNAL);
            hang_up(fd, i / 4 % 2);
        }
        decide[i % 3](id);
        cm_drop(id);
        if (i % 4 == 2)
            close(fd);
    }
    expect_nothing_left(before);
    cm_quiet(sides.b, 0);
}

/** Requests that nobody has taken from the channel, or answered, when their listener goes. */
static void their_listener_goes(void **state)
{
    int fd[8], before = descriptors();
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct cm_sides s = sides;
        cm_open(&sides, NULL);
        for (int k = 0; k < 8; k++)
            fd[k] = call(k % 2 ? REQUEST_LEN : REQUEST_LEN / 2);
        struct rdma_cm_id *id = i % 2 ? cm_request(sides.b) : NULL;
        assert_int_equal(rdma_destroy_id(sides.listener), 0);
        for (int k = 0; k < 8; k++)
            hang_up(fd[k], k % 4 < 2);
        if (id)
            cm_drop(id);
        rdma_destroy_event_channel(sides.a);
        rdma_destroy_event_channel(sides.b);
        sides = s;
    }
    expect_nothing_left(before);
}

static int setup(void **state)
{
    int r = witness_setup(state);
    cm_open(&sides, NULL);
    return r;
}

static int teardown(void **state)
{
    cm_close(&sides);
    return witness_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gone_after_every_byte),
        cmocka_unit_test(wrong_at_every_byte),
        cmocka_unit_test(gone_while_the_program_decides),
        cmocka_unit_test(their_listener_goes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

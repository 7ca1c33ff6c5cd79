/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More connections than a listener keeps that are not accepted: without a Request, or with one that
 * is rejected and a peer that does not hang up. The oldest have to go.
 */
#include "api/cm_kit.h"
#include "entries.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define KEPT    1024
#define TOO     64 /* many */
#define CROWD   (KEPT + TOO)
#define WAIT_MS 10000

#define TIME_MS  5000 /* that each has */
#define EARLY_MS 500
#define LATE_MS  2500

static int call(const struct cm_sides *s)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_return_code(connect(fd, (const struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)),
                       errno);
    return fd;
}

static bool closed(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void the_oldest_make_room(void **state)
{
    static int crowd[CROWD];
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *a2, *b2;
    struct rlimit files;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    if (files.rlim_max < 4096 || setrlimit(RLIMIT_NOFILE, &files))
        skip();
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    int before = descriptors();
    for (int i = 0; i < CROWD; i++)
        crowd[i] = call(&s);
    for (int i = 0; i < TOO; i++)
        assert_true(closed(crowd[i], WAIT_MS));
    for (int i = TOO + 1; i < CROWD; i++)
        assert_false(closed(crowd[i], 0));
    cm_connect(&s, &a2, &b2); /* that took the place of one more */
    assert_true(closed(crowd[TOO], WAIT_MS));
    cm_quiet(s.a, 0);
    cm_quiet(s.b, 0);
    cm_drop(a2);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_drop(b2);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    for (int ms = 0; descriptors() > before && ms < WAIT_MS; ms += 10)
        usleep(10000);
    assert_int_equal(descriptors(), before);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

/** A Request of revision 1. */
static void ask(int fd)
{
    static const char request[20] = "MPA ID Req Frame\0\1\0";
    assert_int_equal(send(fd, request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
}

static void reject(struct cm_sides *s)
{
    struct rdma_cm_id *id = cm_request(s->b);
    assert_int_equal(rdma_reject(id, NULL, 0), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
}

/** Whether the listener has answered. */
static void expect_reply(int fd)
{
    char reply[20];
    assert_true(closed(fd, WAIT_MS)); /* readable */
    assert_int_equal(recv(fd, reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
}

/** Peers that are rejected, by the library or the program, and stay: they count until they go. */
static void the_rejected_count(void **state)
{
    enum { BACKLOG = 8 };
    static int crowd[CROWD];
    (void)state;
    for (int by_program = 0; by_program < 2; by_program++) {
        struct cm_sides s;
        struct rdma_cm_id *a, *b;
        cm_open(&s, NULL);
        cm_connect(&s, &a, &b);
        struct rdma_cm_id *listener = s.listener;
        assert_int_equal(rdma_create_id(s.b, &s.listener, NULL, RDMA_PS_TCP), 0);
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        assert_int_equal(rdma_bind_addr(s.listener, (struct sockaddr *)&to), 0);
        assert_int_equal(rdma_listen(s.listener, BACKLOG), 0);
        to.sin_port = rdma_get_src_port(s.listener);
        memcpy(&s.addr, &to, sizeof(to));
        int before = descriptors();
        for (int i = 0; i < CROWD; i++) {
            crowd[i] = call(&s);
            ask(crowd[i]);
            if (by_program)
                reject(&s);
            if (by_program || i >= BACKLOG)
                expect_reply(crowd[i]);
        }
        assert_in_range(descriptors(), before + CROWD, before + CROWD + KEPT);
        for (int i = 0; !by_program && i < BACKLOG; i++)
            reject(&s);
        for (int i = 0; i < CROWD; i++)
            close(crowd[i]);
        for (int ms = 0; descriptors() > before && ms < WAIT_MS; ms += 10)
            usleep(10000);
        assert_int_equal(descriptors(), before);
        assert_int_equal(rdma_destroy_id(listener), 0);
        cm_drop(a);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        cm_drop(b);
        cm_close(&s);
    }
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/** Where there is room, those that say nothing or stay have their time, and no more. */
static void their_time_is_bounded(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    int before = descriptors();
    long start = now_ms();
    int silent = call(&s), stays = call(&s);
    ask(stays);
    reject(&s);
    expect_reply(stays);
    usleep(TIME_MS / 2 * 1000);
    assert_int_equal(descriptors(), before + 4);
    assert_true(closed(silent, TIME_MS));
    assert_in_range(now_ms() - start, TIME_MS - EARLY_MS, TIME_MS + LATE_MS);
    close(silent);
    while (descriptors() > before + 1 && now_ms() - start < TIME_MS + LATE_MS)
        usleep(10000);
    assert_int_equal(descriptors(), before + 1); /* our own end */
    close(stays);
    cm_quiet(s.b, 0);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(the_rejected_count),
        cmocka_unit_test(their_time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

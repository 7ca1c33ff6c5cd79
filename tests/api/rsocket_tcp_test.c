/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: what programs know from sockets of TCP. */
#include "rsocket_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* All that has come, whatever was peeked at before, and into however many pieces. */
static void peeking_shows_all(void **unused)
{
    (void)unused;
    struct ends e;
    char text[8] = {0};
    struct iovec in[3] = {{text, 2}, {text + 2, 3}, {text + 5, 3}};
    struct msghdr msg = {.msg_iov = in, .msg_iovlen = 3};
    join(&e);
    assert_int_equal(rsend(e.a, "abc", 3, 0), 3);
    assert_int_equal(rrecv(e.b, text, 1, MSG_PEEK), 1);
    assert_int_equal(rsend(e.a, "defg", 4, 0), 4);
    for (int ms = 0; ms < WAIT_MS && rrecv(e.b, text, 8, MSG_PEEK) < 7; ms++)
        usleep(1000);
    assert_int_equal(rrecv(e.b, text, 8, MSG_PEEK), 7);
    memset(text, 0, sizeof text);
    assert_int_equal(rrecvmsg(e.b, &msg, MSG_PEEK | MSG_WAITALL), 7);
    assert_memory_equal(text, "abcdefg", 8);
    memset(text, 0, sizeof text);
    assert_int_equal(rrecv(e.b, text, 8, 0), 7);
    assert_memory_equal(text, "abcdefg", 8);
    part(&e);
}

static void *send_later(void *arg)
{
    usleep(100000);
    return (void *)(intptr_t)rsend(*(int *)arg, "x", 1, 0);
}

/* A time in seconds that milliseconds cannot say. */
static void rselect_waits_long(void **unused)
{
    (void)unused;
    struct ends e;
    struct timeval long_time = {(time_t)1 << 32, 0};
    pthread_t thread;
    fd_set set;
    join(&e);
    FD_ZERO(&set);
    FD_SET(e.b, &set);
    pthread_create(&thread, NULL, send_later, &e.a);
    assert_int_equal(rselect(e.b + 1, &set, NULL, NULL, &long_time), 1);
    pthread_join(thread, NULL);
    part(&e);
}

/* Of RDMA_INLINE as much as there is. */
static void more_inline_than_there_is(void **unused)
{
    (void)unused;
    static char block[1 << 16], copy[1 << 16];
    struct sockaddr_in addr;
    int listener = listen_at(&addr, 0), fd = stream(), value = 0xfffe, got = 0;
    socklen_t len = sizeof got;
    memset(block, 'x', sizeof block);
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_INLINE, &value, sizeof value), 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_INLINE, &got, &len), 0);
    assert_in_range(got, 64, value);
    int child = raccept(listener, NULL, NULL);
    assert_int_equal(rsend(fd, block, sizeof block, MSG_DONTWAIT), sizeof block);
    assert_int_equal(rrecv(child, copy, sizeof copy, MSG_WAITALL), sizeof copy);
    assert_memory_equal(copy, block, sizeof copy);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(listener), 0);
}

/* More pieces than messages may be under way. */
static void pieces_are_gathered(void **unused)
{
    (void)unused;
    static char data[1024 * 4], copy[sizeof data];
    struct iovec pieces[1024];
    struct ends e;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 + (i >> 6));
    for (size_t i = 0, at = 0; i < 1024; at += pieces[i++].iov_len)
        pieces[i] = (struct iovec){data + at, i == 500 ? sizeof data - 1023 * 1 : 1};
    join(&e);
    struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = 1024};
    assert_int_equal(rsendmsg(e.a, &msg, MSG_DONTWAIT), sizeof data);
    assert_int_equal(rrecv(e.b, copy, sizeof copy, MSG_WAITALL), sizeof copy);
    assert_memory_equal(copy, data, sizeof data);
    part(&e);
}

static long resident_kb(void)
{
    long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* One end has buffers that the heap would keep: behind the first that is freed, of 4 MB, also one
 * of 2 MB is taken from there. */
static void join_large(struct ends *e)
{
    struct sockaddr_in addr;
    int size = 1 << 21, smaller = 1 << 20;
    e->listener = listen_at(&addr, 0);
    e->a = stream();
    assert_int_equal(rsetsockopt(e->a, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    assert_int_equal(rsetsockopt(e->a, SOL_SOCKET, SO_SNDBUF, &smaller, sizeof smaller), 0);
    assert_int_equal(rconnect(e->a, (struct sockaddr *)&addr, sizeof addr), 0);
    e->b = raccept(e->listener, NULL, NULL);
}

/* One that stays open keeps nothing of those that came before. */
static void memory_goes_with_the_socket(void **unused)
{
    (void)unused;
    struct ends e[20];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* which keep more */
    skip();
#endif
    join_large(&e[0]);
    part(&e[0]);
    long before = resident_kb();
    for (int i = 0; i < 20; i++)
        join_large(&e[i]);
    for (int i = 0; i < 19; i++)
        part(&e[i]);
    assert_in_range(resident_kb() - before + 10000, 0, 30000);
    part(&e[19]);
}

static void expect_mapped(const struct sockaddr_in6 *addr)
{
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    assert_int_equal(addr->sin6_family, AF_INET6);
    assert_memory_equal(&addr->sin6_addr, mapped, sizeof mapped);
}

/* A socket of IPv6 shows addresses of IPv6. */
static void a_listener_of_both(void **unused)
{
    (void)unused;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6}, peer, name;
    struct sockaddr_in addr = loopback(), own;
    socklen_t len = sizeof any;
    int off = 0, listener = rsocket(AF_INET6, SOCK_STREAM, 0), fd = stream();
    assert_int_equal(rsetsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(rlisten(listener, 4), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)&any, &len), 0);
    addr.sin_port = any.sin6_port;
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    len = sizeof peer;
    int child = raccept(listener, (struct sockaddr *)&peer, &len);
    assert_int_equal(len, sizeof peer);
    expect_mapped(&peer);
    len = sizeof own;
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&own, &len), 0);
    assert_int_equal(own.sin_family, AF_INET);
    assert_int_equal(own.sin_port, peer.sin6_port);
    len = sizeof name;
    assert_int_equal(rgetpeername(child, (struct sockaddr *)&name, &len), 0);
    assert_memory_equal(&name, &peer, sizeof peer);
    assert_int_equal(rgetsockname(child, (struct sockaddr *)&name, &len), 0);
    expect_mapped(&name);
    assert_int_equal(name.sin6_port, addr.sin_port);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(listener), 0);
}

/* Closed members leave a set, and another one may have their number. */
static void a_member_is_closed(void **unused)
{
    (void)unused;
    struct ends e;
    struct epoll_event event = {EPOLLIN, {.u64 = 1}};
    int pipes[2][2], set = repoll_create(0), others[64], n = 0;
    join(&e);
    assert_int_equal(pipe(pipes[0]), 0);
    assert_int_equal(pipe(pipes[1]), 0);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, pipes[0][0], &event), 0);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), 0);
    close(pipes[0][0]);
    assert_int_equal(rclose(e.b), 0);
    assert_int_equal(repoll_wait(set, &event, 1, 50), 0);
    assert_int_equal(dup2(pipes[1][0], pipes[0][0]), pipes[0][0]);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, pipes[0][0], &event), 0);
    do
        others[n] = stream();
    while (others[n++] != e.b && n < 64);
    assert_int_equal(others[n - 1], e.b);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), 0);
    while (n)
        assert_int_equal(rclose(others[--n]), 0);
    assert_int_equal(rclose(set), 0);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    assert_int_equal(rclose(e.a), 0);
    assert_int_equal(rclose(e.listener), 0);
}

/* A server of something else. */
static void *hang_up(void *listener)
{
    char text[4];
    int fd;
    while ((fd = accept(*(int *)listener, NULL, NULL)) >= 0) {
        recv(fd, text, sizeof text, MSG_WAITALL);
        close(fd);
    }
    return NULL;
}

static void who_hangs_up_is_there(void **unused)
{
    (void)unused;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    pthread_t thread;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    pthread_create(&thread, NULL, hang_up, &listener);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), -1);
    assert_int_equal(errno, ECONNRESET);
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    assert_int_equal(rclose(fd), 0);
    fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(rclose(fd), 0);
}

static void *find_out_its_name(void *number)
{
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    int fd = (int)(intptr_t)number, r;
    do
        r = rgetsockname(fd, (struct sockaddr *)&addr, &len);
    while (r < 0 && errno == EBADF);
    assert_int_equal(r, 0);
    assert_int_equal(addr.sin_family, AF_INET);
    return NULL;
}

/* Whoever finds a socket finds all of it. */
static void a_number_means_a_whole_socket(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        int next = stream();
        assert_int_equal(rclose(next), 0);
        pthread_create(&thread, NULL, find_out_its_name, (void *)(intptr_t)next);
        usleep(100);
        int fd = stream();
        assert_int_equal(fd, next);
        pthread_join(thread, NULL);
        assert_int_equal(rclose(fd), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peeking_shows_all),
        cmocka_unit_test(rselect_waits_long),
        cmocka_unit_test(more_inline_than_there_is),
        cmocka_unit_test(pieces_are_gathered),
        cmocka_unit_test(memory_goes_with_the_socket),
        cmocka_unit_test(a_listener_of_both),
        cmocka_unit_test(a_member_is_closed),
        cmocka_unit_test(who_hangs_up_is_there),
        cmocka_unit_test(a_number_means_a_whole_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

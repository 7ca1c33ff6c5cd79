/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: two ends in one process. */
#include "rsocket_kit.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define RS_TAKE_TCP 0x616e7901 /* as in common/rs_plain.h */

static void bytes_arrive(void **unused)
{
    (void)unused;
    struct ends e;
    char text[16] = {0};
    join(&e);
    assert_int_equal(rsend(e.a, "hello, world", 12, 0), 12);
    int size = 20;
    expect_errno(rsetsockopt(e.a, SOL_RDMA, RDMA_SQSIZE, &size, sizeof size), EINVAL);
    struct msghdr control = {.msg_control = text, .msg_controllen = sizeof text};
    expect_errno(rsendmsg(e.a, &control, 0), ENOTSUP);
    expect_errno(rrecvmsg(e.a, &control, 0), ENOTSUP);
    assert_int_equal(rrecv(e.b, text, 5, MSG_PEEK), 5);
    assert_int_equal(rrecv(e.b, text, 5, 0), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(rrecv(e.b, text, 7, MSG_WAITALL), 7);
    assert_string_equal(text, ", world");
    struct iovec out[2] = {{"ab", 2}, {"cde", 3}}, in[2] = {{text, 1}, {text + 8, 4}};
    assert_int_equal(rwritev(e.b, out, 2), 5);
    struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};
    assert_int_equal(rrecvmsg(e.a, &msg, MSG_WAITALL), 5);
    assert_memory_equal(text, "a", 1);
    assert_memory_equal(text + 8, "bcde", 4);
    assert_int_equal(rwrite(e.b, "fgh", 3), 3);
    assert_int_equal(rreadv(e.a, in, 2), 3);
    assert_memory_equal(text + 8, "gh", 2);
    part(&e);
}

/* Several times around each ring, in pieces of odd sizes; then the end of it. */
static void much_arrives_in_order(void **unused)
{
    (void)unused;
    struct ends e;
    pthread_t thread;
    void *sent;
    uint8_t part_of[5003];
    size_t at = 0;
    ssize_t n;
    join(&e);
    pthread_create(&thread, NULL, send_much, &e.a);
    while ((n = rrecv(e.b, part_of, sizeof part_of, 0)) > 0)
        for (ssize_t i = 0; i < n; i++, at++)
            assert_int_equal(part_of[i], (uint8_t)(at * 7 + (at >> 12)));
    assert_int_equal(n, 0);
    assert_int_equal(at, MUCH);
    pthread_join(thread, &sent);
    assert_int_equal((intptr_t)sent, MUCH);
    assert_int_equal(rsend(e.b, "x", 1, 0), 1); /* the other direction is open */
    assert_int_equal(rrecv(e.a, part_of, 1, 0), 1);
    expect_errno(rsend(e.a, "x", 1, 0), ECONNRESET);
    part(&e);
}

static void nobody_reads(void **unused)
{
    (void)unused;
    struct ends e;
    static char block[4096];
    size_t sent = 0, got = 0;
    ssize_t n;
    join(&e);
    while ((n = rsend(e.a, block, sizeof block, MSG_DONTWAIT)) > 0)
        sent += (size_t)n;
    assert_int_equal(errno, EAGAIN);
    assert_in_range(sent, 1, MUCH);
    struct pollfd p = {e.a, POLLOUT, 0};
    assert_int_equal(rpoll(&p, 1, 0), 0);
    while (got < sent) {
        n = rrecv(e.b, block, sizeof block, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    wait_for(e.a, POLLOUT);
    expect_errno(rrecv(e.b, block, 1, MSG_DONTWAIT), EAGAIN);
    part(&e);
}

/* As much as the receiver has room for arrives without any call of it; room it makes is told. */
static void a_buffer_fills_unasked(void **unused)
{
    (void)unused;
    struct ends e;
    static char block[1 << 18];
    int room;
    socklen_t len = sizeof room;
    join(&e);
    assert_int_equal(rgetsockopt(e.a, SOL_SOCKET, SO_RCVBUF, &room, &len), 0);
    assert_int_equal(room, 1 << 17);
    for (int i = 0; i < 3; i++) {
        for (int sent = 0; sent < room;) {
            wait_for(e.a, POLLOUT);
            ssize_t n = rsend(e.a, block, (size_t)(room - sent), MSG_DONTWAIT);
            assert_true(n > 0);
            sent += (int)n;
        }
        expect_errno(rsend(e.a, block, 1, MSG_DONTWAIT), EAGAIN);
        assert_int_equal(rrecv(e.b, block, (size_t)room, MSG_WAITALL), room);
    }
    wait_for(e.a, POLLOUT);
    part(&e);
}

/* A listener whose queue nobody asks for, and peers that say nothing, are not in others' way. */
static void listeners_are_apart(void **unused)
{
    (void)unused;
    enum { SOME = 300 };
    static int waiting[SOME], silent[20];
    struct sockaddr_in full, other, *to[] = {&full, &other};
    int a = listen_at(&full, 0), b = listen_at(&other, 0);
    for (int i = 0; i < 20; i++) {
        silent[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(silent[i], (struct sockaddr *)to[i % 2], sizeof full), 0);
    }
    for (int i = 0; i < SOME; i++) {
        waiting[i] = stream();
        assert_int_equal(rconnect(waiting[i], (struct sockaddr *)&full, sizeof full), 0);
    }
    int fd = stream();
    assert_int_equal(rconnect(fd, (struct sockaddr *)&other, sizeof other), 0);
    int child = raccept(b, NULL, NULL);
    assert_true(child >= 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(fd), 0);
    for (int i = 0; i < SOME; i++)
        assert_int_equal(rclose(waiting[i]), 0);
    for (int i = 0; i < 20; i++)
        close(silent[i]);
    assert_int_equal(rclose(a), 0); /* with all that it has accepted */
    assert_int_equal(rclose(b), 0);
}

/* Bytes that came over all TCP connections of the process. */
static uint64_t bytes_received(void)
{
    enum { AT = 128 }; /* tcpi_bytes_received, which the C library's struct tcp_info has not */
    uint64_t all = 0, some;
    char info[AT + sizeof some];
    for (int fd = 0; fd < 4096; fd++) {
        socklen_t len = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0 || len < sizeof info)
            continue;
        memcpy(&some, info + AT, sizeof some);
        all += some;
    }
    return all;
}

static void an_idle_peer_is_written_to(void **unused)
{
    (void)unused;
    struct ends e;
    int yes = 1;
    char c;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux gives four bytes of TCP_INFO */
    join(&e);
    assert_int_equal(rsend(e.a, "1", 1, 0), 1);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    usleep(300000);
    uint64_t before = bytes_received();
    usleep(1200000);
    assert_int_equal(bytes_received(), before);
    assert_int_equal(rsetsockopt(e.a, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes), 0);
    assert_int_equal(rsetsockopt(e.a, IPPROTO_TCP, TCP_KEEPIDLE, &yes, sizeof yes), 0);
    for (int i = 0; i < WAIT_MS / 100 && bytes_received() == before; i++)
        usleep(100000);
    assert_true(bytes_received() > before);
    expect_errno(rrecv(e.b, &c, 1, MSG_DONTWAIT), EAGAIN);
    assert_int_equal(rsend(e.b, "2", 1, 0), 1);
    assert_int_equal(rrecv(e.a, &c, 1, 0), 1);
    part(&e);
}

static int plain_to(const struct sockaddr_in *addr, const char *text)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)addr, sizeof *addr), 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

/* As librspreload asks for it; no more of them than of others wait to be accepted. */
static void plain_peers_are_shown(void **unused)
{
    (void)unused;
    enum { ROOM = 1024, MORE = 8 };
    static int peers[ROOM + MORE];
    struct sockaddr_in addr;
    struct rlimit limit;
    int yes = 1, closed = 0, fd = stream();
    socklen_t len = sizeof addr;
    char text[8] = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < 8192)
        skip();
    addr = loopback();
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RS_TAKE_TCP, &yes, sizeof yes), 0);
    assert_int_equal(rbind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(rlisten(fd, 100), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
    peers[0] = plain_to(&addr, "plain");
    wait_for(fd, POLLIN);
    int child = raccept(fd, (struct sockaddr *)&addr, &len);
    expect_errno(rfcntl(child, F_GETFL), EBADF);
    struct pollfd p = {child, POLLIN, 0};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(recv(child, text, sizeof text, 0), 5);
    assert_string_equal(text, "plain");
    close(child);
    close(peers[0]);
    len = sizeof addr;
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
    for (int i = 0; i < ROOM + MORE; i++)
        peers[i] = plain_to(&addr, "x");
    for (int tries = 0; tries < WAIT_MS / 100 && closed < MORE; tries++) {
        usleep(100000);
        closed = 0;
        for (int i = 0; i < ROOM + MORE; i++)
            closed += recv(peers[i], text, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
    }
    assert_int_equal(closed, MORE);
    assert_int_equal(rclose(fd), 0);
    for (int i = 0; i < ROOM + MORE; i++)
        close(peers[i]);
}

static void over_ipv6(void **unused)
{
    (void)unused;
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}, from;
    socklen_t len = sizeof addr, from_len = sizeof from;
    int listener = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP), yes = 1;
    int fd = rsocket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    char c;
    assert_int_equal(rsetsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes), 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(rlisten(listener, 4), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(rfcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    assert_true(rconnect(fd, (struct sockaddr *)&addr, len) == 0 || errno == EINPROGRESS);
    int child = raccept(listener, (struct sockaddr *)&from, &from_len);
    assert_true(child >= 0);
    wait_for(fd, POLLOUT);
    len = sizeof addr;
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(from_len, len);
    len = 0;
    assert_int_equal(rgetsockname(fd, NULL, &len), 0);
    assert_int_equal(len, sizeof addr);
    expect_errno(rgetsockname(fd, NULL, &len), EFAULT);
    assert_int_equal(from.sin6_port, addr.sin6_port);
    expect_errno(rrecv(fd, &c, 1, 0), EAGAIN);
    assert_int_equal(rsend(child, "6", 1, 0), 1);
    wait_for(fd, POLLIN);
    assert_int_equal(rrecvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &from_len), 1);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(listener), 0);
}

static int select_one(int fd, bool in, bool out, int ms)
{
    fd_set read_set, write_set;
    struct timeval time = {ms / 1000, ms % 1000 * 1000L};
    FD_ZERO(&read_set);
    FD_ZERO(&write_set);
    if (in)
        FD_SET(fd, &read_set);
    if (out)
        FD_SET(fd, &write_set);
    int n = rselect(fd + 1, &read_set, &write_set, NULL, &time);
    assert_int_equal(n, FD_ISSET(fd, &read_set) + FD_ISSET(fd, &write_set));
    return n;
}

/* POLLHUP is for both directions. */
static void each_direction_has_its_end(void **unused)
{
    (void)unused;
    struct ends e;
    char c;
    join(&e);
    fd_set sets;
    FD_ZERO(&sets);
    FD_SET(FD_SETSIZE - 1, &sets);
    expect_errno(rselect(FD_SETSIZE, &sets, NULL, NULL, NULL), EBADF);
    expect_errno(rselect(-1, &sets, NULL, NULL, NULL), EINVAL);
    assert_int_equal(select_one(e.a, true, false, 0), 0);
    assert_int_equal(select_one(e.a, true, true, 0), 1);
    assert_int_equal(rshutdown(e.a, SHUT_WR), 0);
    assert_int_equal(select_one(e.b, true, false, WAIT_MS), 1);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 0);
    assert_int_equal(select_one(e.b, true, true, 0), 2);
    assert_int_equal(rsend(e.b, "x", 1, 0), 1);
    assert_int_equal(rrecv(e.a, &c, 1, 0), 1);
    struct pollfd p = {e.a, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, 0), 0);
    assert_int_equal(rshutdown(e.a, SHUT_RD), 0);
    assert_int_equal(rpoll(&p, 1, 0), 1);
    assert_int_equal(p.revents, POLLIN | POLLHUP);
    assert_int_equal(rrecv(e.a, &c, 1, 0), 0);
    part(&e);
}

/* As poll(2) tells of those of TCP: POLLHUP always, POLLRDHUP to who asks for it. */
static void rpoll_tells_of_ends(void **unused)
{
    (void)unused;
    struct ends e;
    join(&e);
    struct pollfd p[2] = {{e.a, POLLRDHUP, 0}, {e.b, 0, 0}};
    assert_int_equal(rpoll(p, 2, 0), 0);
    assert_int_equal(rshutdown(e.b, SHUT_WR), 0);
    assert_int_equal(rpoll(p, 2, WAIT_MS), 1);
    assert_int_equal(p[0].revents, POLLRDHUP);
    p[0].events = 0;
    assert_int_equal(rpoll(p, 2, 0), 0);
    assert_int_equal(rshutdown(e.a, SHUT_WR), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rpoll(&p[i], 1, WAIT_MS), 1);
        assert_int_equal(p[i].revents, POLLHUP);
    }
    part(&e);
    join(&e);
    assert_int_equal(rclose(e.a), 0);
    wait_for(e.b, POLLRDHUP);
    p[1] = (struct pollfd){e.b, 0, 0};
    assert_int_equal(rpoll(&p[1], 1, 0), 0);
    assert_int_equal(rclose(e.b), 0);
    assert_int_equal(rclose(e.listener), 0);
}

static void an_end_is_seen(void **unused)
{
    (void)unused;
    struct ends e;
    char c;
    join(&e);
    assert_int_equal(rsend(e.a, "z", 1, 0), 1);
    assert_int_equal(rclose(e.a), 0);
    wait_for(e.b, POLLIN);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    errno = 0;
    assert_int_equal(rrecv(e.b, &c, 1, 0), 0);
    assert_int_equal(errno, 0); /* rstream looks at it even so */
    struct pollfd p = {e.b, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    assert_int_equal(p.revents, POLLIN);
    expect_errno(rsend(e.b, &c, 1, 0), ECONNRESET);
    assert_int_equal(rclose(e.b), 0);
    assert_int_equal(rclose(e.listener), 0);
}

static void connecting_without_waiting(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    int listener = listen_at(&addr, 0), fd = stream(), err = -1;
    socklen_t len = sizeof err;
    assert_int_equal(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    expect_errno(raccept(listener, NULL, NULL), EAGAIN);
    errno = EINPROGRESS;
    assert_true(rconnect(fd, (struct sockaddr *)&addr, sizeof addr) == 0 || errno == EINPROGRESS);
    wait_for(fd, POLLOUT);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
    assert_int_equal(err, 0);
    wait_for(listener, POLLIN);
    int child = raccept(listener, NULL, NULL);
    assert_true(child >= 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(listener), 0);
    assert_int_equal(rclose(fd), 0);
}

static void nobody_listens(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    char c;
    assert_int_equal(rclose(listen_at(&addr, 0)), 0);
    int fd = stream();
    expect_errno(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    expect_errno(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), ENOTCONN);
    expect_errno(rrecv(fd, &c, 1, 0), ENOTCONN);
    expect_errno(rsend(fd, &c, 1, 0), ENOTCONN);
    assert_int_equal(rclose(fd), 0);
}

static void the_peer_writes_into_a_mapping(void **unused)
{
    (void)unused;
    struct ends e;
    char memory[64] = {0}, c;
    join(&e);
    assert_int_equal(riomap(e.a, memory, sizeof memory, PROT_WRITE, 0, 1000), 1000);
    assert_int_equal(rsend(e.a, "m", 1, 0), 1); /* tells of it */
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    assert_int_equal(riowrite(e.b, "there", 6, 1010, 0), 6);
    assert_int_equal(riowrite(e.b, "there", 6, 5000, 0), 0);
    assert_int_equal(rsend(e.b, "m", 1, 0), 1);
    assert_int_equal(rrecv(e.a, &c, 1, 0), 1);
    assert_string_equal(memory + 10, "there");
    assert_int_equal(riounmap(e.a, memory, sizeof memory), 0);
    expect_errno(riounmap(e.a, memory, sizeof memory), EINVAL);
    expect_errno(riomap(e.a, NULL, 1, PROT_WRITE, 0, -1), EINVAL);
    assert_true(riomap(e.a, memory, 16, PROT_WRITE, 0, -1) >= 0);
    assert_true(riomap(e.a, memory, 32, PROT_WRITE, 0, -1) >= 0);
    expect_errno(riomap(e.a, memory, 48, PROT_WRITE, 0, -1), ENOMEM);
    part(&e);
}

/* The peer may never give back the room for a message that a mapping takes. */
static void mappings_are_counted(void **unused)
{
    (void)unused;
    struct ends e;
    char memory[64];
    int room, made = 0;
    socklen_t len = sizeof room;
    join(&e);
    assert_int_equal(rgetsockopt(e.b, SOL_RDMA, RDMA_RQSIZE, &room, &len), 0);
    while (riomap(e.a, memory, sizeof memory, PROT_WRITE, 0, 0) == 0) {
        assert_int_equal(riounmap(e.a, memory, sizeof memory), 0);
        made++;
    }
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(made, room / 2);
    assert_int_equal(rsend(e.a, memory, 1, 0), 1);
    assert_int_equal(rrecv(e.b, memory, 1, 0), 1);
    part(&e);
}

static int datagrams(struct sockaddr_in *addr)
{
    socklen_t len = sizeof *addr;
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    *addr = loopback();
    assert_int_equal(rbind(fd, (struct sockaddr *)addr, sizeof *addr), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

/* Each is one UDP datagram with a header; what has none is not shown. */
static void datagrams_arrive(void **unused)
{
    (void)unused;
    struct sockaddr_in a, b, from;
    socklen_t len = sizeof from;
    static char much[2033];
    char text[16] = {0};
    int fa = datagrams(&a), fb = datagrams(&b), plain = socket(AF_INET, SOCK_DGRAM, 0);
    expect_errno(rrecv(fb, text, sizeof text, MSG_DONTWAIT), EAGAIN);
    assert_int_equal(sendto(plain, "stray", 5, 0, (struct sockaddr *)&b, sizeof b), 5);
    assert_int_equal(rsendto(fa, "hello", 5, 0, (struct sockaddr *)&b, sizeof b), 5);
    wait_for(fb, POLLIN);
    assert_int_equal(rrecv(fb, text, 5, MSG_PEEK), 5);
    assert_int_equal(rrecvfrom(fb, text, sizeof text, 0, (struct sockaddr *)&from, &len), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(from.sin_port, a.sin_port);
    assert_int_equal(rconnect(fb, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(rsend(fb, "", 0, 0), 0);
    assert_int_equal(rsend(fb, much, 2032, 0), 2032);
    expect_errno(rsend(fb, much, 2033, 0), EMSGSIZE);
    wait_for(fa, POLLIN);
    assert_int_equal(rrecv(fa, text, sizeof text, 0), 0);
    assert_int_equal(rrecv(fa, text, 3, 0), 3);
    expect_errno(rlisten(fa, 1), EOPNOTSUPP);
    expect_errno(riomap(fa, text, 1, PROT_WRITE, 0, 0), ENOTSUP);
    assert_int_equal(rclose(fa), 0);
    expect_errno(rclose(fa), EBADF);
    assert_int_equal(rclose(fb), 0);
    close(plain);
}

/* In a child the parent's streams are nothing; its own work, and the parent's go on. */
static void a_child_makes_its_own(void **unused)
{
    (void)unused;
    struct ends e, own;
    char text[8] = {0};
    int status;
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
    join(&e);
    pid_t child = fork();
    if (child == 0) {
        alarm(WAIT_MS / 1000);
        if (rsend(e.a, "no", 2, 0) != -1 || errno != EBADF)
            _exit(1);
        join(&own);
        if (rsend(own.a, "yes", 3, 0) != 3 || rrecv(own.b, text, 3, MSG_WAITALL) != 3)
            _exit(2);
        part(&own);
        _exit(memcmp(text, "yes", 3) ? 3 : 0);
    }
    assert_true(child > 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rsend(e.a, "ping", 4, 0), 4);
        assert_int_equal(rrecv(e.b, text, 4, MSG_WAITALL), 4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    part(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive),
        cmocka_unit_test(much_arrives_in_order),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(a_buffer_fills_unasked),
        cmocka_unit_test(listeners_are_apart),
        cmocka_unit_test(an_idle_peer_is_written_to),
        cmocka_unit_test(plain_peers_are_shown),
        cmocka_unit_test(over_ipv6),
        cmocka_unit_test(each_direction_has_its_end),
        cmocka_unit_test(rpoll_tells_of_ends),
        cmocka_unit_test(an_end_is_seen),
        cmocka_unit_test(connecting_without_waiting),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(the_peer_writes_into_a_mapping),
        cmocka_unit_test(mappings_are_counted),
        cmocka_unit_test(datagrams_arrive),
        cmocka_unit_test(a_child_makes_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

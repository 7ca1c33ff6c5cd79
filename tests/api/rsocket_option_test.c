/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: options and defaults, and what each call refuses. */
#include <rdma/rsocket.h>

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define expect_errno(call, error)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(errno, error);                                                            \
    } while (0)

static int stream(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    return fd;
}

static void options_are_kept(void **unused)
{
    (void)unused;
    int fd = stream(), value = 1000;
    socklen_t len = sizeof value;
    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value), 0);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len), 0);
    assert_int_equal(value, 2000);
    value = 0;
    expect_errno(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof value), EINVAL);
    expect_errno(rsetsockopt(fd, SOL_SOCKET, SO_PRIORITY, &value, sizeof value), ENOTSUP);
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_PRIORITY, &value, &len), ENOTSUP);
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, NULL, &len), EFAULT);
    assert_int_equal(rfcntl(fd, F_GETFL), O_RDWR);
    expect_errno(rfcntl(fd, F_SETOWN, 1), ENOTSUP);
    assert_int_equal(rclose(fd), 0);
}

struct option {
    int level, name, set, got;
};

static void keeps(int fd, const struct option *o)
{
    int value = o->set;
    socklen_t len = sizeof value;
    assert_int_equal(rsetsockopt(fd, o->level, o->name, &value, sizeof value), 0);
    value = -1;
    assert_int_equal(rgetsockopt(fd, o->level, o->name, &value, &len), 0);
    assert_int_equal(value, o->got);
    assert_int_equal(len, sizeof value);
}

static void each_option(void **unused)
{
    static const struct option options[] = {
        {SOL_SOCKET, SO_REUSEADDR, 1, 1},         {SOL_SOCKET, SO_REUSEADDR, 0, 0},
        {SOL_SOCKET, SO_KEEPALIVE, 1, 1},         {SOL_SOCKET, SO_KEEPALIVE, 0, 0},
        {SOL_SOCKET, SO_OOBINLINE, 1, 1},         {SOL_SOCKET, SO_SNDBUF, 3000, 6000},
        {SOL_SOCKET, SO_SNDBUF, -1, 1},           {SOL_SOCKET, SO_RCVBUF, INT_MAX, 1 << 30},
        {IPPROTO_TCP, TCP_NODELAY, 1, 1},         {IPPROTO_TCP, TCP_KEEPIDLE, 7, 7},
        {IPPROTO_TCP, TCP_MAXSEG, 1000, 2048},    {IPPROTO_TCP, TCP_KEEPCNT, 5, 1},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5, 1},       {SOL_RDMA, RDMA_SQSIZE, 100, 100},
        {SOL_RDMA, RDMA_RQSIZE, 1 << 20, 0xfffe}, {SOL_RDMA, RDMA_INLINE, 64, 64},
    };
    (void)unused;
    int fd = stream();
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        keeps(fd, &options[i]);
    assert_int_equal(rclose(fd), 0);
    fd = rsocket(AF_INET6, SOCK_STREAM, 0);
    keeps(fd, &(struct option){IPPROTO_IPV6, IPV6_V6ONLY, 1, 1});
    assert_int_equal(rclose(fd), 0);
}

static void options_that_are_read(void **unused)
{
    (void)unused;
    int fd = stream(), value;
    socklen_t len = sizeof value;
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &value, &len), 0);
    assert_int_equal(value, 0);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len), 0);
    assert_int_equal(value, 0);
    value = 20;
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &value, sizeof value), 0);
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &value, &len), 0);
    assert_true(value >= 20);
    struct linger linger = {.l_onoff = 1, .l_linger = 3}, got = {0};
    len = sizeof got;
    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &len), 0);
    assert_memory_equal(&got, &linger, sizeof linger);
    assert_int_equal(rclose(fd), 0);
}

static void options_that_are_refused(void **unused)
{
    static const struct option unknown[] = {
        {SOL_SOCKET, SO_PRIORITY, 0, 0},   {IPPROTO_TCP, TCP_INFO, 0, 0},
        {IPPROTO_IPV6, IPV6_TCLASS, 0, 0}, {SOL_RDMA, 99, 0, 0},
        {IPPROTO_ICMP, 1, 0, 0},
    };
    (void)unused;
    int fd = stream(), value = 0;
    socklen_t len = sizeof value, tiny = 1;
    struct linger linger;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        const struct option *o = &unknown[i];
        expect_errno(rsetsockopt(fd, o->level, o->name, &value, sizeof value), ENOTSUP);
        expect_errno(rgetsockopt(fd, o->level, o->name, &value, &len), ENOTSUP);
    }
    value = -1;
    expect_errno(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value), EINVAL);
    expect_errno(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, 2), EINVAL);
    expect_errno(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, NULL, sizeof value), EINVAL);
    expect_errno(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value), EINVAL);
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &tiny), EINVAL);
    len = sizeof value;
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len), EINVAL);
    assert_int_equal(rclose(fd), 0);
}

static void flags_of_the_descriptor(void **unused)
{
    (void)unused;
    int fd = stream();
    assert_int_equal(rfcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND), 0);
    assert_int_equal(rfcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    assert_int_equal(rfcntl(fd, F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(rfcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(rfcntl(fd, F_SETFD, 0), 0);
    assert_int_equal(rfcntl(fd, F_GETFD), 0);
    assert_int_equal(rclose(fd), 0);
}

static char folder[] = "/tmp/rsocket-test-XXXXXX", file[64];

static int make_folder(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/rqsize_default", folder);
    FILE *f = fopen(file, "w");
    if (!f)
        return -1;
    fputs("500\n", f);
    fclose(f);
    return setenv("ANYWARP_RSOCKET_CONF", folder, 1);
}

static int remove_folder(void **unused)
{
    (void)unused;
    return unlink(file) | rmdir(folder);
}

static void defaults_come_from_files(void **unused)
{
    (void)unused;
    int fd = stream(), value;
    socklen_t len = sizeof value;
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &value, &len), 0);
    assert_int_equal(value, 500);
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, &len), 0);
    assert_int_equal(value, 384);
    assert_int_equal(rclose(fd), 0);
}

static void what_is_no_socket(void **unused)
{
    (void)unused;
    struct sockaddr_in addr = {.sin_family = AF_INET};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char c;
    expect_errno(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
    expect_errno(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
    expect_errno(rbind(-1, (struct sockaddr *)&addr, sizeof addr), EBADF);
    expect_errno(rlisten(-1, 1), EBADF);
    expect_errno(raccept(-1, NULL, NULL), EBADF);
    expect_errno(rconnect(-1, (struct sockaddr *)&addr, sizeof addr), EBADF);
    expect_errno(rrecv(-1, &c, 1, 0), EBADF);
    expect_errno(rsend(-1, &c, 1, 0), EBADF);
    expect_errno(rshutdown(-1, SHUT_RD), EBADF);
    expect_errno(rclose(-1), EBADF);
    expect_errno(repoll_wait(-1, NULL, 1, 0), EBADF);
    expect_errno(riomap(-1, &c, 1, PROT_WRITE, 0, 0), EBADF);
    int fd = stream();
    expect_errno(rsendto(fd, &c, 1, 0, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    expect_errno(rshutdown(fd, SHUT_WR), ENOTCONN);
    assert_int_equal(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_kept),        cmocka_unit_test(each_option),
        cmocka_unit_test(options_that_are_read),   cmocka_unit_test(options_that_are_refused),
        cmocka_unit_test(flags_of_the_descriptor), cmocka_unit_test(defaults_come_from_files),
        cmocka_unit_test(what_is_no_socket),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

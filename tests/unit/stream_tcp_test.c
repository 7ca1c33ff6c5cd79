/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct iwc_stream_tcp a; /* under test */
    struct iwc_stream *s;
    int peer; /* a plain blocking socket */
};

static int setup(void **ctx)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int lfd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ctx = f;
    if (bind(lfd, (struct sockaddr *)&sin, len) || listen(lfd, 1) ||
        getsockname(lfd, (struct sockaddr *)&sin, &len) ||
        connect(fd, (struct sockaddr *)&sin, len))
        return -1;
    f->peer = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
    close(lfd);
    iwc_stream_tcp_init(&f->a, fd);
    f->s = &f->a.base;
    return f->peer < 0 ? -1 : 0;
}

static int teardown(void **ctx)
{
    struct fixture *f = *ctx;
    if (f->a.fd >= 0)
        close(f->a.fd);
    if (f->peer >= 0)
        close(f->peer);
    free(f);
    return 0;
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    assert_int_equal(poll(&p, 1, 5000), 1);
}

static void sets_nodelay_and_knows_its_mss(void **ctx)
{
    struct fixture *f = *ctx;
    int on = 0, mss = 0;
    socklen_t len = sizeof(on);

    assert_int_equal(getsockopt(f->a.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_true(on);
    assert_int_equal(getsockopt(f->a.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len), 0);
    assert_int_equal(f->s->ops->emss(f->s), mss);
}

static void passes_bytes(void **ctx)
{
    struct fixture *f = *ctx;
    char buf[16];
    struct iovec v[] = {{"hello ", 6}, {"world", 5}};

    assert_int_equal(f->s->ops->recv(f->s, buf, sizeof(buf)), -EAGAIN);
    assert_int_equal(f->s->ops->send(f->s, v, 2), 11);
    assert_int_equal(recv(f->peer, buf, 11, MSG_WAITALL), 11);
    assert_memory_equal(buf, "hello world", 11);
    assert_int_equal(send(f->peer, "back", 4, 0), 4);
    wait_for(f->a.fd, POLLIN);
    assert_int_equal(f->s->ops->recv(f->s, buf, sizeof(buf)), 4);
    assert_memory_equal(buf, "back", 4);
}

/* The descriptor is a blocking one: only the call's own flag keeps it from blocking. */
static void never_blocks(void **ctx)
{
    struct fixture *f = *ctx;
    static char big[1 << 20];
    struct iovec v = {big, sizeof(big)};
    ssize_t n = 0, sum = 0;

    while ((n = f->s->ops->send(f->s, &v, 1)) > 0)
        sum += n;
    assert_int_equal(n, -EAGAIN);
    assert_true(sum > 0);
}

static void shutdown_leaves_the_other_direction(void **ctx)
{
    struct fixture *f = *ctx;
    char c;
    struct iovec v = {"x", 1};

    f->s->ops->shutdown(f->s);
    assert_int_equal(recv(f->peer, &c, 1, 0), 0);
    assert_int_equal(f->s->ops->send(f->s, &v, 1), -EPIPE); /* and no SIGPIPE */
    assert_int_equal(send(f->peer, "y", 1, 0), 1);
    wait_for(f->a.fd, POLLIN);
    assert_int_equal(f->s->ops->recv(f->s, &c, 1), 1);
    close(f->peer);
    f->peer = -1;
    wait_for(f->a.fd, POLLIN);
    assert_int_equal(f->s->ops->recv(f->s, &c, 1), 0);
}

static void close_is_a_fin(void **ctx)
{
    struct fixture *f = *ctx;
    char c;
    int copy = dup(f->a.fd); /* as a forked child has one */

    f->s->ops->close(f->s, 0);
    assert_int_equal(f->a.fd, -1);
    assert_int_equal(recv(f->peer, &c, 1, 0), 0);
    close(copy);
}

static void close_can_reset(void **ctx)
{
    struct fixture *f = *ctx;
    char c;

    f->s->ops->close(f->s, 1);
    assert_int_equal(recv(f->peer, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

static void reset_of_the_peer_is_an_error(void **ctx)
{
    struct fixture *f = *ctx;
    struct linger now = {.l_onoff = 1};
    char c;

    setsockopt(f->peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(f->peer);
    f->peer = -1;
    wait_for(f->a.fd, POLLIN);
    errno = 0;
    assert_int_equal(f->s->ops->recv(f->s, &c, 1), -ECONNRESET);
    assert_int_equal(errno, 0);
}

static void no_mss_is_the_default(void **ctx)
{
    struct iwc_stream_tcp s;
    int fd[2];
    (void)ctx;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    iwc_stream_tcp_init(&s, fd[0]);
    assert_int_equal(s.base.ops->emss(&s.base), 536);
    s.base.ops->close(&s.base, 0);
    close(fd[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sets_nodelay_and_knows_its_mss),
        TEST(passes_bytes),
        TEST(never_blocks),
        TEST(shutdown_leaves_the_other_direction),
        TEST(close_is_a_fin),
        TEST(close_can_reset),
        TEST(reset_of_the_peer_is_an_error),
        cmocka_unit_test(no_mss_is_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

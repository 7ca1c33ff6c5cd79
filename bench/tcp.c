/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcp.h"

#include "kit.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int new_socket(void)
{
    const char *congestion = getenv("BENCH_CONGESTION");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;
    KIT_CHECK(fd >= 0);
    KIT_CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
    if (congestion)
        KIT_CHECK(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                             (socklen_t)strlen(congestion)) == 0);
    return fd;
}

int tcp_listen(struct sockaddr_in *at)
{
    socklen_t len = sizeof(*at);
    int fd = new_socket();
    *at = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    KIT_CHECK(bind(fd, (struct sockaddr *)at, sizeof(*at)) == 0);
    KIT_CHECK(listen(fd, 128) == 0);
    KIT_CHECK(getsockname(fd, (struct sockaddr *)at, &len) == 0);
    return fd;
}

int tcp_connect(const struct sockaddr_in *to)
{
    int fd = new_socket();
    KIT_CHECK(connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0);
    return fd;
}

int tcp_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    KIT_CHECK(fd >= 0);
    return fd;
}

/** @return whether the transfer may go on */
static bool again(ssize_t moved)
{
    if (moved == 0 || (moved < 0 && errno == ECONNRESET))
        return false;
    KIT_CHECK(moved > 0 || errno == EAGAIN || errno == EINTR);
    return true;
}

bool tcp_send(int fd, const void *from, size_t len, bool poll)
{
    const char *p = from;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL | (poll ? MSG_DONTWAIT : 0));
        if (!again(n))
            return false;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return true;
}

bool tcp_recv(int fd, void *to, size_t len, bool poll)
{
    char *p = to;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, poll ? MSG_DONTWAIT : 0);
        if (!again(n))
            return false;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return true;
}

void tcp_wait_sent(int fd)
{
    int left;
    do {
        usleep(1000);
        KIT_CHECK(ioctl(fd, SIOCOUTQ, &left) == 0);
    } while (left > 0);
}

void tcp_finish(int fd)
{
    char end;
    KIT_CHECK(shutdown(fd, SHUT_WR) == 0);
    KIT_CHECK(recv(fd, &end, 1, 0) == 0);
}

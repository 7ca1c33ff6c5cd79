/* SPDX-License-Identifier: BSD-2-Clause */
/* A byte stream over a TCP socket. */
#include "conn/stream_tcp.h"
#include "common/list.h"
#include "common/sys.h"
#include "common/tsan.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#define EMSS_DEFAULT 536 /* RFC 9293 section 3.7.1 */
#define READ_AHEAD   65536

static struct iwc_stream_tcp *tcp_of(struct iwc_stream *s)
{
    return container_of(s, struct iwc_stream_tcp, base);
}

char iwc_stream_order;

static ssize_t tcp_recv(struct iwc_stream *s, void *buf, size_t len)
{
    long r;
    do
        r = sys_recv(tcp_of(s)->fd, buf, len, MSG_DONTWAIT);
    while (r == -EINTR);
    tsan_acquire(&iwc_stream_order);
    return r;
}

static ssize_t tcp_recvv(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n};
    long r;
    do
        r = sys_recvmsg(tcp_of(s)->fd, &msg, MSG_DONTWAIT);
    while (r == -EINTR);
    tsan_acquire(&iwc_stream_order);
    return r;
}

static ssize_t tcp_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n};
    int fd = tcp_of(s)->fd, flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    long r;
    tsan_release(&iwc_stream_order);
    do /* the plain call saves a tenth of a microsecond */
        r = n == 1 ? sys_send(fd, iov->iov_base, iov->iov_len, flags)
                   : sys_sendmsg(fd, &msg, flags);
    while (r == -EINTR);
    return r;
}

static void tcp_shutdown(struct iwc_stream *s)
{
    sys_shutdown(tcp_of(s)->fd, SHUT_WR);
}

/* A forked child may hold a copy of the descriptor: shutdown() ends the connection all the same. */
static void tcp_close(struct iwc_stream *s, int reset)
{
    struct iwc_stream_tcp *t = tcp_of(s);
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (reset)
        sys_setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    else
        sys_shutdown(t->fd, SHUT_RDWR);
    sys_close(t->fd);
    t->fd = -1;
}

static int tcp_error(struct iwc_stream *s)
{
    int error = 0;
    socklen_t len = sizeof(error);
    sys_getsockopt(tcp_of(s)->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    return -error;
}

static uint32_t tcp_emss(struct iwc_stream *s)
{
    int mss;
    socklen_t len = sizeof(mss);
    long r = sys_getsockopt(tcp_of(s)->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len);
    return r == 0 && mss > 0 ? mss : EMSS_DEFAULT;
}

static const struct iwc_stream_ops tcp_ops = {
    .recv = tcp_recv,
    .recvv = tcp_recvv,
    .send = tcp_send,
    .shutdown = tcp_shutdown,
    .close = tcp_close,
    .error = tcp_error,
    .emss = tcp_emss,
};

void iwc_stream_tcp_init(struct iwc_stream_tcp *s, int fd)
{
    int on = 1;

    s->base.ops = &tcp_ops;
    s->base.read_ahead = READ_AHEAD;
    s->fd = fd;
    sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

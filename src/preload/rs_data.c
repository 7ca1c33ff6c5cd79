/* SPDX-License-Identifier: BSD-2-Clause */
/* librspreload.so: the calls that move data. */
#include "preload/next.h"
#include "preload/rs_connect.h"
#include "preload/rs_epoll.h"
#include "preload/rs_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_PIECE 65536

/** @return @p ms if a call with @p flags waits, and at most so long; 0: it does not, or without end
 */
static int limit_of(const struct pre_socket *s, const atomic_int *ms, int flags)
{
    int limit = atomic_load_explicit(ms, memory_order_relaxed);
    return !limit || flags & MSG_DONTWAIT || rfcntl(s->rs, F_GETFL) & O_NONBLOCK ? 0 : limit;
}

typedef ssize_t move_fn(int, void *, size_t, int);

/**
 * rrecv() or rsend(), piece by piece, within a limit.
 * @param all  waits for the rest, too
 */
static ssize_t move_within(struct pre_limit *limit, move_fn *move, const struct msghdr *msg,
                           int flags, bool all)
{
    size_t done = 0, at = 0;
    for (size_t i = 0; i < msg->msg_iovlen;) {
        const struct iovec *v = &msg->msg_iov[i];
        ssize_t n =
            move(limit->s->rs, (char *)v->iov_base + at, v->iov_len - at, flags | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN && (all || !done) && pre_limit_wait(limit))
            continue;
        if (n < 0)
            return done ? (ssize_t)done : -1;
        done += (size_t)n;
        at += (size_t)n;
        bool full = at == v->iov_len;
        if (flags & MSG_PEEK || (!full && (!all || !n)))
            break;
        i += full;
        at = full ? 0 : at;
    }
    return (ssize_t)done;
}

static ssize_t receive_within(const struct pre_socket *s, const struct msghdr *msg, int flags,
                              int ms)
{
    struct pre_limit limit = {s, POLLIN, ms, 0};
    return move_within(&limit, rrecv, msg, flags, flags & MSG_WAITALL && !(flags & MSG_PEEK));
}

static ssize_t send_piece(int rs, void *buf, size_t len, int flags)
{
    return rsend(rs, buf, len, flags);
}

static ssize_t send_within(struct pre_limit *limit, const struct msghdr *msg, int flags)
{
    return limit->ms ? move_within(limit, send_piece, msg, flags, true)
                     : rsendmsg(limit->s->rs, msg, flags);
}

static size_t length(const struct iovec *iov, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += iov[i].iov_len;
    return all;
}

/* What is said with a message is not for a stream. */
static ssize_t receive(int fd, struct pre_socket *s, struct msghdr *msg, int flags)
{
    struct msghdr plain = {.msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen};
    int ms = limit_of(s, &s->recv_ms, flags);
    ssize_t n = ms ? receive_within(s, &plain, flags, ms) : rrecvmsg(s->rs, &plain, flags);
    pre_epoll_used_up(fd, EPOLLIN | EPOLLRDNORM);
    msg->msg_controllen = 0;
    msg->msg_namelen = 0;
    msg->msg_flags = 0;
    pre_put(s);
    return n;
}

static ssize_t transmit(int fd, struct pre_socket *s, const struct msghdr *msg, int flags)
{
    struct msghdr plain = {.msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen};
    size_t want = length(msg->msg_iov, msg->msg_iovlen);
    struct pre_limit limit = {s, POLLOUT, limit_of(s, &s->send_ms, flags), 0};
    ssize_t n = send_within(&limit, &plain, flags);
    if (n < (ssize_t)want)
        pre_epoll_used_up(fd, EPOLLOUT | EPOLLWRNORM);
    pre_put(s);
    return n;
}

static ssize_t receive_one(int fd, struct pre_socket *s, void *buf, size_t len, int flags)
{
    struct iovec iov = {buf, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return receive(fd, s, &msg, flags);
}

static ssize_t transmit_one(int fd, struct pre_socket *s, const void *buf, size_t len, int flags)
{
    struct iovec iov = {(void *)buf, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return transmit(fd, s, &msg, flags);
}

/* ---- In ---- */

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? receive_one(fd, s, buf, len, 0)
             : NEXT(ssize_t(*)(int, void *, size_t), "read")(fd, buf, len);
}

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? receive_one(fd, s, buf, len, flags)
             : NEXT(ssize_t(*)(int, void *, size_t, int), "recv")(fd, buf, len, flags);
}

EXPORT ssize_t recvfrom(int fd, void *restrict buf, size_t len, int flags,
                        struct sockaddr *restrict from, socklen_t *restrict from_len)
{
    typedef ssize_t next_fn(int, void *, size_t, int, struct sockaddr *, socklen_t *);
    struct pre_socket *s = pre_get_settled(fd);
    if (!s)
        return NEXT(next_fn *, "recvfrom")(fd, buf, len, flags, from, from_len);
    if (from && from_len)
        *from_len = 0; /* as of any stream */
    return receive_one(fd, s, buf, len, flags);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
    struct pre_socket *s = count >= 0 ? pre_get_settled(fd) : NULL;
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    return s ? receive(fd, s, &msg, 0)
             : NEXT(ssize_t(*)(int, const struct iovec *, int), "readv")(fd, iov, count);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? receive(fd, s, msg, flags)
             : NEXT(ssize_t(*)(int, struct msghdr *, int), "recvmsg")(fd, msg, flags);
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *timeout)
{
    typedef int next_fn(int, struct mmsghdr *, unsigned, int, struct timespec *);
    struct pre_socket *s = pre_get_settled(fd);
    if (!s)
        return NEXT(next_fn *, "recvmmsg")(fd, messages, count, flags, timeout);
    if (!count) {
        pre_put(s);
        return 0;
    }
    ssize_t n = receive(fd, s, &messages->msg_hdr, flags & ~MSG_WAITFORONE);
    if (n >= 0)
        messages->msg_len = (unsigned)n;
    return n < 0 ? -1 : 1;
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
    if (len > room)
        abort();
    return read(fd, buf, len);
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
    if (len > room)
        abort();
    return recv(fd, buf, len, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *from,
                       socklen_t *from_len);
EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
                              struct sockaddr *from, socklen_t *from_len)
{
    if (len > room)
        abort();
    return recvfrom(fd, buf, len, flags, from, from_len);
}

/* ---- Out ---- */

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? transmit_one(fd, s, buf, len, 0)
             : NEXT(ssize_t(*)(int, const void *, size_t), "write")(fd, buf, len);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? transmit_one(fd, s, buf, len, flags)
             : NEXT(ssize_t(*)(int, const void *, size_t, int), "send")(fd, buf, len, flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
                      socklen_t to_len)
{
    typedef ssize_t next_fn(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    struct pre_socket *s = pre_get_settled(fd);
    return s ? transmit_one(fd, s, buf, len, flags)
             : NEXT(next_fn *, "sendto")(fd, buf, len, flags, to, to_len);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
    struct pre_socket *s = count >= 0 ? pre_get_settled(fd) : NULL;
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    return s ? transmit(fd, s, &msg, 0)
             : NEXT(ssize_t(*)(int, const struct iovec *, int), "writev")(fd, iov, count);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct pre_socket *s = pre_get_settled(fd);
    return s ? transmit(fd, s, msg, flags)
             : NEXT(ssize_t(*)(int, const struct msghdr *, int), "sendmsg")(fd, msg, flags);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    unsigned done = 0;
    for (; done < count; done++) {
        struct pre_socket *s = pre_get_settled(fd);
        if (!s)
            break;
        ssize_t n = transmit(fd, s, &messages[done].msg_hdr, flags);
        if (n < 0)
            return done ? (int)done : -1;
        messages[done].msg_len = (unsigned)n;
        if ((size_t)n < length(messages[done].msg_hdr.msg_iov, messages[done].msg_hdr.msg_iovlen))
            return (int)done + 1;
    }
    if (done || !count)
        return (int)done;
    return NEXT(int (*)(int, struct mmsghdr *, unsigned, int), "sendmmsg")(fd, messages, count,
                                                                           flags);
}

/* @return bytes, as sendfile(); *at goes on by them */
static ssize_t send_file(struct pre_socket *s, int from, off_t *at, size_t count)
{
    struct pre_limit limit = {s, POLLOUT, limit_of(s, &s->send_ms, 0), 0};
    char piece[FILE_PIECE];
    size_t done = 0;
    while (done < count) {
        size_t want = count - done < sizeof piece ? count - done : sizeof piece;
        ssize_t n = pread(from, piece, want, *at);
        struct iovec iov = {piece, n > 0 ? (size_t)n : 0};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t sent = n > 0 ? send_within(&limit, &msg, 0) : n;
        if (sent < 0)
            return done ? (ssize_t)done : -1;
        done += (size_t)sent;
        *at += sent;
        if (!sent || sent < n)
            break;
    }
    return (ssize_t)done;
}

static ssize_t send_file_ours(int fd, struct pre_socket *s, int from, off_t *offset, size_t count)
{
    off_t at = offset ? *offset : lseek(from, 0, SEEK_CUR);
    ssize_t n = at >= 0 ? send_file(s, from, &at, count) : -1;
    if (at < 0 && !offset && errno == ESPIPE)
        errno = EINVAL;
    if (n >= 0 && offset)
        *offset = at;
    else if (n >= 0)
        lseek(from, at, SEEK_SET);
    if (n < (ssize_t)count)
        pre_epoll_used_up(fd, EPOLLOUT | EPOLLWRNORM);
    pre_put(s);
    return n;
}

_Static_assert(sizeof(off_t) == sizeof(off64_t), "a machine of 64 bits");

#define SENDFILE(name)                                                                             \
    EXPORT ssize_t name(int fd, int from, off_t *offset, size_t count)                             \
    {                                                                                              \
        struct pre_socket *s = pre_get_settled(fd);                                                \
        return s ? send_file_ours(fd, s, from, offset, count)                                      \
                 : NEXT(ssize_t(*)(int, int, off_t *, size_t), #name)(fd, from, offset, count);    \
    }

SENDFILE(sendfile)
SENDFILE(sendfile64)

static bool is_ours(int fd)
{
    struct pre_socket *s = pre_get_settled(fd);
    if (s)
        pre_put(s);
    return s;
}

/* Programs have another way where the kernel has none, and says the same. */
EXPORT ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t len,
                      unsigned flags)
{
    typedef ssize_t next_fn(int, off64_t *, int, off64_t *, size_t, unsigned);
    if (!is_ours(from) && !is_ours(to))
        return NEXT(next_fn *, "splice")(from, from_at, to, to_at, len, flags);
    errno = EINVAL;
    return -1;
}

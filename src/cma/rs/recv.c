/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving. */
#include "cma/rs/address.h"
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <string.h>

bool rs_can_recv(const struct rs *rs)
{
    return rs->unread || !rs->readable;
}

static void copy_out(const struct rs *rs, size_t skip, uint8_t *to, uint32_t len)
{
    uint32_t at = (rs->rbuf_at + (uint32_t)skip) % rs->sizes.rbuf;
    uint32_t end = rs->sizes.rbuf - at, first = len < end ? len : end;
    memcpy(to, rs->rbuf + at, first);
    memcpy(to + first, rs->rbuf, len - first);
}

static void consume(struct rs *rs, uint32_t len)
{
    rs->unread -= len;
    rs->freed += len;
    rs->rbuf_at = (rs->rbuf_at + len) % rs->sizes.rbuf;
    while (len) {
        uint32_t *message = &rs->messages[rs->message_head];
        uint32_t part = len < *message ? len : *message;
        len -= part;
        *message -= part;
        if (*message)
            break;
        rs->message_head = (rs->message_head + 1) % rs->slots;
        rs->message_count--;
        rs->rseq++;
    }
    rs_give_credits(rs);
}

/* What is there behind @p skip bytes. Lock held. @return bytes */
static ssize_t peek(const struct rs *rs, size_t skip, uint8_t *buf, size_t len)
{
    if (len > rs->unread - skip)
        len = rs->unread - skip;
    copy_out(rs, skip, buf, (uint32_t)len);
    return (ssize_t)len;
}

/* Behind @p seen bytes that were peeked at. Lock held. @return bytes or -errno */
static ssize_t receive(struct rs *rs, size_t seen, uint8_t *buf, size_t len, int flags)
{
    bool nonblock = rs->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
    size_t done = 0;
    if (seen)
        return peek(rs, seen, buf, len);
    if (flags & MSG_PEEK) /* more may have come than the last time */
        rs_progress(rs);
    if (rs->phase == RS_CONNECTING) {
        rs_progress(rs);
        if (rs->phase == RS_CONNECTING)
            return -EAGAIN;
    }
    if (rs->phase != RS_CONNECTED)
        return -ENOTCONN;
    while (done < len) {
        int r = rs->unread ? 0 : rs_wait(rs, rs_can_recv, nonblock, -1);
        if (r == 0 && !rs->unread)
            r = -rs->err;
        if (r < 0)
            return done ? (ssize_t)done : r;
        if (!rs->unread)
            break;
        if (flags & MSG_PEEK)
            return peek(rs, 0, buf, len);
        uint32_t n = len - done < rs->unread ? (uint32_t)(len - done) : rs->unread;
        copy_out(rs, 0, buf + done, n);
        done += n;
        consume(rs, n);
        if (!(flags & MSG_WAITALL))
            break;
    }
    return (ssize_t)done;
}

static ssize_t datagram(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                        socklen_t *from_len)
{
    struct iovec iov = {buf, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (from && from_len) {
        msg.msg_name = from;
        msg.msg_namelen = *from_len;
    }
    ssize_t n = rs_dgram_receive(fd, &msg, flags);
    if (n >= 0 && from && from_len)
        *from_len = msg.msg_namelen;
    return n;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return datagram(socket, buf, len, flags, NULL, NULL);
    pthread_mutex_lock(&rs->lock);
    ssize_t n = receive(rs, 0, buf, len, flags);
    pthread_mutex_unlock(&rs->lock);
    return n < 0 ? rs_fail((int)-n) : n;
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
                  socklen_t *addrlen)
{
    if (rs_dgram_is(socket))
        return datagram(socket, buf, len, flags, src_addr, addrlen);
    ssize_t n = rrecv(socket, buf, len, flags);
    if (n > 0 && src_addr)
        rgetpeername(socket, src_addr, addrlen);
    return n;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_receive(socket, msg, flags);
    if (msg->msg_control && msg->msg_controllen)
        return rs_fail(ENOTSUP);
    ssize_t done = 0, n = 0;
    pthread_mutex_lock(&rs->lock);
    for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
        size_t len = msg->msg_iov[i].iov_len;
        bool more = done && !(flags & MSG_WAITALL); /* what is there, without waiting again */
        size_t seen = flags & MSG_PEEK ? (size_t)done : 0;
        n = receive(rs, seen, msg->msg_iov[i].iov_base, len, flags | (more ? MSG_DONTWAIT : 0));
        if (n > 0)
            done += n;
        if (n < 0 || (size_t)n != len)
            break;
    }
    pthread_mutex_unlock(&rs->lock);
    msg->msg_flags = 0;
    return done || n >= 0 ? done : rs_fail((int)-n);
}

ssize_t rread(int socket, void *buf, size_t count)
{
    return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    if (iovcnt < 0)
        return rs_fail(EINVAL);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt};
    return rrecvmsg(socket, &msg, 0);
}

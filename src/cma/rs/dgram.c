/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma/rs/dgram.h"

#include "cm/port.h"
#include "common/sys.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#define NUMBERS 65536
#define TAG     0x55

enum { OP_DATA = 0 };

static atomic_uchar families[NUMBERS]; /* 0: no socket of ours */

static int fail(long err)
{
    errno = (int)-err;
    return -1;
}

static int outcome(long r)
{
    return r < 0 ? fail(r) : (int)r;
}

static sa_family_t family(int fd)
{
    return fd < 0 || fd >= NUMBERS ? 0 : atomic_load_explicit(&families[fd], memory_order_relaxed);
}

bool rs_dgram_is(int fd)
{
    return family(fd) != 0;
}

int rs_dgram_open(int domain, int type)
{
    if (!iw_cm_in_the_clear("rsocket"))
        return fail(-EACCES);
    long fd = sys_socket(domain, type, IPPROTO_UDP);
    if (fd >= NUMBERS) {
        sys_close((int)fd);
        fd = -EMFILE;
    }
    if (fd < 0)
        return fail(fd);
    atomic_store_explicit(&families[fd], (unsigned char)domain, memory_order_relaxed);
    return (int)fd;
}

int rs_dgram_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    return outcome(family(fd) ? sys_bind(fd, addr, len) : -EBADF);
}

int rs_dgram_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return outcome(family(fd) ? sys_connect(fd, addr, len) : -EBADF);
}

int rs_dgram_name(int fd, struct sockaddr *addr, socklen_t *len, bool peer)
{
    if (!family(fd))
        return fail(-EBADF);
    return outcome(peer ? sys_getpeername(fd, addr, len) : sys_getsockname(fd, addr, len));
}

int rs_dgram_shutdown(int fd, int how)
{
    return outcome(family(fd) ? sys_shutdown(fd, how) : -EBADF);
}

int rs_dgram_close(int fd)
{
    if (!family(fd))
        return fail(-EBADF);
    atomic_store_explicit(&families[fd], 0, memory_order_relaxed);
    return outcome(sys_close(fd));
}

/* ---- The header: tag, version, what it is, its length; a QP's number, 0 as there is none; address
 * ---- */

size_t rs_dgram_encode(const struct sockaddr *from, uint8_t out[RS_DGRAM_HEADER_MAX])
{
    bool v6 = from->sa_family == AF_INET6;
    size_t len = v6 ? 28 : 16;
    memset(out, 0, len);
    memset(out, TAG, 4);
    out[4] = v6 ? 6 : 4;
    out[5] = OP_DATA;
    out[6] = (uint8_t)len;
    if (v6)
        memcpy(out + 12, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    else
        memcpy(out + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    return len;
}

int rs_dgram_decode(const uint8_t *in, size_t len)
{
    static const uint8_t tag[4] = {TAG, TAG, TAG, TAG};
    if (len < 16 || memcmp(in, tag, sizeof tag) != 0 || in[5] != OP_DATA)
        return -1;
    if (!(in[4] == 4 && in[6] == 16) && !(in[4] == 6 && in[6] == 28))
        return -1;
    return in[6] <= len ? in[6] : -1;
}

/* ---- Data ---- */

static size_t length(const struct msghdr *msg)
{
    size_t all = 0;
    for (size_t i = 0; i < (size_t)msg->msg_iovlen && all <= RS_DGRAM_MAX; i++)
        all += msg->msg_iov[i].iov_len;
    return all;
}

static void gather(uint8_t *to, const struct msghdr *msg)
{
    for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
        memcpy(to, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        to += msg->msg_iov[i].iov_len;
    }
}

/* @return bytes that had room */
static ssize_t scatter(const struct msghdr *msg, const uint8_t *from, size_t len)
{
    size_t done = 0;
    for (size_t i = 0; i < (size_t)msg->msg_iovlen && done < len; i++) {
        size_t room = msg->msg_iov[i].iov_len, n = room < len - done ? room : len - done;
        memcpy(msg->msg_iov[i].iov_base, from + done, n);
        done += n;
    }
    return (ssize_t)done;
}

ssize_t rs_dgram_send(int fd, const struct msghdr *msg, int flags)
{
    uint8_t bytes[RS_DGRAM_MAX];
    struct sockaddr_storage own = {0};
    socklen_t own_len = sizeof own;
    if (!family(fd))
        return fail(-EBADF);
    if (msg->msg_controllen)
        return fail(-ENOTSUP);
    long r = sys_getsockname(fd, (struct sockaddr *)&own, &own_len);
    if (r < 0)
        return fail(r);
    size_t header = rs_dgram_encode((struct sockaddr *)&own, bytes), len = length(msg);
    if (len > sizeof bytes - header)
        return fail(-EMSGSIZE);
    gather(bytes + header, msg);
    struct iovec iov = {bytes, header + len};
    struct msghdr out = {
        .msg_name = msg->msg_name,
        .msg_namelen = msg->msg_namelen,
        .msg_iov = &iov,
        .msg_iovlen = 1,
    };
    do
        r = sys_sendmsg(fd, &out, (flags & MSG_DONTWAIT) | MSG_NOSIGNAL);
    while (r == -ECONNREFUSED); /* of an earlier one */
    return r < 0 ? fail(r) : (ssize_t)len;
}

ssize_t rs_dgram_receive(int fd, struct msghdr *msg, int flags)
{
    uint8_t bytes[RS_DGRAM_MAX];
    if (!family(fd))
        return fail(-EBADF);
    if (msg->msg_controllen)
        return fail(-ENOTSUP);
    for (;;) {
        struct iovec iov = {bytes, sizeof bytes};
        struct msghdr in = {
            .msg_name = msg->msg_name,
            .msg_namelen = msg->msg_namelen,
            .msg_iov = &iov,
            .msg_iovlen = 1,
        };
        long n = sys_recvmsg(fd, &in, flags & (MSG_DONTWAIT | MSG_PEEK));
        if (n == -ECONNREFUSED) /* somebody was not there: not what datagrams of RDMA tell */
            continue;
        if (n < 0)
            return fail(n);
        bool shut = !n && !in.msg_namelen && msg->msg_name;
        int header = in.msg_flags & MSG_TRUNC ? -1 : rs_dgram_decode(bytes, (size_t)n);
        if (header >= 0 || shut) {
            msg->msg_namelen = in.msg_namelen;
            msg->msg_flags = 0;
            return header < 0 ? 0 : scatter(msg, bytes + header, (size_t)(n - header));
        }
        if (flags & MSG_PEEK) /* it would be seen again */
            sys_recvmsg(fd, &in, MSG_DONTWAIT);
    }
}

/* ---- Options ---- */

int rs_dgram_get_option(int fd, int level, int name, void *value, socklen_t *len)
{
    return outcome(family(fd) ? sys_getsockopt(fd, level, name, value, len) : -EBADF);
}

int rs_dgram_set_option(int fd, int level, int name, const void *value, socklen_t len)
{
    return outcome(family(fd) ? sys_setsockopt(fd, level, name, value, len) : -EBADF);
}

int rs_dgram_fcntl(int fd, int command, long argument)
{
    return outcome(family(fd) ? sys_fcntl(fd, command, argument) : -EBADF);
}

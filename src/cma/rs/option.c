/* SPDX-License-Identifier: BSD-2-Clause */
/* rsetsockopt(), rgetsockopt(), rfcntl(). */
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"
#include "common/rs_plain.h"
#include "common/sys.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#define MOST_BUFFER (1 << 29)

static bool opened(const struct rs *rs)
{
    return rs->phase > RS_LISTENING;
}

static uint32_t doubled(int value)
{
    return value <= 0 ? 1 : value > MOST_BUFFER ? 2U * MOST_BUFFER : 2U * (uint32_t)value;
}

static void keep_flag(struct rs *rs, int name, bool on)
{
    rs->opts = on ? rs->opts | 1U << name : rs->opts & ~(1U << name);
}

static int set_socket(struct rs *rs, int name, int value)
{
    switch (name) {
    case SO_REUSEADDR:
        if (rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value,
                            sizeof value) < 0)
            return -errno;
        keep_flag(rs, name, value);
        return 0;
    case SO_RCVBUF:
        if (!opened(rs))
            rs->sizes.rbuf = doubled(value);
        return 0;
    case SO_SNDBUF:
        if (!opened(rs))
            rs->sizes.sbuf = doubled(value);
        return 0;
    case SO_KEEPALIVE:
        keep_flag(rs, name, value);
        if (!value && rs->keepalive_timer >= 0)
            sys_timerfd_set(rs->keepalive_timer, 0);
        rs_service_keepalive(rs);
        return 0;
    case SO_OOBINLINE:
        keep_flag(rs, name, value);
        return 0;
    default:
        return -ENOTSUP;
    }
}

static int set_tcp(struct rs *rs, int name, int value)
{
    switch (name) {
    case TCP_NODELAY:
        rs->nodelay = value;
        return 0;
    case TCP_MAXSEG:
    case TCP_KEEPCNT:
    case TCP_KEEPINTVL:
        return 0;
    case TCP_KEEPIDLE:
        if (value <= 0)
            return -EINVAL;
        rs->keepalive_s = value;
        rs_service_keepalive(rs);
        return 0;
    default:
        return -ENOTSUP;
    }
}

static int set_ipv6(struct rs *rs, int name, int value)
{
    if (name != IPV6_V6ONLY)
        return -ENOTSUP;
    if (rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof value) < 0)
        return -errno;
    rs->v6only = value;
    return 0;
}

static int set_rdma(struct rs *rs, int name, int value)
{
    if (name == RS_ANEW)
        return rs_renew(rs);
    if (opened(rs))
        return -EINVAL;
    if (value < 0)
        return -EINVAL;
    uint16_t size = (uint16_t)(value > 0xfffe ? 0xfffe : value);
    switch (name) {
    case RDMA_SQSIZE:
        rs->sizes.sq = size;
        return 0;
    case RDMA_RQSIZE:
        rs->sizes.rq = size;
        return 0;
    case RDMA_INLINE:
        rs->sizes.inlined = size;
        return 0;
    case RDMA_IOMAPSIZE:
        rs->sizes.mappings = (uint16_t)rs_decode_mappings(rs_encode_mappings((unsigned)value));
        return 0;
    case RS_TAKE_TCP:
        rs->takes_tcp = value;
        return 0;
    default:
        return -ENOTSUP;
    }
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    struct rs *rs = rs_get(socket);
    int value, r;
    if (!rs)
        return rs_dgram_set_option(socket, level, optname, optval, optlen);
    if (!optval || optlen < sizeof value)
        return rs_fail(EINVAL);
    memcpy(&value, optval, sizeof value);
    pthread_mutex_lock(&rs->lock);
    if (level == SOL_SOCKET && optname == SO_LINGER) {
        r = optlen < sizeof rs->linger ? -EINVAL : 0;
        if (r == 0)
            memcpy(&rs->linger, optval, sizeof rs->linger);
    } else if (level == SOL_SOCKET) {
        r = set_socket(rs, optname, value);
    } else if (level == IPPROTO_TCP) {
        r = set_tcp(rs, optname, value);
    } else if (level == IPPROTO_IPV6) {
        r = set_ipv6(rs, optname, value);
    } else {
        r = level == SOL_RDMA ? set_rdma(rs, optname, value) : -ENOTSUP;
    }
    pthread_mutex_unlock(&rs->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

static int get_socket(struct rs *rs, int name, int *value)
{
    switch (name) {
    case SO_REUSEADDR:
    case SO_KEEPALIVE:
    case SO_OOBINLINE:
        *value = (rs->opts >> name) & 1;
        return 0;
    case SO_RCVBUF:
        *value = (int)rs->sizes.rbuf;
        return 0;
    case SO_SNDBUF:
        *value = (int)rs->sizes.sbuf;
        return 0;
    case SO_BROADCAST:
        *value = 0;
        return 0;
    case SO_ERROR:
        rs_progress(rs);
        *value = rs->so_error;
        rs->so_error = 0;
        return 0;
    default:
        return -ENOTSUP;
    }
}

static int get_tcp(const struct rs *rs, int name, int *value)
{
    switch (name) {
    case TCP_NODELAY:
        *value = rs->nodelay;
        return 0;
    case TCP_MAXSEG:
        *value = 2048;
        return 0;
    case TCP_KEEPCNT:
    case TCP_KEEPINTVL:
        *value = 1;
        return 0;
    case TCP_KEEPIDLE:
        *value = rs->keepalive_s;
        return 0;
    default:
        return -ENOTSUP;
    }
}

static int get_rdma(struct rs *rs, int name, int *value)
{
    switch (name) {
    case RDMA_SQSIZE:
        *value = rs->sizes.sq;
        return 0;
    case RDMA_RQSIZE:
        *value = rs->sizes.rq;
        return 0;
    case RDMA_INLINE:
        *value = rs->sizes.inlined;
        return 0;
    case RDMA_IOMAPSIZE:
        *value = rs->sizes.mappings;
        return 0;
    case RS_UNREAD:
        rs_progress(rs);
        *value = (int)rs->unread;
        return 0;
    default:
        return -ENOTSUP;
    }
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    struct rs *rs = rs_get(socket);
    int value = 0, r;
    const void *from = &value;
    socklen_t size = sizeof value;
    if (!rs)
        return rs_dgram_get_option(socket, level, optname, optval, optlen);
    if (!optval || !optlen)
        return rs_fail(EFAULT);
    pthread_mutex_lock(&rs->lock);
    if (level == SOL_SOCKET && optname == SO_LINGER) {
        from = &rs->linger;
        size = sizeof rs->linger;
        r = 0;
    } else if (level == SOL_SOCKET) {
        r = get_socket(rs, optname, &value);
    } else if (level == IPPROTO_TCP) {
        r = get_tcp(rs, optname, &value);
    } else if (level == IPPROTO_IPV6) {
        value = rs->v6only;
        r = optname == IPV6_V6ONLY ? 0 : -ENOTSUP;
    } else {
        r = level == SOL_RDMA ? get_rdma(rs, optname, &value) : -ENOTSUP;
    }
    if (r == 0 && *optlen < size)
        r = -EINVAL;
    if (r == 0) {
        memcpy(optval, from, size);
        *optlen = size;
    }
    pthread_mutex_unlock(&rs->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

int rfcntl(int socket, int cmd, ...)
{
    struct rs *rs = rs_get(socket);
    va_list args;
    va_start(args, cmd);
    long arg = cmd == F_SETFL || cmd == F_SETFD ? va_arg(args, int) : 0;
    va_end(args);
    if (!rs)
        return rs_dgram_fcntl(socket, cmd, arg);
    long r;
    switch (cmd) {
    case F_GETFL:
        return rs->flags | O_RDWR;
    case F_SETFL:
        pthread_mutex_lock(&rs->lock);
        rs->flags = (int)arg & O_NONBLOCK;
        pthread_mutex_unlock(&rs->lock);
        return 0;
    case F_GETFD:
    case F_SETFD:
        r = sys_fcntl(socket, cmd, arg);
        return r < 0 ? rs_fail((int)-r) : (int)r;
    default:
        return rs_fail(ENOTSUP);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, binding, connecting and closing sockets. */
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <netinet/in.h>

#define CLOSE_MS   10000
#define ADDRESS_MS 2000

int rsocket(int domain, int type, int protocol)
{
    int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_DGRAM &&
        (!protocol || protocol == IPPROTO_UDP))
        return rs_dgram_open(domain, type);
    if ((domain != AF_INET && domain != AF_INET6) || kind != SOCK_STREAM ||
        (protocol && protocol != IPPROTO_TCP))
        return rs_fail(ENOTSUP);
    struct rs *rs = rs_create(&rs_config()->sizes);
    if (!rs)
        return -1;
    rs->keepalive_s = 7200;
    if (type & SOCK_NONBLOCK)
        rs->flags = O_NONBLOCK;
    if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) < 0) {
        int err = errno;
        rs->id = NULL;
        rs_destroy(rs);
        return rs_fail(err);
    }
    rs->id->route.addr.src_addr.sa_family = (sa_family_t)domain;
    rs->six = domain == AF_INET6;
    rs_publish(rs);
    return rs->fd;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_bind(socket, addr, addrlen);
    pthread_mutex_lock(&rs->lock);
    int r = rdma_bind_addr(rs->id, (struct sockaddr *)addr);
    if (r == 0)
        rs->phase = RS_BOUND;
    pthread_mutex_unlock(&rs->lock);
    return r;
}

static bool no_longer_connecting(const struct rs *rs)
{
    return rs->phase != RS_CONNECTING;
}

static int begin(struct rs *rs, const struct sockaddr *addr)
{
    rs->phase = RS_CONNECTING;
    int r = rs_service_add(rs);
    if (r == 0 && rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)addr, ADDRESS_MS) < 0)
        r = -errno;
    if (r < 0) {
        rs->phase = RS_FAILED;
        rs->err = rs->so_error = -r;
    }
    return r;
}

static int outcome(struct rs *rs)
{
    switch (rs->phase) {
    case RS_CONNECTED:
        return 0;
    case RS_FAILED:
        rs->so_error = 0;
        return -rs->err;
    default:
        return -EINPROGRESS;
    }
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_connect(socket, addr, addrlen);
    if (!addr || addrlen < sizeof(struct sockaddr_in))
        return rs_fail(EINVAL);
    int r;
    pthread_mutex_lock(&rs->lock);
    switch (rs->phase) {
    case RS_NEW:
    case RS_BOUND:
        r = begin(rs, addr);
        if (r < 0)
            break;
        /* fall through */
    case RS_CONNECTING:
        r = rs_wait(rs, no_longer_connecting, rs->flags & O_NONBLOCK, -1);
        r = r == -EAGAIN ? -EINPROGRESS : r < 0 ? r : outcome(rs);
        break;
    case RS_CONNECTED:
        r = rs->disconnected ? -ENOTCONN : 0;
        break;
    case RS_FAILED:
        r = -ENOTCONN;
        break;
    default:
        r = -EINVAL;
    }
    pthread_mutex_unlock(&rs->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

int rs_renew(struct rs *rs)
{
    struct rdma_cm_id *id;
    int on = 1;
    if (rs->phase == RS_NEW || rs->phase == RS_BOUND)
        return 0;
    if (rs->phase != RS_CONNECTING && rs->phase != RS_FAILED)
        return -EINVAL;
    if (rdma_create_id(rs->channel, &id, rs, RDMA_PS_TCP) < 0)
        return -errno;
    id->route.addr.src_addr.sa_family = rs->id->route.addr.src_addr.sa_family;
    if (rs->opts & 1U << SO_REUSEADDR)
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
    if (rs->v6only)
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on);
    rs_service_remove(rs);
    rs_endpoint_destroy(rs);
    rdma_destroy_id(rs->id);
    rs->id = id;
    rs->phase = RS_NEW;
    rs->err = rs->so_error = 0;
    return 0;
}

static bool all_sent(const struct rs *rs)
{
    return rs->disconnected || (!rs->end_due && rs->posted == rs->completed);
}

/* Lock held. */
static int shut(struct rs *rs, int how, bool nonblock, int timeout_ms)
{
    bool recv = how != SHUT_WR, send = how != SHUT_RD;
    bool wrote = rs->writable;
    if (recv)
        rs->readable = false;
    if (send)
        rs->writable = false;
    rs->hung_up |= !rs->readable && !rs->writable;
    rs_wake_all(rs);
    if (rs->writable)
        return 0;
    rs->end_due |= wrote || recv;
    int r = rs_wait(rs, all_sent, nonblock, timeout_ms);
    return r == -EAGAIN ? 0 : r;
}

int rshutdown(int socket, int how)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_shutdown(socket, how);
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return rs_fail(EINVAL);
    if (rs->phase == RS_LISTENING) {
        if (how != SHUT_WR)
            rs_shut_listener(rs);
        return 0;
    }
    pthread_mutex_lock(&rs->lock);
    int r = rs->phase == RS_CONNECTED ? shut(rs, how, rs->flags & O_NONBLOCK, -1) : -ENOTCONN;
    pthread_mutex_unlock(&rs->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

int rclose(int socket)
{
    struct rs *rs = rs_get(socket);
    rs_repoll_forget(socket);
    if (!rs)
        return rs_repoll_close(socket) ? 0 : rs_dgram_close(socket);
    pthread_mutex_lock(&rs->lock);
    if (rs->phase == RS_CONNECTED)
        shut(rs, SHUT_RDWR, false, CLOSE_MS);
    pthread_mutex_unlock(&rs->lock);
    rs_service_lock();
    rs_service_remove(rs);
    rs_close_queue(rs);
    rs_destroy(rs);
    rs_service_unlock();
    return 0;
}

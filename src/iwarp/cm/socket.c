/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/endpoint.h"

#include "common/addr.h"
#include "common/sys.h"
#include "env/conf.h"
#include "env/ephemeral.h"
#include "env/fd.h"
#include "env/log.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#define KEEP_COUNT  4  /* a peer that has nothing to answer is asked so often */
#define KEEP_SPREAD 20 /* and after this part of the time again */
#define PORT_TRIES  64 /* ports of other programs to pass over */

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

static void set_int(int fd, int level, int name, int value)
{
    sys_setsockopt(fd, level, name, &value, sizeof(value));
}

static void set_congestion(int fd, const char *name)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    long r = sys_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
    if (r && !atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_ASKED, "ANYWARP_CONGESTION=%s: the kernel %s: the system's is used", name,
               r == -EPERM ? "gives it to root only" : "does not have it");
}

int iw_cm_socket(int family, const struct iw_cm *cm)
{
    const struct iw_conf *conf = iw_conf();
    long fd;
    do
        fd = sys_socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    while (fd == -EMFILE && iw_fd_more());
    if (fd < 0)
        return (int)fd;
    fd = iw_fd_high((int)fd);
    set_int((int)fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6)
        set_int((int)fd, IPPROTO_IPV6, IPV6_V6ONLY, cm->afonly);
    if (conf->congestion[0])
        set_congestion((int)fd, conf->congestion);
    if (cm->tos_set)
        iw_cm_socket_tos((int)fd, cm->tos);
    return (int)fd;
}

void iw_cm_socket_connected(int fd)
{
    int s = (int)iw_conf()->silence_s;
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, s < KEEP_SPREAD ? 1 : s / KEEP_SPREAD);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    /* A closed window is probed ever more rarely; before Linux 6.15 every two minutes at last. */
    set_int(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, (int)iw_cm_watch_ms(NULL));
}

int iw_cm_socket_again(int fd)
{
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    int error;
    socklen_t len = sizeof(error);
    int r = (int)sys_connect(fd, &none, sizeof(none));
    sys_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len); /* of the connection that is gone */
    return r;
}

void iw_cm_socket_tos(int fd, uint8_t tos)
{
    set_int(fd, IPPROTO_IP, IP_TOS, tos);
    set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

int iw_cm_set_tos(struct iw_cm *cm, uint8_t tos)
{
    lock_get(&cm->lock);
    cm->tos = tos;
    cm->tos_set = true;
    if (cm->fd >= 0)
        iw_cm_socket_tos(cm->fd, tos);
    lock_put(&cm->lock);
    return 0;
}

/** Binds to a port of our choice, or else of the kernel's, which may find none in a busy minute. */
static int bind_ephemeral(int fd, struct sockaddr_storage *addr)
{
    struct sockaddr *to = (struct sockaddr *)addr;
    socklen_t len = addr_len(to);
    for (int i = 0; i < PORT_TRIES; i++) {
        addr_set_port(to, iw_ephemeral_port());
        int r = (int)sys_bind(fd, to, len);
        if (r != -EADDRINUSE)
            return r;
    }
    addr_set_port(to, 0);
    return (int)sys_bind(fd, to, len);
}

static int bind_locked(struct iw_cm *cm, const struct sockaddr *addr, bool afonly, bool ephemeral)
{
    struct sockaddr_storage local = {0};
    socklen_t len = addr_len(addr);
    assert_held(&cm->lock);
    if (!len)
        return -EAFNOSUPPORT;
    if (!iw_cm_may_locked(cm, IW_CM_EV_BIND))
        return -EINVAL;
    memcpy(&local, addr, len);
    cm->afonly = afonly;
    int fd = iw_cm_socket(addr->sa_family, cm);
    if (fd < 0)
        return fd;
    bool any = !addr_port(addr);
    cm->any_port = ephemeral && any;
    int r = cm->any_port ? -EADDRINUSE : (int)sys_bind(fd, addr, len);
    if (any && r == -EADDRINUSE)
        r = bind_ephemeral(fd, &local);
    if (r < 0) {
        sys_close(fd);
        return r;
    }
    cm->fd = fd;
    iw_cm_take_locked(cm, IW_CM_EV_BIND);
    return 0;
}

int iw_cm_bind(struct iw_cm *cm, const struct sockaddr *addr, bool afonly)
{
    lock_get(&cm->lock);
    int r = bind_locked(cm, addr, afonly, false);
    lock_put(&cm->lock);
    return r;
}

int iw_cm_bind_active(struct iw_cm *cm, const struct sockaddr *addr)
{
    lock_get(&cm->lock);
    int r = bind_locked(cm, addr, false, true);
    lock_put(&cm->lock);
    return r;
}

int iw_cm_rebind(struct iw_cm *cm, bool other_port)
{
    struct sockaddr_storage local = {0};
    socklen_t len = sizeof(local);
    int r = (int)sys_getsockname(cm->fd, (struct sockaddr *)&local, &len);
    if (r < 0)
        return r;
    int fd = iw_cm_socket(local.ss_family, cm);
    if (fd < 0)
        return fd;
    r = other_port ? bind_ephemeral(fd, &local) : (int)sys_bind(fd, (struct sockaddr *)&local, len);
    if (r < 0) {
        sys_close(fd);
        return r;
    }
    lock_get(&cm->lock);
    int old = cm->fd;
    cm->fd = fd;
    lock_put(&cm->lock);
    struct linger reset = {.l_onoff = 1}; /* or its TIME-WAIT would be in the way */
    sys_setsockopt(old, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    sys_close(old);
    return 0;
}

int iw_cm_set_afonly(struct iw_cm *cm, bool afonly)
{
    lock_get(&cm->lock);
    bool bound = cm->state == IW_CM_S_BOUND, was = cm->afonly;
    cm->afonly = afonly;
    lock_put(&cm->lock);
    /* TCP lets no bound socket change its mind. */
    int r = !bound ? -EINVAL : afonly == was ? 0 : iw_cm_rebind(cm, false);
    if (r < 0)
        cm->afonly = was;
    return r;
}

void iw_cm_addresses(struct iw_cm *cm, struct sockaddr_storage *local,
                     struct sockaddr_storage *peer)
{
    socklen_t len = sizeof(struct sockaddr_storage);
    lock_get(&cm->lock);
    if (local) {
        memset(local, 0, sizeof(*local));
        if (cm->fd >= 0)
            sys_getsockname(cm->fd, (struct sockaddr *)local, &len);
    }
    len = sizeof(struct sockaddr_storage);
    if (peer) {
        memset(peer, 0, sizeof(*peer));
        if (cm->fd >= 0)
            sys_getpeername(cm->fd, (struct sockaddr *)peer, &len);
    }
    lock_put(&cm->lock);
}

bool iw_cm_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
    uint32_t ia = ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr);
    uint32_t ib = ntohl(((const struct sockaddr_in *)b)->sin_addr.s_addr);
    return ia == ib || (ia >> 24 == IN_LOOPBACKNET && ib >> 24 == IN_LOOPBACKNET);
}

bool iw_cm_same_host(int fd)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t la = sizeof(a), lb = sizeof(b);
    return sys_getsockname(fd, (struct sockaddr *)&a, &la) == 0 &&
           sys_getpeername(fd, (struct sockaddr *)&b, &lb) == 0 && iw_cm_same_address(&a, &b);
}

bool iw_cm_wants_crc(const struct iw_cm *cm)
{
    enum iw_switch crc = cm->tls ? IW_OFF : iw_conf()->crc; /* TLS finds what CRC would */
    return crc == IW_ON || (crc == IW_AUTO && !cm->same_host);
}

int iw_cm_send_frame(struct iw_cm *cm)
{
    struct mpa_nego *n = cm->nego;
    struct iovec iov = {.iov_base = n->out, .iov_len = n->out_len};
    lock_get(&cm->lock);
    ssize_t r = cm->fd < 0 ? -ECONNRESET : cm->stream->ops->send(cm->stream, &iov, 1);
    lock_put(&cm->lock);
    bool whole = r == (ssize_t)n->out_len;
    n->out_len = 0;
    if (whole)
        return 0;
    return r == -EPIPE ? -ECONNRESET : r < 0 ? (int)r : -ECONNABORTED;
}

void iw_cm_shutdown(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    if (cm->fd >= 0)
        cm->stream->ops->shutdown(cm->stream);
    lock_put(&cm->lock);
}

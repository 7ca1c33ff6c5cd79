/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/udp.h"

#include "common/addr.h"
#include "common/sys.h"
#include "env/fd.h"

#include <errno.h>

/** Room for the one control message that says which of our addresses it is. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static void set_int(int fd, int level, int name, int value)
{
    sys_setsockopt(fd, level, name, &value, sizeof(value));
}

int iw_udp_open(const struct sockaddr *addr, bool afonly)
{
    socklen_t len = addr_len(addr);
    if (!len)
        return -EAFNOSUPPORT;
    int fd =
        iw_fd_socket(addr_family(addr), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0)
        return fd;
    if (addr_family(addr) == AF_INET6) {
        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, afonly);
        set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    } else {
        set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
    }
    long r = sys_bind(fd, addr, len);
    if (!r)
        return fd;
    sys_close(fd);
    return (int)r;
}

void iw_udp_set_tos(int fd, uint8_t tos)
{
    set_int(fd, IPPROTO_IP, IP_TOS, tos);
    set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

/** The address that a control message names, in place of the one that the socket is bound to. */
static void take_local(struct cmsghdr *c, struct sockaddr_storage *local)
{
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && local->ss_family == AF_INET) {
        struct in_pktinfo info;
        memcpy(&info, CMSG_DATA(c), sizeof(info));
        ((struct sockaddr_in *)local)->sin_addr = info.ipi_spec_dst;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
               local->ss_family == AF_INET6) {
        struct in6_pktinfo info;
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)local;
        memcpy(&info, CMSG_DATA(c), sizeof(info));
        six->sin6_addr = info.ipi6_addr;
        six->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr) ? info.ipi6_ifindex : 0;
    }
}

long iw_udp_recv(int fd, void *buf, size_t size, struct iw_udp_way *way)
{
    union control control;
    struct iovec iov = {.iov_base = buf, .iov_len = size};
    struct msghdr m = {
        .msg_name = &way->peer,
        .msg_namelen = sizeof(way->peer),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    memset(way, 0, sizeof(*way));
    long n = sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);
    socklen_t len = sizeof(way->local);
    if (n < 0)
        return n;
    sys_getsockname(fd, (struct sockaddr *)&way->local, &len);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        take_local(c, &way->local);
    return n;
}

static void give_local(struct cmsghdr *c, const struct sockaddr_storage *local)
{
    if (local->ss_family == AF_INET) {
        struct in_pktinfo info = {.ipi_spec_dst = ((const struct sockaddr_in *)local)->sin_addr};
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof(info));
        memcpy(CMSG_DATA(c), &info, sizeof(info));
    } else {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)local;
        struct in6_pktinfo info = {.ipi6_addr = six->sin6_addr, .ipi6_ifindex = six->sin6_scope_id};
        c->cmsg_level = IPPROTO_IPV6;
        c->cmsg_type = IPV6_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof(info));
        memcpy(CMSG_DATA(c), &info, sizeof(info));
    }
}

int iw_udp_send(int fd, const void *buf, size_t len, const struct iw_udp_way *way)
{
    union control control = {0};
    struct sockaddr_storage peer = way->peer;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    struct msghdr m = {
        .msg_name = &peer,
        .msg_namelen = addr_len((struct sockaddr *)&peer),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    give_local(c, &way->local);
    m.msg_controllen = CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));
    long r = sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    return r < 0 ? (int)r : 0;
}

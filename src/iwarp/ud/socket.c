/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/socket.h"

#include "common/addr.h"
#include "common/sys.h"
#include "env/error_text.h"
#include "env/fd.h"
#include "env/log.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>

#define BUFFER (4 << 20) /* bytes; the system may give less */
#define FLAGS  (SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

socklen_t iw_ud_local_name(struct sockaddr_un *name, uint32_t qpn)
{
    name->sun_family = AF_UNIX;
    name->sun_path[0] = 0;
    int len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "anywarp-ud-%06x", qpn);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void set(int fd, int level, int name, int value)
{
    sys_setsockopt(fd, level, name, &value, sizeof(value));
}

void iw_ud_tune(int fd, bool udp)
{
    set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
    set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER);
    if (!udp)
        return;
    set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    if (iw_ud_is_ipv4(fd))
        set(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

bool iw_ud_is_ipv4(int fd)
{
    int domain = 0;
    socklen_t len = sizeof(domain);
    sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
    return domain == AF_INET;
}

/** @return @p fd, or the negative errno @p r with it closed */
static int finish(int fd, long r)
{
    if (r < 0) {
        sys_close(fd);
        return (int)r;
    }
    return fd;
}

int iw_ud_open_local(uint32_t qpn)
{
    struct sockaddr_un name;
    socklen_t len = iw_ud_local_name(&name, qpn);
    int fd = iw_fd_socket(AF_UNIX, FLAGS, 0);
    if (fd < 0) {
        char text[IW_ERROR_TEXT_MAX];
        iw_error_text(-fd, text);
        iw_log(IW_LOG_WARN, "a QP for datagrams is not made: it needs a socket of AF_UNIX, %s",
               text);
        return fd;
    }
    iw_ud_tune(fd, false);
    return finish(fd, sys_bind(fd, (struct sockaddr *)&name, len));
}

int iw_ud_open_out(void)
{
    int fd = iw_fd_socket(AF_UNIX, FLAGS, 0);
    if (fd < 0)
        return fd;
    iw_ud_tune(fd, false);
    return fd;
}

static int open_group(int domain, const struct sockaddr *any, socklen_t len)
{
    int fd = iw_fd_socket(domain, FLAGS, 0);
    if (fd < 0)
        return fd;
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0); /* what others have joined is not ours */
    if (domain == AF_INET6) {
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    }
    iw_ud_tune(fd, true);
    return finish(fd, sys_bind(fd, any, len));
}

int iw_ud_open_group(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(IW_UD_GROUP_PORT)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(IW_UD_GROUP_PORT)};
    int fd = open_group(AF_INET6, (struct sockaddr *)&six, sizeof(six));
    if (addr_try_ipv4(fd))
        fd = open_group(AF_INET, (struct sockaddr *)&four, sizeof(four));
    return fd;
}

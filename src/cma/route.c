/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses, and which of ours leads to a peer. */
#include "cma.h"
#include "common/sys.h"

#include <string.h>

/* The two families seen through their own structures. */
static struct sockaddr_in *in4(const struct sockaddr *addr)
{
    return (struct sockaddr_in *)(uintptr_t)addr;
}

static struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
    return (struct sockaddr_in6 *)(uintptr_t)addr;
}

void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
    struct sockaddr_storage copy = {0};
    memcpy(&copy, from, addr_len(from));
    *to = copy;
}

bool cma_addr_any(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET)
        return in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
}

bool cma_addr_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family == AF_INET)
        return in4(a)->sin_addr.s_addr == in4(b)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&in6(a)->sin6_addr, &in6(b)->sin6_addr) &&
           in6(a)->sin6_scope_id == in6(b)->sin6_scope_id;
}

bool cma_addr_lacks_scope(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6(addr)->sin6_addr) &&
           in6(addr)->sin6_scope_id == 0;
}

void cma_addr_wildcard(sa_family_t family, struct sockaddr_storage *addr)
{
    memset(addr, 0, sizeof *addr);
    addr->ss_family = family;
}

void cma_addr_unmap(struct sockaddr_storage *addr)
{
    const struct sockaddr_in6 *mapped = in6((struct sockaddr *)addr);
    if (addr->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&mapped->sin6_addr))
        return;
    struct sockaddr_in plain = {.sin_family = AF_INET, .sin_port = mapped->sin6_port};
    memcpy(&plain.sin_addr, &mapped->sin6_addr.s6_addr[12], sizeof plain.sin_addr);
    cma_addr_copy(addr, (struct sockaddr *)&plain);
}

int cma_addr_complete(struct sockaddr_storage *dst, const struct sockaddr *src)
{
    struct sockaddr *addr = (struct sockaddr *)dst;
    if (cma_addr_any(addr)) {
        if (dst->ss_family == AF_INET)
            in4(addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
            in6(addr)->sin6_addr = in6addr_loopback;
    }
    if (cma_addr_lacks_scope(addr))
        in6(addr)->sin6_scope_id = in6(src)->sin6_scope_id;
    return cma_addr_lacks_scope(addr) ? -EINVAL : 0;
}

int cma_route_source(const struct sockaddr *src, const struct sockaddr *dst,
                     struct sockaddr_storage *source)
{
    struct sockaddr_storage from;
    cma_addr_copy(&from, src);
    addr_set_port((struct sockaddr *)&from, 0);

    /* Connecting a datagram socket looks the route up and sends nothing. */
    int fd = (int)sys_socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long r = sys_bind(fd, (struct sockaddr *)&from, addr_len(src));
    if (r == 0)
        r = sys_connect(fd, dst, addr_len(dst));
    if (r == 0) {
        socklen_t len = sizeof from;
        r = sys_getsockname(fd, (struct sockaddr *)&from, &len);
    }
    sys_close(fd);
    if (r < 0)
        return (int)r;
    addr_set_port((struct sockaddr *)&from, addr_port(src));
    *source = from;
    return 0;
}

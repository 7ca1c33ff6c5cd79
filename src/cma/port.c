/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port space: which ids of this process hold a port. The sockets of the transport always have
 * SO_REUSEADDR, or a server could not be started again while an old connection lingers; so it is
 * here that a port taken by another id is noticed before one of the two listens. Connections and
 * datagrams have ports of their own, as TCP and UDP have.
 */
#include "cma.h"
#include "common/sys.h"

static struct list ports = {&ports, &ports}; /* struct cma_id; under cma_events */

bool cma_afonly(const struct cma_id *id)
{
    if (id->afonly >= 0)
        return id->afonly;
    /* A fresh socket tells what net.ipv6.bindv6only says. */
    int only = 0;
    socklen_t len = sizeof only;
    int fd = (int)sys_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    sys_getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len);
    sys_close(fd);
    return only;
}

static bool conflict(const struct cma_id *a, const struct sockaddr *a_addr, const struct cma_id *b)
{
    const struct sockaddr *b_addr = (const struct sockaddr *)&b->bound;
    if (addr_port(a_addr) != addr_port(b_addr))
        return false;
    if (cma_datagrams(a) != cma_datagrams(b) || (a->reuseaddr && b->reuseaddr))
        return false;
    if (a_addr->sa_family == b_addr->sa_family)
        return cma_addr_any(a_addr) || cma_addr_any(b_addr) || cma_addr_same(a_addr, b_addr);
    /* Of different families only an IPv6 wildcard that takes IPv4 as well is in the way. */
    const struct cma_id *six = a_addr->sa_family == AF_INET6 ? a : b;
    const struct sockaddr *six_addr = six == a ? a_addr : b_addr;
    return cma_addr_any(six_addr) && !cma_afonly(six);
}

bool cma_port_free(const struct cma_id *id, const struct sockaddr *addr)
{
    bool free = true;
    if (addr_port(addr) == 0)
        return true;
    lock_get(&cma_events);
    list_for_each (it, &ports) {
        const struct cma_id *other = container_of(it, struct cma_id, port);
        if (other != id && conflict(id, addr, other))
            free = false;
    }
    lock_put(&cma_events);
    return free;
}

void cma_port_claim(struct cma_id *id)
{
    lock_get(&cma_events);
    list_add_tail(&ports, &id->port);
    lock_put(&cma_events);
}

void cma_port_release(struct cma_id *id)
{
    lock_get(&cma_events);
    list_del(&id->port);
    lock_put(&cma_events);
}

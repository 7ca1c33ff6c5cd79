/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/number.h"

#include "common/addr.h"
#include "common/list.h"
#include "common/sys.h"
#include "env/conf.h"
#include "env/error_text.h"
#include "env/fd.h"
#include "env/log.h"
#include "env/random.h"
#include "qpn/dial.h"
#include "qpn/visitor.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#define SLOTS 256

struct iw_number_port {
    struct list link;
    struct iw_cm *listener;
    int claim; /* descriptor, -1: none is needed */
    uint16_t number;
    bool listens;
    unsigned used;
    uint8_t next; /* numbers are used again as late as possible */
    struct iw_dial *slot[SLOTS];
};

#define TRIES 64 /* ports that TCP gives, and UDP has not */

static struct lock lock = LOCK(LOCK_DIALS);
static struct list ports = {&ports, &ports};
static struct list alone = {&alone, &alone}; /* those that one QP has to itself */

static uint16_t port_of(struct iw_cm *listener)
{
    struct sockaddr_storage own;
    iw_cm_addresses(listener, &own, NULL);
    return addr_port((struct sockaddr *)&own);
}

/** Both versions of IP, where there are both. @param port  0: any */
static int bind_to(struct iw_cm *listener, uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int r = iw_cm_bind(listener, (struct sockaddr *)&six, false);
    if (addr_try_ipv4(r))
        r = iw_cm_bind(listener, (struct sockaddr *)&four, false);
    return r;
}

static void unclaim(struct iw_number_port *p)
{
    if (p->claim >= 0)
        sys_close(p->claim);
    p->claim = -1;
}

/**
 * Takes a name for the port, which one process at a time can have. The port itself does not tell
 * who has it before he listens: its sockets are made to be bound again at once.
 */
static int claim(struct iw_number_port *p, uint16_t port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "anywarp-port-%u", port);
    int fd = iw_fd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        char text[IW_ERROR_TEXT_MAX];
        iw_error_text(-fd, text);
        iw_log(IW_LOG_WARN, "no port of ANYWARP_PORTS is taken: that needs a socket of AF_UNIX, %s",
               text);
        return fd;
    }
    p->claim = fd;
    int r = (int)sys_bind(p->claim, (struct sockaddr *)&name,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len));
    if (r)
        unclaim(p);
    return r;
}

static int bind_one(const struct sockaddr *any, socklen_t len, int *out)
{
    const int no = 0;
    int fd = iw_fd_socket(any->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (any->sa_family == AF_INET6)
        sys_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    int r = (int)sys_bind(fd, any, len);
    if (r)
        sys_close(fd);
    else
        *out = fd;
    return r;
}

/** A socket for datagrams on the same port, for both versions of IP. */
static int bind_datagrams(uint16_t port, int *out)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int r = bind_one((struct sockaddr *)&six, sizeof(six), out);
    if (addr_try_ipv4(r))
        r = bind_one((struct sockaddr *)&four, sizeof(four), out);
    return r;
}

static int claim_and_bind(struct iw_number_port *p, uint16_t port, int *datagrams)
{
    int r = port ? claim(p, port) : 0;
    if (r)
        return r;
    r = iw_cm_create(&p->listener, iw_visitor_asked, p);
    if (r) {
        unclaim(p);
        return r;
    }
    r = bind_to(p->listener, port);
    if (!r && datagrams)
        r = bind_datagrams(port_of(p->listener), datagrams);
    if (r) {
        iw_cm_destroy(p->listener);
        unclaim(p);
    }
    return r;
}

/** A port that is free, of those that may be taken; the kernel knows which may where nobody says.
 */
static int bind_any(struct iw_number_port *p, int *datagrams)
{
    const struct iw_conf *conf = iw_conf();
    int r = -EADDRINUSE;
    for (unsigned i = 0; !conf->port_high && i < TRIES && r == -EADDRINUSE; i++)
        r = claim_and_bind(p, 0, datagrams);
    for (uint32_t port = conf->port_low; port && port <= conf->port_high && r == -EADDRINUSE;
         port++)
        r = claim_and_bind(p, (uint16_t)port, datagrams);
    return r;
}

/** @param datagrams  [out] a socket of UDP on the same port; NULL: none */
static int open_port(struct iw_number_port **out, int *datagrams)
{
    struct iw_number_port *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->claim = -1;
    list_init(&p->link);
    int r = bind_any(p, datagrams);
    if (r) {
        free(p);
        return r;
    }
    p->number = port_of(p->listener);
    *out = p;
    return 0;
}

static void close_port(struct iw_number_port *p)
{
    iw_cm_destroy(p->listener);
    unclaim(p);
    free(p);
}

static struct iw_number_port *with_room_locked(void)
{
    assert_held(&lock);
    list_for_each (it, &ports) {
        struct iw_number_port *p = container_of(it, struct iw_number_port, link);
        if (p->used < SLOTS)
            return p;
    }
    return NULL;
}

static void enter_locked(struct iw_number_port *p, struct iw_number *n, struct iw_dial *d)
{
    assert_held(&lock);
    while (p->slot[p->next])
        p->next++;
    p->slot[p->next] = d;
    p->used++;
    *n = (struct iw_number){.port = p, .qpn = (uint32_t)p->number << 8 | p->next};
    p->next++;
}

int iw_number_take(struct iw_number *n, struct iw_dial *d)
{
    struct iw_number_port *fresh = NULL;
    lock_get(&lock);
    struct iw_number_port *p = with_room_locked();
    if (!p) {
        lock_put(&lock);
        int r = open_port(&fresh, NULL);
        if (r)
            return r;
        lock_get(&lock);
        p = fresh;
        list_add_tail(&ports, &p->link);
    }
    enter_locked(p, n, d);
    lock_put(&lock);
    return 0;
}

int iw_number_take_alone(struct iw_number *n, int *datagrams)
{
    struct iw_number_port *p;
    uint32_t slot;
    if (iw_random32(&slot))
        return -EIO;
    int r = open_port(&p, datagrams);
    if (r)
        return r;
    p->next = (uint8_t)slot;
    lock_get(&lock);
    list_add_tail(&alone, &p->link);
    enter_locked(p, n, NULL);
    lock_put(&lock);
    return 0;
}

void iw_number_give(struct iw_number *n)
{
    struct iw_number_port *p = n->port;
    if (!p)
        return;
    lock_get(&lock);
    p->slot[n->qpn % SLOTS] = NULL;
    bool empty = --p->used == 0;
    if (empty)
        list_del(&p->link);
    lock_put(&lock);
    if (empty)
        close_port(p);
    *n = (struct iw_number){0};
}

int iw_number_listen(const struct iw_number *n)
{
    if (!n->port)
        return -EADDRNOTAVAIL;
    lock_get(&lock);
    bool first = !n->port->listens;
    n->port->listens = true;
    lock_put(&lock);
    int r = first ? iw_cm_listen(n->port->listener, 0) : 0;
    if (r) {
        lock_get(&lock);
        n->port->listens = false;
        lock_put(&lock);
    }
    return r;
}

struct iw_dial *iw_number_find(struct iw_number_port *port, uint32_t qpn)
{
    struct iw_dial *d = NULL;
    lock_get(&lock);
    if (iw_number_tcp_port(qpn) == port->number)
        d = port->slot[qpn % SLOTS];
    if (d)
        iw_dial_pin(d);
    lock_put(&lock);
    return d;
}

static void forget(struct list *parents)
{
    for (struct list *it; (it = list_pop(parents));) {
        struct iw_number_port *p = container_of(it, struct iw_number_port, link);
        iw_fd_leave_socket(p->claim);
        p->claim = -1;
    }
}

void iw_number_fork(enum fork_step step)
{
    lock_fork(&lock, step);
    if (step != FORK_CHILD)
        return;
    forget(&ports);
    forget(&alone);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netwatch.h"

#include "common/sys.h"
#include "engine/source.h"
#include "env/fd.h"
#include "env/log.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

static struct {
    struct lock lock; /* held while changed() runs; above the locks of contexts */
    struct list watches;
    struct iw_source source;
    bool open;
} net = {
    .lock = LOCK(LOCK_NETWATCH),
    .watches = {&net.watches, &net.watches},
};

/** Empties the socket. @return whether there was anything, or -errno if it is of no use any more */
static int drain(int fd)
{
    char start_of_message[64]; /* the rest is cut off */
    int any = 0;
    for (;;) {
        long n = sys_recv(fd, start_of_message, sizeof(start_of_message), MSG_DONTWAIT);
        if (n == -EAGAIN)
            return any;
        if (n < 0 && n != -EINTR && n != -ENOBUFS) /* the last: messages were lost */
            return (int)n;
        any = 1;
    }
}

static bool on_message(struct iw_source *s, uint32_t events)
{
    (void)events;
    int r = drain(s->fd);
    if (r < 0) {
        iw_log(IW_LOG_INFO, "interfaces are no longer watched: %s", strerror(-r));
        iw_source_del(s);
    }
    if (r == 0)
        return false; /* another thread took it */
    lock_get(&net.lock);
    list_for_each (l, &net.watches) {
        struct iw_netwatch *w = container_of(l, struct iw_netwatch, link);
        w->changed(w);
    }
    lock_put(&net.lock);
    return false;
}

/** @return a descriptor, or -errno */
static int subscribe(void)
{
    struct sockaddr_nl groups = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
    };
    int fd = (int)sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return fd;
    fd = iw_fd_high(fd);
    int r = (int)sys_bind(fd, (struct sockaddr *)&groups, sizeof(groups));
    if (r < 0)
        sys_close(fd);
    return r < 0 ? r : fd;
}

static void open_locked(void)
{
    assert_held(&net.lock);
    int fd = subscribe();
    int r = fd < 0 ? -fd : iw_source_add(&net.source, fd, EPOLLIN, on_message);
    if (r)
        iw_log(IW_LOG_INFO, "interfaces cannot be watched: %s", strerror(r));
    if (r && fd >= 0)
        sys_close(fd);
    net.open = !r;
}

void iw_netwatch_add(struct iw_netwatch *w, void (*changed)(struct iw_netwatch *))
{
    lock_get(&net.lock);
    if (!net.open)
        open_locked();
    w->changed = changed;
    list_add_tail(&net.watches, &w->link);
    changed(w);
    lock_put(&net.lock);
}

void iw_netwatch_del(struct iw_netwatch *w)
{
    lock_get(&net.lock);
    list_del(&w->link);
    lock_put(&net.lock);
}

/** The child's own under the same number; none, where nobody watches. */
static void renew_locked(void)
{
    assert_held(&net.lock);
    bool wanted = !list_empty(&net.watches) && iw_fd_is_socket(net.source.fd);
    int fd = wanted ? subscribe() : -1;
    if (fd < 0) {
        iw_source_del(&net.source);
        iw_fd_leave_socket(net.source.fd);
        net.open = false;
    } else {
        sys_dup3(fd, net.source.fd, O_CLOEXEC);
        sys_close(fd);
    }
}

void iw_netwatch_fork(enum fork_step step)
{
    if (step == FORK_CHILD && net.open)
        renew_locked();
    lock_fork(&net.lock, step);
}

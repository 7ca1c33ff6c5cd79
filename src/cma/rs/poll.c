/* SPDX-License-Identifier: BSD-2-Clause */
/* rpoll(), rselect(): level triggered, over sockets of both kinds. */
#include "cma/rs/rs.h"

#include <stdlib.h>

#define FEW 16

struct watch {
    struct rs *rs; /* NULL: a descriptor of the kernel's */
    struct rs_waiter waiter;
};

static short connected_revents(const struct rs *rs, short events)
{
    short found = 0;
    if (rs_can_recv(rs))
        found |= events & (POLLIN | POLLRDNORM);
    if (rs_can_send(rs))
        found |= events & (POLLOUT | POLLWRNORM);
    if (!rs->readable)
        found |= events & POLLRDHUP;
    if (rs->err)
        found |= POLLERR;
    if (rs->hung_up)
        found |= POLLHUP;
    return found;
}

short rs_revents(struct rs *rs, short events)
{
    rs_progress(rs);
    switch (rs->phase) {
    case RS_LISTENING:
        return (short)((rs_accept_ready(rs) ? events & (POLLIN | POLLRDNORM) : 0) |
                       (rs->hung_up ? POLLHUP : 0));
    case RS_CONNECTED:
        return connected_revents(rs, events);
    case RS_FAILED:
        return (short)((events & (POLLIN | POLLOUT)) | POLLOUT | POLLERR | POLLHUP);
    case RS_CONNECTING:
        return 0;
    case RS_CLOSED:
        return POLLNVAL;
    default:
        return POLLHUP;
    }
}

/* @return how many sockets have something */
static int look(struct pollfd *fds, struct watch *watches, nfds_t n)
{
    int found = 0;
    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = watches[i].rs;
        if (!rs)
            continue;
        pthread_mutex_lock(&rs->lock);
        fds[i].revents = rs_revents(rs, fds[i].events);
        pthread_mutex_unlock(&rs->lock);
        found += fds[i].revents != 0;
    }
    return found;
}

static void enlist(struct pollfd *kernel, struct watch *watches, nfds_t n, int wake)
{
    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = watches[i].rs;
        if (!rs)
            continue;
        pthread_mutex_lock(&rs->lock);
        rs_enlist(rs, &watches[i].waiter, wake);
        rs_arm(rs);
        kernel[i].fd = rs->phase == RS_CONNECTED && !rs->disconnected ? rs->comp->fd : -1;
        pthread_mutex_unlock(&rs->lock);
    }
}

static void delist(struct watch *watches, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++) {
        struct rs *rs = watches[i].rs;
        if (!rs)
            continue;
        pthread_mutex_lock(&rs->lock);
        rs_delist(rs, &watches[i].waiter);
        pthread_mutex_unlock(&rs->lock);
    }
}

/* Sleeps at most @p ms. @return how many of the kernel's descriptors have something, or -errno */
static int nap(struct pollfd *fds, struct pollfd *kernel, const struct watch *watches, nfds_t n,
               int ms)
{
    int r = ms && rs_is_interrupted() ? -EINTR : rs_sleep(kernel, n + 1, ms), found = 0;
    if (r < 0)
        return r;
    for (nfds_t i = 0; i < n; i++) {
        if (watches[i].rs)
            continue;
        fds[i].revents = kernel[i].revents;
        found += fds[i].revents != 0;
    }
    return found;
}

static bool has_changed(const struct rs_version *v)
{
    return v && atomic_load(v->now) != v->seen;
}

static int wait_for(struct pollfd *fds, struct pollfd *kernel, struct watch *watches, nfds_t n,
                    int timeout, const struct rs_version *v)
{
    uint64_t start = rs_now_us(), end = start + (uint64_t)(timeout < 0 ? 0 : timeout) * 1000;
    uint64_t spun = start + rs_config()->polling_us;
    int found;
    while ((found = look(fds, watches, n)) == 0 && rs_now_us() < spun)
        ;
    int more = nap(fds, kernel, watches, n, 0);
    if (more < 0 || found + more || timeout == 0)
        return more < 0 ? more : found + more;
    int wake = kernel[n].fd = rs_wake_fd();
    for (;;) {
        uint64_t now = rs_now_us();
        if (timeout >= 0 && now >= end)
            return 0;
        int ms = timeout < 0 ? -1 : (int)((end - now + 999) / 1000);
        enlist(kernel, watches, n, wake);
        more = 0;
        found = look(fds, watches, n);
        if (!found)
            more = nap(fds, kernel, watches, n, rs_nap_ms(wake, ms));
        delist(watches, n);
        rs_wake_drain(wake);
        if (!found)
            found = look(fds, watches, n);
        if (more < 0 || found + more || has_changed(v))
            return more < 0 ? more : found + more;
    }
}

int rs_poll(struct pollfd *fds, nfds_t nfds, int timeout, const struct rs_version *v)
{
    struct pollfd few_fds[FEW + 1], *kernel = few_fds;
    struct watch few_watches[FEW], *watches = few_watches;
    if (nfds > FEW) {
        kernel = calloc(nfds + 1, sizeof *kernel);
        watches = calloc(nfds, sizeof *watches);
    }
    int r = -ENOMEM;
    if (kernel && watches) {
        for (nfds_t i = 0; i < nfds; i++) {
            watches[i].rs = rs_hold(fds[i].fd);
            kernel[i] = (struct pollfd){watches[i].rs ? -1 : fds[i].fd,
                                        watches[i].rs ? POLLIN : fds[i].events, 0};
            fds[i].revents = 0;
        }
        kernel[nfds] = (struct pollfd){-1, POLLIN, 0};
        r = wait_for(fds, kernel, watches, nfds, timeout, v);
        for (nfds_t i = 0; i < nfds; i++)
            if (watches[i].rs)
                rs_release(watches[i].rs);
    }
    if (nfds > FEW) {
        free(kernel);
        free(watches);
    }
    return r;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    int r = rs_poll(fds, nfds, timeout, NULL);
    return r < 0 ? rs_fail(-r) : r;
}

static nfds_t from_sets(int n, const fd_set *in, const fd_set *out, const fd_set *except,
                        struct pollfd *fds)
{
    nfds_t count = 0;
    for (int fd = 0; fd < n; fd++) {
        short events = 0;
        if (in && FD_ISSET(fd, in))
            events |= POLLIN;
        if (out && FD_ISSET(fd, out))
            events |= POLLOUT;
        if (events || (except && FD_ISSET(fd, except)))
            fds[count++] = (struct pollfd){
                fd, (short)(events | (except && FD_ISSET(fd, except) ? POLLPRI : 0)), 0};
    }
    return count;
}

static int keep(fd_set *set, const struct pollfd *fds, nfds_t count, short asked, short bits)
{
    int found = 0;
    for (nfds_t i = 0; set && i < count; i++) {
        if (!(fds[i].events & asked) || !FD_ISSET(fds[i].fd, set))
            continue;
        if (fds[i].revents & bits)
            found++;
        else
            FD_CLR(fds[i].fd, set);
    }
    return found;
}

/* As much as an int can say. */
static int milliseconds(const struct timeval *t)
{
    if (!t)
        return -1;
    return t->tv_sec > 2000000 ? 2000000000 : (int)(t->tv_sec * 1000 + (t->tv_usec + 999) / 1000);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
    struct pollfd fds[FD_SETSIZE];
    if (nfds < 0 || nfds > FD_SETSIZE)
        return rs_fail(EINVAL);
    nfds_t count = from_sets(nfds, readfds, writefds, exceptfds, fds);
    int r = rpoll(fds, count, milliseconds(timeout));
    if (r < 0)
        return r;
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].revents & POLLNVAL)
            return rs_fail(EBADF);
    return keep(readfds, fds, count, POLLIN, POLLIN | POLLHUP | POLLERR) +
           keep(writefds, fds, count, POLLOUT, POLLOUT | POLLERR) +
           keep(exceptfds, fds, count, POLLPRI, POLLPRI);
}

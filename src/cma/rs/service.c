/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread: sees what the CM tells of any socket, and the timers of keepalive. Started
 * with the first socket that needs it; it stays.
 */
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <signal.h>
#include <string.h>

#define TIMER  (UINT64_C(1) << 32)
#define EVENTS 32

/* Held while a socket is handled, so that it stays. */
static pthread_mutex_t service_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static int service_epoll = -1, service_error;

void rs_service_lock(void)
{
    pthread_mutex_lock(&service_mutex);
}

void rs_service_unlock(void)
{
    pthread_mutex_unlock(&service_mutex);
}

static void set_timer(struct rs *rs)
{
    uint64_t us = rs_now_us() + (uint64_t)rs->keepalive_s * 1000000;
    sys_timerfd_set(rs->keepalive_timer, us * 1000);
}

static void keep_alive(struct rs *rs)
{
    uint64_t times;
    sys_read(rs->keepalive_timer, &times, sizeof times);
    set_timer(rs);
    rs_progress(rs);
    if (rs->phase != RS_CONNECTED || rs->disconnected || rs->disconnect_posted || !rs->ctrl)
        return;
    rs->ctrl--;
    /* Nothing, written to where writing is allowed: not every adapter takes a key of 0. */
    rs_post_write(rs, RS_WR_CTRL(1), NULL, 0, false, rs->peer.tables.addr, rs->peer.tables.key);
}

static void serve(uint64_t what)
{
    rs_service_lock();
    struct rs *rs = rs_get((int)(uint32_t)what);
    if (rs) {
        pthread_mutex_lock(&rs->lock);
        if (what & TIMER) {
            keep_alive(rs);
        } else {
            rs->watching = false;
            if (rs_step(rs))
                rs_wake_all(rs);
            rs_progress(rs);
        }
        pthread_mutex_unlock(&rs->lock);
    }
    rs_service_unlock();
}

static void *service_main(void *unused)
{
    struct epoll_event events[EVENTS];
    for (;;) {
        long n = sys_wait(service_epoll, events, EVENTS);
        for (long i = 0; i < n; i++)
            serve(events[i].data.u64);
    }
    return unused;
}

static void service_start(void)
{
    sigset_t all, before;
    pthread_t thread;
    long r = sys_epoll_create();
    if (r >= 0) {
        service_epoll = (int)r;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        r = -pthread_create(&thread, NULL, service_main, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0)
            pthread_detach(thread);
    }
    service_error = r < 0 ? (int)-r : 0;
}

int rs_service_add(struct rs *rs)
{
    pthread_mutex_lock(&start_mutex);
    if (!started)
        service_start();
    started = true;
    pthread_mutex_unlock(&start_mutex);
    if (service_error)
        return -service_error;
    struct epoll_event event = {EPOLLIN, {.u64 = (uint32_t)rs->fd}};
    return (int)sys_epoll_ctl(service_epoll, EPOLL_CTL_ADD, rs->fd, &event);
}

void rs_service_watch(struct rs *rs)
{
    struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.u64 = (uint32_t)rs->fd}};
    if (rs->watching)
        return;
    rs_arm(rs);
    sys_epoll_ctl(service_epoll, rs->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, rs->comp->fd, &event);
    rs->watched = rs->watching = true;
}

void rs_service_forked(void)
{
    pthread_mutex_init(&service_mutex, NULL);
    pthread_mutex_init(&start_mutex, NULL);
    if (service_epoll >= 0)
        sys_close(service_epoll);
    service_epoll = -1;
    started = false;
}

void rs_service_remove(struct rs *rs)
{
    if (service_epoll < 0)
        return;
    sys_epoll_ctl(service_epoll, EPOLL_CTL_DEL, rs->fd, NULL);
    if (rs->watched)
        sys_epoll_ctl(service_epoll, EPOLL_CTL_DEL, rs->comp->fd, NULL);
    if (rs->keepalive_timer >= 0)
        sys_epoll_ctl(service_epoll, EPOLL_CTL_DEL, rs->keepalive_timer, NULL);
}

void rs_service_keepalive(struct rs *rs)
{
    bool on = rs->opts & 1U << SO_KEEPALIVE;
    if (rs->phase != RS_CONNECTED || !on || rs->keepalive_s <= 0)
        return;
    if (rs->keepalive_timer < 0) {
        long fd = sys_timerfd();
        if (fd < 0)
            return;
        rs->keepalive_timer = (int)fd;
        struct epoll_event event = {EPOLLIN, {.u64 = TIMER | (uint32_t)rs->fd}};
        sys_epoll_ctl(service_epoll, EPOLL_CTL_ADD, rs->keepalive_timer, &event);
    }
    set_timer(rs);
}

void rs_forget(struct rs *rs)
{
    rs_service_lock();
    rs_service_remove(rs);
    rs_destroy(rs);
    rs_service_unlock();
}

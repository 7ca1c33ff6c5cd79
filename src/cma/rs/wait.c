/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving sockets on, and waiting for that. */
#include "cma/rs/rs.h"

#include "cm/port.h"
#include "common/sys.h"

#include <time.h>

#define NAP_MS 10 /* of a thread that nobody can wake */

void rs_wake(int fd)
{
    uint64_t one = 1;
    sys_write(fd, &one, sizeof one);
}

void rs_wake_drain(int fd)
{
    uint64_t count;
    sys_read(fd, &count, sizeof count);
}

uint64_t rs_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void rs_enlist(struct rs *rs, struct rs_waiter *w, int wake)
{
    w->wake = wake;
    pthread_mutex_lock(&rs->queue_lock);
    list_add_tail(&rs->waiters, &w->link);
    pthread_mutex_unlock(&rs->queue_lock);
}

void rs_delist(struct rs *rs, struct rs_waiter *w)
{
    pthread_mutex_lock(&rs->queue_lock);
    list_del(&w->link);
    pthread_mutex_unlock(&rs->queue_lock);
}

void rs_wake_all(struct rs *rs)
{
    for (struct list *l = rs->waiters.next; l != &rs->waiters; l = l->next)
        rs_wake(container_of(l, struct rs_waiter, link)->wake);
}

void rs_progress(struct rs *rs)
{
    bool any = false;
    if (rs->phase == RS_CONNECTED) {
        any = rs_harvest(rs);
        rs_give_credits(rs);
        if (rs->end_due)
            rs_give_end(rs);
    }
    if (rs->phase == RS_CONNECTING || rs->phase == RS_LISTENING)
        any = rs_step(rs);
    if (any)
        rs_wake_all(rs);
}

void rs_arm(struct rs *rs)
{
    struct ibv_cq *cq;
    void *context;
    int saved = errno;
    if (rs->phase != RS_CONNECTED || rs->disconnected)
        return;
    while (ibv_get_cq_event(rs->comp, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    int r = ibv_req_notify_cq(rs->cq, 0);
    if (r) /* nobody would wake who sleeps now */
        rs_hang_up(rs, r);
    errno = saved;
}

/* Most answers come sooner than a thread can fall asleep. */
static bool spin(struct rs *rs, bool (*ready)(const struct rs *rs))
{
    if (rs->phase != RS_CONNECTED || !rs_config()->polling_us)
        return false;
    uint64_t end = rs_now_us() + rs_config()->polling_us;
    do {
        for (int i = 0; i < 16; i++) {
            rs_progress(rs);
            if (ready(rs))
                return true;
        }
    } while (rs_now_us() < end);
    return false;
}

int rs_nap_ms(int wake, int ms)
{
    return wake < 0 && (ms < 0 || ms > NAP_MS) ? NAP_MS : ms;
}

static int sleep_on(struct rs *rs, int wake, int timeout_ms)
{
    if (timeout_ms < 0 && rs_is_interrupted())
        return -EINTR;
    struct pollfd fds[2] = {{.fd = wake, .events = POLLIN},
                            {.fd = rs->comp ? rs->comp->fd : -1, .events = POLLIN}};
    pthread_mutex_unlock(&rs->lock);
    int r = rs_sleep(fds, 2, rs_nap_ms(wake, timeout_ms));
    pthread_mutex_lock(&rs->lock);
    return r;
}

/* As of the kernel's sockets, whose handlers with SA_RESTART end no call. */
static bool goes_on(int r, bool limited)
{
    int saved = errno;
    bool on =
        r >= 0 || (r == -EINTR && (limited || (!rs_is_interrupted() && iw_eventfd_restarts())));
    errno = saved;
    return on;
}

int rs_wait(struct rs *rs, bool (*ready)(const struct rs *rs), bool nonblock, int timeout_ms)
{
    rs_progress(rs);
    if (ready(rs))
        return 0;
    if (nonblock)
        return -EAGAIN;
    if (spin(rs, ready))
        return 0;
    int wake = rs_wake_fd();
    uint64_t end = rs_now_us() + (uint64_t)timeout_ms * 1000;
    for (;;) {
        struct rs_waiter waiter;
        int left = -1, r = 0;
        if (timeout_ms >= 0) {
            uint64_t now = rs_now_us();
            if (now >= end)
                return -EAGAIN;
            left = (int)((end - now + 999) / 1000);
        }
        rs_enlist(rs, &waiter, wake);
        rs_arm(rs);
        rs_progress(rs);
        bool now = ready(rs);
        if (!now)
            r = sleep_on(rs, wake, left);
        rs_delist(rs, &waiter);
        rs_wake_drain(wake);
        if (now)
            return 0;
        rs_progress(rs);
        if (ready(rs))
            return 0;
        if (!goes_on(r, timeout_ms >= 0))
            return r;
    }
}

int rs_sleep(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    int saved = errno;
    long r = syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &t, NULL, 0);
    if (r < 0)
        r = -errno;
    errno = saved;
    return (int)r;
}

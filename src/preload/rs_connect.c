/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/rs_connect.h"

#include "common/rs_plain.h"
#include "preload/next.h"
#include "preload/rs_epoll.h"
#include "preload/rs_rules.h"
#include "preload/rs_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define PLAIN       64 /* addresses that are remembered */
#define PLAIN_S     60
#define PATIENCE_MS 2000 /* who speaks plain TCP may wait for more */

struct plain {
    struct sockaddr_storage addr;
    socklen_t len;
    time_t until;
};

static pthread_mutex_t plain_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plain plain[PLAIN];
static unsigned plain_next;

/* Another thread may have had the lock. */
static void in_child(void)
{
    pthread_mutex_init(&plain_lock, NULL);
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static bool speaks_plain(const struct pre_socket *s)
{
    bool found = false;
    pthread_mutex_lock(&plain_lock);
    for (int i = 0; i < PLAIN && !found; i++)
        found = plain[i].until > now() && plain[i].len == s->peer_len &&
                memcmp(&plain[i].addr, &s->peer, s->peer_len) == 0;
    pthread_mutex_unlock(&plain_lock);
    return found;
}

static void remember(const struct pre_socket *s)
{
    pthread_mutex_lock(&plain_lock);
    plain[plain_next++ % PLAIN] = (struct plain){s->peer, s->peer_len, now() + PLAIN_S};
    pthread_mutex_unlock(&plain_lock);
}

typedef int address_fn(int, const struct sockaddr *, socklen_t);

/**
 * Connects the number itself. Lock held.
 * @param why  connecting by RDMA failed; 0: it was not tried. Who was refused is not plain TCP.
 * @return as connect(); if it has begun, no number stands for the rsocket any more
 */
static int connect_plain(int fd, struct pre_socket *s, int why)
{
    if (why == ECONNREFUSED || !pre_may_be_plain()) {
        errno = why == ECONNREFUSED ? why : EACCES;
        atomic_store(&s->error, errno);
        atomic_store(&s->state, PRE_FAILED);
        return -1;
    }
    if (s->own_len && atomic_load(&s->refs) == 2) { /* the number and us; the port has to be free */
        rclose(s->rs);
        s->rs = -1;
        NEXT(address_fn *, "bind")(fd, (struct sockaddr *)&s->own, s->own_len);
    }
    int r = NEXT(address_fn *, "connect")(fd, (struct sockaddr *)&s->peer, s->peer_len);
    int err = r < 0 ? errno : 0;
    if (r < 0 && err != EINPROGRESS) {
        atomic_store(&s->error, err);
        atomic_store(&s->state, PRE_FAILED);
    } else {
        if (why)
            remember(s);
        pre_release(s, pre_epoll_plain);
    }
    errno = err;
    return r;
}

/* Lock held. */
static bool settle(int fd, struct pre_socket *s)
{
    struct pollfd p = {s->rs, POLLOUT, 0};
    int err = 0;
    socklen_t len = sizeof err;
    if (atomic_load(&s->state) != PRE_CONNECTING)
        return true;
    if (rpoll(&p, 1, 0) > 0)
        rgetsockopt(s->rs, SOL_SOCKET, SO_ERROR, &err, &len);
    else if (pre_now_ms() < s->until_ms)
        return true;
    else
        err = ETIMEDOUT;
    if (!err) {
        atomic_store(&s->state, PRE_CONNECTED);
        return true;
    }
    connect_plain(fd, s, err);
    return atomic_load(&s->state) == PRE_FAILED;
}

bool pre_settle(int fd, struct pre_socket *s)
{
    if (atomic_load(&s->state) != PRE_CONNECTING)
        return true;
    int saved = errno;
    pthread_mutex_lock(&s->lock);
    bool ours = settle(fd, s);
    pthread_mutex_unlock(&s->lock);
    errno = saved;
    return ours;
}

struct pre_socket *pre_get_settled(int fd)
{
    struct pre_socket *s = pre_get(fd);
    if (!s || pre_settle(fd, s))
        return s;
    pre_put(s);
    return NULL;
}

/* As rconnect(), but for ever is not as long. SO_SNDTIMEO ends the call, not the attempt. */
static int connect_rdma(const struct pre_socket *s)
{
    struct pollfd p = {s->rs, POLLOUT, 0};
    int flags = rfcntl(s->rs, F_GETFL), limit = atomic_load(&s->send_ms), err = 0;
    bool limited = limit && limit < PATIENCE_MS;
    socklen_t len = sizeof err;
    rfcntl(s->rs, F_SETFL, O_NONBLOCK);
    int r = rconnect(s->rs, (struct sockaddr *)&s->peer, s->peer_len);
    if (flags & O_NONBLOCK)
        return r;
    if (r < 0 && errno == EINPROGRESS) {
        r = rpoll(&p, 1, limited ? limit : PATIENCE_MS);
        if (r > 0)
            rgetsockopt(s->rs, SOL_SOCKET, SO_ERROR, &err, &len);
        errno = r < 0 ? errno : r ? err : limited ? EINPROGRESS : ETIMEDOUT;
        r = r > 0 && !err ? 0 : -1;
    }
    int saved = errno;
    rfcntl(s->rs, F_SETFL, flags);
    errno = saved;
    return r;
}

/* Of SO_SNDTIMEO. Keeps errno. */
static void limit_plain(int fd, int ms)
{
    typedef int set_fn(int, int, int, const void *, socklen_t);
    struct timeval t = {ms / 1000, ms % 1000 * 1000L};
    int saved = errno;
    NEXT(set_fn *, "setsockopt")(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    errno = saved;
}

/* As TCP: who has been told that it failed may connect again. Lock held; keeps errno. */
static void renew(struct pre_socket *s)
{
    int saved = errno, yes = 1;
    if (s->rs < 0) { /* the number itself has its address */
        pre_release(s, pre_epoll_plain);
    } else if (rsetsockopt(s->rs, SOL_RDMA, RS_ANEW, &yes, sizeof yes) == 0) {
        if (s->own_len)
            rbind(s->rs, (struct sockaddr *)&s->own, s->own_len);
        atomic_store(&s->error, 0);
        atomic_store(&s->state, PRE_NEW);
    }
    errno = saved;
}

/* Lock held. */
static int begin(int fd, struct pre_socket *s, const struct sockaddr *addr, socklen_t len)
{
    memcpy(&s->peer, addr, len);
    s->peer_len = len;
    uint64_t start = pre_now_ms();
    int why = 0;
    if (!speaks_plain(s)) {
        s->until_ms = start + PATIENCE_MS;
        atomic_store(&s->state, PRE_CONNECTING);
        if (connect_rdma(s) == 0) {
            atomic_store(&s->state, PRE_CONNECTED);
            return 0;
        }
        why = errno;
        if (why == EINPROGRESS || why == EINTR)
            return -1;
    }
    int ms = atomic_load(&s->send_ms);
    if (ms)
        limit_plain(fd, pre_left(start, ms) + 1); /* 0 is for ever */
    int r = connect_plain(fd, s, why);
    if (ms)
        limit_plain(fd, ms);
    if (atomic_load(&s->state) == PRE_FAILED)
        renew(s);
    return r;
}

static int again(int fd, struct pre_socket *s)
{
    if (!settle(fd, s))
        return 0; /* or in progress, which is told by the next call */
    switch (atomic_load(&s->state)) {
    case PRE_CONNECTED:
        return 0;
    case PRE_CONNECTING:
        errno = EALREADY;
        return -1;
    default:
        errno = atomic_load(&s->error);
        if (!errno) /* SO_ERROR has told it */
            errno = ECONNABORTED;
        renew(s);
        return -1;
    }
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return NEXT(address_fn *, "connect")(fd, addr, len);
    int r = -1;
    pthread_mutex_lock(&s->lock);
    switch (atomic_load(&s->state)) {
    case PRE_NEW:
        if (addr && len >= sizeof(struct sockaddr_in) && len <= sizeof s->peer)
            r = begin(fd, s, addr, len);
        else
            errno = EINVAL;
        break;
    case PRE_CONNECTING:
    case PRE_FAILED:
        r = again(fd, s);
        break;
    default:
        errno = EISCONN;
    }
    pthread_mutex_unlock(&s->lock);
    pre_put(s);
    return r;
}

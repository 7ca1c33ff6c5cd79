/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the program that wait for events, and make progress meanwhile. */
#include "engine/waiter.h"

#include "common/sys.h"
#include "engine/engine.h"
#include "engine/poller.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "env/conf.h"
#include "env/eventfd.h"

#include <pthread.h>

#define MANY_VISITS 64 /* since the last look */
#define LIKELY_ONLY 8  /* wake-ups, of which one asks first which sources are ready */
#define FD_TURNS    4  /* of a spin between two looks at the event descriptor */
#define CM_SPINS    4  /* a connection's events take several round trips */

/** What this thread finds hot, whatever it waits for; the address names the thread, too. */
static __thread struct iw_poller waiter;

/** What it waits for, and whether it came upon that by itself. */
static __thread int awaited = -1;
static __thread bool heard;

/** The source that is likely to bring it, 0: none; and how often that was run. */
static __thread uint64_t likely;
static __thread unsigned runs;

bool iw_engine_hears(int fd)
{
    heard |= fd == awaited;
    iw_engine_tell();
    return fd == awaited;
}

/** Who came last leads. @return whether waiters come so often that the engine's thread leaves the
 * sockets to them */
static bool enter(struct iw_shard *s)
{
    lock_get(&iw_engine.lock);
    atomic_store(&s->leader, &waiter);
    iw_engine_watch_locked(s);
    bool often = s->visited;
    lock_put(&iw_engine.lock);
    return often;
}

/** Who comes back soon leaves the sockets off: the thread looks whether that is so. */
static void leave(void *arg)
{
    struct iw_shard *s = arg;
    awaited = -1;
    lock_get(&iw_engine.lock);
    if (atomic_load(&s->leader) == &waiter)
        atomic_store(&s->leader, NULL);
    iw_engine_watch_locked(s);
    bool often = ++s->visits == MANY_VISITS && !s->visited;
    lock_put(&iw_engine.lock);
    if (often)
        iw_engine_kick();
}

static bool leads(const struct iw_shard *s)
{
    return atomic_load(&s->leader) == &waiter;
}

/** Passes until an event may be due or the time is up. @return whether one may be */
static bool spin(struct iw_shard *s, int fd)
{
    unsigned us = iw_conf()->spin_us;
    if (us == 0)
        return false;
    uint64_t end = iw_now() + us * 1000u;
    unsigned turns = 0;
    do {
        if (iw_engine_progress(s, &waiter) || heard ||
            (turns++ % FD_TURNS == 0 && sys_wait_fd(fd, 0) > 0))
            return true;
    } while (iw_now() < end);
    return false;
}

/**
 * Waits for @p fd, or for @p sockets, too, if that is not -1; the cancellation point.
 * @return 1 if fd is readable, 0 if not, -EINTR, or -EBADF: the program has closed one
 */
static int wait_either(int fd, int sockets)
{
    int state;
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = sockets, .events = POLLIN}};
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    int n = ppoll(p, sockets < 0 ? 1 : 2, NULL, NULL);
    int error = n < 0 ? errno : 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (error == EINTR && !iw_eventfd_restarts())
        return -EINTR;
    if (n > 0 && ((p[0].revents | p[1].revents) & POLLNVAL))
        return -EBADF;
    return n > 0 && p[0].revents;
}

/** The source that alone was ready the last time, ahead of asking which are. @return whether it had
 * what this thread waits for */
static bool run_likely(void)
{
    if (!likely || ++runs % LIKELY_ONLY == 0)
        return false;
    if (!iw_source_run(likely, 0, 0))
        likely = 0;
    return heard;
}

/** @return whether bytes moved */
static bool run_ready(struct iw_shard *s)
{
    struct iw_found f = iw_engine_run_ready(s, 0);
    likely = iw_found_alone(&f);
    return f.moved;
}

/**
 * Leads for as long as nobody else comes, and then leaves the sockets to that one.
 * @param often  what epoll has to tell of the likely source may wait for this thread's next call
 */
static int block_passes(struct iw_shard *s, int fd, bool often)
{
    int r = 0;
    while (!heard && (r = wait_either(fd, leads(s) ? s->sockets : -1)) == 0)
        if (leads(s) && ((often && run_likely()) || run_ready(s)))
            break;
    return r < 0 ? r : 0;
}

static int wait_on_sockets(int fd)
{
    struct iw_shard *s = iw_shard_own();
    int r;
    bool often = enter(s);
    pthread_cleanup_push(leave, s);
    r = spin(s, fd) ? 0 : block_passes(s, fd, often);
    pthread_cleanup_pop(1);
    return r;
}

int iw_engine_wait(int fd)
{
    int r = iw_engine_start();
    if (r)
        return -r;
    int state, saved = errno;
    iw_engine_arm(NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    heard = false;
    awaited = fd;
    r = wait_on_sockets(fd);
    pthread_setcancelstate(state, &state);
    errno = saved;
    return r;
}

/** Whoever waits for the events of connections polls, and keeps its lease from one to the next. */
static struct iw_poller cm_poller;

int iw_cm_wait(int fd)
{
    int state;
    bool ready = false;
    uint64_t end = iw_now() + iw_conf()->spin_us * (1000u * CM_SPINS);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    for (unsigned turns = 0; !ready && iw_now() < end; turns++) {
        iw_engine_polled(&cm_poller);
        iw_engine_give_way();
        iw_engine_poll_in(&iw_shards[0], &cm_poller); /* where sockets are at first */
        ready = turns % FD_TURNS == 0 && sys_wait_fd(fd, 0) > 0;
    }
    if (!ready)
        iw_engine_arm(&cm_poller);
    pthread_setcancelstate(state, &state);
    int r = iw_engine_start(); /* without its thread there would be no event */
    return ready ? 0 : r ? -r : iw_eventfd_wait(fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/engine_internal.h"

#include "common/lock.h"
#include "common/sys.h"
#include "rnic/conf.h"
#include "rnic/iwcm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define PASS_EVENTS 32
#define LEASE_RUN   8 /* empty polls in a row that show a program that keeps polling */
#define PARK_MIN_NS 100000
#define PARK_MAX_NS 1000000

static struct {
    struct lock lock;
    bool started;
    int sockets;        /* epoll set of all sources */
    int wait_set;       /* the thread's: sockets (if watched) and kick */
    int kick;           /* eventfd, readable while kicked */
    atomic_bool kicked; /* a write to kick is due, or done and not read */
    bool watched;       /* sockets is switched on in wait_set; under lock */
    unsigned getters;   /* threads blocked on the sockets; under lock */
    pthread_t thread;
    struct iw_dirty *_Atomic dirty;
    atomic_uint dirty_runs; /* threads that are at it */
    atomic_bool frozen;
    _Alignas(64) atomic_uint polls; /* moved by pollers, plain stores */
    _Alignas(64) atomic_bool leased;
} engine = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

int iw_engine_sockets(void)
{
    return engine.sockets;
}

bool iw_engine_frozen(void)
{
    return atomic_load(&engine.frozen);
}

void iw_engine_kick(void)
{
    if (__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE) &&
        !atomic_exchange(&engine.kicked, true))
        iw_eventfd_raise(engine.kick);
}

/* ---- dirty work ---- */

void iw_dirty_push(struct iw_dirty *d)
{
    if (atomic_exchange_explicit(&d->queued, true, memory_order_acq_rel))
        return;
    struct iw_dirty *head = atomic_load_explicit(&engine.dirty, memory_order_relaxed);
    do
        d->next = head;
    while (!atomic_compare_exchange_weak(&engine.dirty, &head, d));
    /* With the lease gone meanwhile the thread may sleep for ever. */
    if (!atomic_load(&engine.leased))
        iw_engine_kick();
}

static bool dirty_any(void)
{
    return atomic_load(&engine.dirty) != NULL;
}

static void dirty_run(void)
{
    if (!dirty_any())
        return;
    atomic_fetch_add(&engine.dirty_runs, 1);
    struct iw_dirty *d = NULL;
    if (!iw_engine_frozen())
        d = atomic_exchange_explicit(&engine.dirty, NULL, memory_order_acquire);
    while (d) {
        struct iw_dirty *next = d->next;
        atomic_fetch_add(&d->running, 1);
        atomic_store(&d->queued, false);
        d->run(d);
        atomic_fetch_sub(&d->running, 1);
        d = next;
    }
    atomic_fetch_sub(&engine.dirty_runs, 1);
}

void iw_dirty_wait(struct iw_dirty *d)
{
    while (atomic_load(&d->queued) || atomic_load(&d->running)) {
        dirty_run();
        sched_yield();
    }
}

/* ---- passes ---- */

/** Runs every source that is ready now. @return how many were */
static int pass(void)
{
    struct epoll_event ev[PASS_EVENTS];
    long n = sys_epoll_look(engine.sockets, ev, PASS_EVENTS);
    for (long i = 0; i < n; i++)
        iw_source_run(&ev[i]);
    return n > 0 ? (int)n : 0;
}

bool iw_engine_leased(void)
{
    return atomic_load(&engine.leased);
}

void iw_engine_poll(unsigned empty_run)
{
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    if (empty_run >= LEASE_RUN)
        atomic_store_explicit(&engine.polls,
                              atomic_load_explicit(&engine.polls, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    dirty_run();
    pass();
}

void iw_engine_poll_within(int64_t ns)
{
    int state;
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    sys_wait_fd(engine.sockets, ns);
    pthread_setcancelstate(state, NULL);
    iw_engine_poll(0);
}

void iw_engine_arm(void)
{
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    dirty_run();
    if (atomic_exchange(&engine.leased, false))
        iw_engine_kick();
}

/* ---- the switch, and blocked getters ---- */

static void watch_locked(void)
{
    assert_held(&engine.lock);
    bool on = engine.getters == 0 && !atomic_load(&engine.leased);
    if (on == engine.watched)
        return;
    engine.watched = on;
    struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.fd = engine.sockets};
    sys_epoll_ctl(engine.wait_set, EPOLL_CTL_MOD, engine.sockets, &ev);
}

static void getter_count(int by)
{
    lock_get(&engine.lock);
    engine.getters += by;
    watch_locked();
    lock_put(&engine.lock);
}

static void getter_leave(void *arg)
{
    (void)arg;
    getter_count(-1);
}

/** Passes until an event is due or the time is up. @return whether @p fd is readable */
static bool spin(int fd)
{
    unsigned us = iw_conf()->spin_us;
    if (us == 0)
        return sys_wait_fd(fd, 0) > 0;
    uint64_t end = iw_now() + us * 1000u;
    unsigned turns = 0;
    do {
        if ((pass() || turns++ % 8 == 0) && sys_wait_fd(fd, 0) > 0)
            return true;
    } while (iw_now() < end);
    return false;
}

/**
 * Waits for @p fd or the sockets; the cancellation point.
 * @return 1 if fd is readable, 0 if not, -EINTR
 */
static int wait_either(int fd)
{
    int state;
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = engine.sockets, .events = POLLIN}};
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    int n = ppoll(p, 2, NULL, NULL);
    int error = n < 0 ? errno : 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (error == EINTR && !iw_eventfd_restarts())
        return -EINTR;
    return n > 0 && p[0].revents;
}

static int block_passes(int fd)
{
    int r;
    while ((r = wait_either(fd)) == 0)
        pass();
    return r < 0 ? r : 0;
}

static int block(int fd)
{
    int r;
    getter_count(1);
    pthread_cleanup_push(getter_leave, NULL);
    r = block_passes(fd);
    pthread_cleanup_pop(1);
    return r;
}

int iw_engine_wait(int fd)
{
    int r = iw_engine_start();
    if (r)
        return -r;
    int state, saved = errno;
    iw_engine_arm();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    r = spin(fd) ? 0 : block(fd);
    pthread_setcancelstate(state, &state);
    errno = saved;
    return r;
}

/* ---- the thread ---- */

/** Whether pollers were at it since the last look. */
static bool lease_renewed(unsigned *seen)
{
    unsigned now = atomic_load_explicit(&engine.polls, memory_order_relaxed);
    bool moved = now != *seen;
    *seen = now;
    return moved;
}

/** Each time that kicked is set has its one write: it is read before kicked can be set again. */
static void take_kick(void)
{
    if (!atomic_load(&engine.kicked))
        return;
    iw_eventfd_drain(engine.kick);
    atomic_exchange(&engine.kicked, false);
}

static void *engine_main(void *arg)
{
    (void)arg;
    unsigned seen = 0;
    int64_t park = PARK_MIN_NS;
    bool was_ready = false;

    pthread_setname_np(pthread_self(), "anywarp");
    for (;;) {
        take_kick();
        int64_t rest = iw_timers_run();
        bool leased = lease_renewed(&seen);
        bool ready = leased && sys_wait_fd(engine.sockets, 0) > 0;
        if (ready && was_ready)
            leased = false; /* the pollers do not keep up */
        was_ready = ready;
        lock_get(&engine.lock);
        atomic_store(&engine.leased, leased);
        watch_locked();
        lock_put(&engine.lock);
        if (!leased) {
            dirty_run();
            if (ready)
                pass();
            park = PARK_MIN_NS;
        } else {
            park = ready || dirty_any() ? PARK_MIN_NS : park < PARK_MAX_NS ? park * 2 : PARK_MAX_NS;
            if (rest < 0 || rest > park)
                rest = park;
        }
        if (sys_wait_fd(engine.wait_set, rest) > 0 && !leased)
            pass();
        else if (leased)
            dirty_run();
    }
    return NULL;
}

static int thread_start(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&engine.thread, NULL, engine_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

static int engine_make_locked(void)
{
    assert_held(&engine.lock);
    long sockets = sys_epoll_create();
    long wait_set = sys_epoll_create();
    int kick = iw_eventfd_create();
    int r = sockets < 0 ? -sockets : wait_set < 0 ? -wait_set : kick < 0 ? -kick : 0;
    if (!r) {
        engine.sockets = (int)sockets;
        engine.wait_set = (int)wait_set;
        engine.kick = kick;
        struct epoll_event on = {.events = EPOLLIN, .data.fd = engine.sockets};
        struct epoll_event k = {.events = EPOLLIN, .data.fd = engine.kick};
        r = -sys_epoll_ctl(engine.wait_set, EPOLL_CTL_ADD, engine.sockets, &on);
        if (!r)
            r = -sys_epoll_ctl(engine.wait_set, EPOLL_CTL_ADD, engine.kick, &k);
        engine.watched = true;
        iw_sources_restore(); /* what a child of fork() inherited */
    }
    if (!r)
        r = thread_start();
    if (r) {
        if (sockets >= 0)
            sys_close((int)sockets);
        if (wait_set >= 0)
            sys_close((int)wait_set);
        if (kick >= 0)
            iw_eventfd_close(kick);
    }
    return r;
}

int iw_engine_start(void)
{
    if (__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return 0;
    int r = 0;
    lock_get(&engine.lock);
    if (!engine.started) {
        r = engine_make_locked();
        if (!r)
            __atomic_store_n(&engine.started, true, __ATOMIC_RELEASE);
    }
    lock_put(&engine.lock);
    return r;
}

/* ---- fork ---- */

void iw_engine_freeze(void)
{
    atomic_store(&engine.frozen, true);
    while (atomic_load(&engine.dirty_runs))
        sched_yield();
    iw_sources_wait();
    iw_timers_wait();
}

void iw_engine_thaw(void)
{
    atomic_store(&engine.frozen, false);
    iw_engine_kick();
}

/** The epoll sets are shared with the parent and must not be changed; the thread is not there. */
static void forget_parent_locked(void)
{
    assert_held(&engine.lock);
    sys_close(engine.sockets);
    sys_close(engine.wait_set);
    iw_eventfd_close(engine.kick);
    engine.sockets = engine.wait_set = engine.kick = -1;
    engine.getters = 0;
    atomic_store(&engine.kicked, false);
    atomic_store(&engine.leased, false);
    atomic_store(&engine.dirty, NULL);
    atomic_store(&engine.dirty_runs, 0);
    __atomic_store_n(&engine.started, false, __ATOMIC_RELEASE);
}

void iw_engine_fork(enum fork_step step)
{
    if (step == FORK_CHILD && engine.started)
        forget_parent_locked();
    lock_fork(&engine.lock, step);
}

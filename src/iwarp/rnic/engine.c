/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/engine_internal.h"

#include "common/lock.h"
#include "common/sys.h"
#include "rnic/conf.h"
#include "rnic/iwcm.h"

#include <pthread.h>
#include <signal.h>

#define PASS_EVENTS  32
#define LEASE_RUN    64 /* polls without an arm that show a program that keeps polling */
#define WATCH_PASSES 4  /* between two looks make it needless to watch the sockets */
#define PARK_PASSES  8  /* between two looks let the next one be later */
#define PARK_MIN_NS  100000
#define PARK_MAX_NS  1000000
#define LEASE_NS     1000000 /* without a poll, then the lease ends */
#define FD_TURNS     4       /* of a spin between two looks at the event descriptor */
#define CM_SPINS     4       /* a connection's events take several round trips */
#define HOT_TRIES    64      /* without a byte, then a hot source is hot no more */
#define HOT_ONLY     8       /* passes, of which one looks at all sources */
#define IDLE_PASSES  1024    /* without a ready source, then only some look */
#define IDLE_LOOKS   4       /* one of so many */

static struct {
    struct lock lock;
    bool started;
    int sockets;        /* epoll set of all sources */
    int wait_set;       /* the thread's: sockets (if watched), kick and clock */
    int kick;           /* eventfd, readable while kicked */
    atomic_int clock;   /* timerfd, readable when a timer is due; -1: not made yet */
    atomic_bool kicked; /* a write to kick is due, or done and not read */
    bool watched;       /* sockets is switched on in wait_set; under lock */
    bool relieved;      /* pollers run the sockets often enough; under lock */
    unsigned getters;   /* threads that wait on the sockets; under lock */
    pthread_t thread;
    atomic_bool frozen;
    /* Hints between pollers and the thread. Pollers store only what changes something, so that
     * many of them share the line. */
    _Alignas(64) atomic_uint polls; /* since the last look, saturated */
    atomic_uint passes;             /* of them on an empty CQ, saturated */
    atomic_bool leased;
    atomic_bool deferring; /* dirty work was left to pollers since the last look */
    atomic_bool near;      /* the next look is at most PARK_MIN_NS away */
} engine = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER}, .clock = -1};

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

bool iw_engine_wake_at(uint64_t ns)
{
    int clock = atomic_load(&engine.clock);
    return clock >= 0 && sys_timerfd_set(clock, ns) == 0;
}

/* ---- passes ---- */

/** What a pass found: how many sources were ready, and the last of them that moved bytes. */
struct found {
    long ready;
    uint64_t moved;
};

/** Runs every source that is ready now. */
static struct found pass(void)
{
    struct epoll_event ev[PASS_EVENTS];
    struct found f = {.ready = sys_epoll_look(engine.sockets, ev, PASS_EVENTS)};
    for (long i = 0; i < f.ready; i++)
        if (iw_source_run(ev[i].data.u64, ev[i].events))
            f.moved = ev[i].data.u64;
    return f;
}

static uint32_t get(const _Atomic uint32_t *hint)
{
    return atomic_load_explicit(hint, memory_order_relaxed);
}

static void put(_Atomic uint32_t *hint, uint32_t value)
{
    atomic_store_explicit(hint, value, memory_order_relaxed);
}

static void count(atomic_uint *n)
{
    uint32_t now = get(n);
    if (now < PARK_PASSES)
        put(n, now + 1);
}

static void set(atomic_bool *flag)
{
    if (!atomic_load_explicit(flag, memory_order_relaxed))
        atomic_store(flag, true);
}

/** Runs the source that had something at the last poll. @return whether the others may wait */
static bool run_hot(struct iw_poller *p, uint32_t turn, bool *moved)
{
    uint32_t tries = get(&p->tries);
    *moved = false;
    if (tries == 0)
        return false;
    *moved = iw_source_run(atomic_load_explicit(&p->hot, memory_order_relaxed), 0);
    put(&p->tries, *moved ? HOT_TRIES : tries - 1);
    return turn % HOT_ONLY;
}

/** A source is hot that alone was ready. */
static void find_hot(struct iw_poller *p, const struct found *f)
{
    if (f->ready <= 0 || (f->ready == 1 && !f->moved))
        return;
    atomic_store_explicit(&p->hot, f->moved, memory_order_relaxed);
    put(&p->tries, f->ready == 1 ? HOT_TRIES : 0);
}

void iw_engine_polled(struct iw_poller *p)
{
    count(&engine.polls);
    if (atomic_load_explicit(&engine.leased, memory_order_relaxed))
        return;
    uint32_t run = get(&p->run) + 1;
    put(&p->run, run < LEASE_RUN ? run : 0);
    if (run == LEASE_RUN)
        iw_engine_kick();
}

/** Does what is dirty and what is ready, or some of it. @return whether bytes moved, mostly */
static bool progress(struct iw_poller *p)
{
    uint32_t turn = get(&p->passes) + 1, idle = get(&p->idle);
    bool moved;
    put(&p->passes, turn);
    iw_dirty_run();
    if (run_hot(p, turn, &moved))
        return moved;
    if (idle >= IDLE_PASSES && turn % IDLE_LOOKS)
        return moved;
    struct found f = pass();
    find_hot(p, &f);
    put(&p->idle, f.ready > 0 ? 0 : idle + 1);
    return moved || f.moved;
}

void iw_engine_poll(struct iw_poller *p)
{
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    count(&engine.passes);
    progress(p);
}

void iw_engine_pass(void)
{
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    iw_dirty_run();
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
    iw_engine_pass();
}

/* ---- the lease ---- */

static __thread bool is_engine;

bool iw_engine_leased(void)
{
    return atomic_load_explicit(&engine.leased, memory_order_relaxed) && !is_engine;
}

void iw_engine_look_soon(void)
{
    set(&engine.deferring);
    /* With the lease gone meanwhile the thread may sleep for ever. */
    if (!atomic_load(&engine.leased) || !atomic_load(&engine.near))
        iw_engine_kick();
}

void iw_engine_arm(struct iw_poller *p)
{
    if (!__atomic_load_n(&engine.started, __ATOMIC_ACQUIRE))
        return;
    if (p)
        put(&p->run, 0);
    iw_dirty_run();
    put(&engine.polls, 0);
    if (atomic_load(&engine.leased) && atomic_exchange(&engine.leased, false))
        iw_engine_kick();
}

/* ---- the switch, and blocked getters ---- */

static void watch_locked(void)
{
    assert_held(&engine.lock);
    bool on = engine.getters == 0 && !engine.relieved;
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

/** Whoever spins or sleeps for events, one after the other, finds the same source hot. */
static __thread struct iw_poller waiter;

/** Passes until an event may be due or the time is up. @return whether one may be */
static bool spin(int fd)
{
    unsigned us = iw_conf()->spin_us;
    if (us == 0)
        return sys_wait_fd(fd, 0) > 0;
    uint64_t end = iw_now() + us * 1000u;
    unsigned turns = 0;
    do {
        if (progress(&waiter) || (turns++ % FD_TURNS == 0 && sys_wait_fd(fd, 0) > 0))
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
        if (pass().moved)
            break;
    return r < 0 ? r : 0;
}

static int wait_on_sockets(int fd)
{
    int r;
    getter_count(1);
    pthread_cleanup_push(getter_leave, NULL);
    r = spin(fd) ? 0 : block_passes(fd);
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
        iw_engine_poll(&cm_poller);
        ready = turns % FD_TURNS == 0 && sys_wait_fd(fd, 0) > 0;
    }
    if (!ready)
        iw_engine_arm(&cm_poller);
    pthread_setcancelstate(state, &state);
    return ready ? 0 : iw_eventfd_wait(fd);
}

/* ---- the thread ---- */

/** Each time that kicked is set has its one write: it is read before kicked can be set again. */
static void take_kick(void)
{
    if (!atomic_load(&engine.kicked))
        return;
    iw_eventfd_drain(engine.kick);
    atomic_exchange(&engine.kicked, false);
}

/** What the thread knows of pollers. Times are of iw_now(). */
struct watch {
    int64_t park;    /* ns from one look to the next, while leased */
    uint64_t look;   /* when the next is due */
    uint64_t polled; /* the last look that found a poll */
};

/** Judges by what pollers did since the last look whether they hold a lease. */
static void look(struct watch *w, uint64_t now)
{
    unsigned polls = atomic_exchange(&engine.polls, 0), passes = atomic_exchange(&engine.passes, 0);
    bool busy = atomic_exchange(&engine.deferring, false) || passes < PARK_PASSES;
    lock_get(&engine.lock);
    bool leased =
        atomic_load(&engine.leased) ? polls || now - w->polled < LEASE_NS : polls == PARK_PASSES;
    if (polls)
        w->polled = now;
    w->park = busy ? PARK_MIN_NS : w->park < PARK_MAX_NS ? w->park * 2 : PARK_MAX_NS;
    w->look = now + (uint64_t)w->park;
    engine.relieved = leased && passes >= WATCH_PASSES;
    atomic_store(&engine.near, w->park == PARK_MIN_NS);
    atomic_store(&engine.leased, leased);
    watch_locked();
    lock_put(&engine.lock);
    if (!leased || passes == 0)
        iw_dirty_run();
}

/** @return ns until the thread has to look again, -1: when it is kicked or a socket is ready */
static int64_t watch_pollers(struct watch *w)
{
    uint64_t now = iw_now();
    if (!atomic_load(&engine.leased) || now >= w->look) {
        look(w, now);
    } else if (atomic_load(&engine.deferring) && w->look - now > PARK_MIN_NS) {
        w->look = now + PARK_MIN_NS;
        atomic_store(&engine.near, true);
    }
    return atomic_load(&engine.leased) ? (int64_t)(w->look - now) : -1;
}

static void *engine_main(void *arg)
{
    struct watch w = {.park = PARK_MIN_NS};
    (void)arg;

    is_engine = true;
    pthread_setname_np(pthread_self(), "anywarp");
    for (;;) {
        take_kick();
        iw_timers_run();
        if (sys_wait_fd(engine.wait_set, watch_pollers(&w)) > 0)
            pass();
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

static void close_descriptors_locked(void)
{
    assert_held(&engine.lock);
    iw_eventfd_close(engine.kick);
    sys_close(engine.sockets);
    sys_close(engine.wait_set);
    sys_close(engine.clock);
    engine.sockets = engine.wait_set = engine.kick = engine.clock = -1;
}

static int engine_make_locked(void)
{
    assert_held(&engine.lock);
    long fds[] = {sys_epoll_create(), sys_epoll_create(), iw_eventfd_create(), sys_timerfd()};
    int r = 0;
    for (int i = 0; i < 4; i++)
        r = fds[i] < 0 ? (int)-fds[i] : r;
    engine.sockets = (int)fds[0];
    engine.wait_set = (int)fds[1];
    engine.kick = (int)fds[2];
    engine.clock = (int)fds[3];
    const int waited_for[] = {engine.sockets, engine.kick, engine.clock};
    for (int i = 0; i < 3 && !r; i++) {
        struct epoll_event on = {.events = EPOLLIN, .data.fd = waited_for[i]};
        r = (int)-sys_epoll_ctl(engine.wait_set, EPOLL_CTL_ADD, waited_for[i], &on);
    }
    if (!r) {
        engine.watched = true;
        iw_sources_restore(); /* what a child of fork() inherited */
        r = thread_start();
    }
    if (r)
        close_descriptors_locked();
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
    iw_dirty_wait_all();
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
    close_descriptors_locked();
    engine.getters = 0;
    atomic_store(&engine.kicked, false);
    atomic_store(&engine.leased, false);
    engine.relieved = false;
    iw_dirty_forget();
    __atomic_store_n(&engine.started, false, __ATOMIC_RELEASE);
}

void iw_engine_fork(enum fork_step step)
{
    if (step == FORK_CHILD && engine.started)
        forget_parent_locked();
    lock_fork(&engine.lock, step);
}

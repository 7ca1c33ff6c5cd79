/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include "common/sys.h"
#include "engine/deferred.h"
#include "engine/poller.h"
#include "engine/presence.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "env/eventfd.h"
#include "env/fd.h"
#include "env/log.h"

#include <signal.h>
#include <string.h>

#define WATCH_PASSES 4 /* between two looks make it needless to watch the sockets */
#define WATCH_VISITS 4 /* of getters, too */
#define PARK_MIN_NS  100000
#define PARK_MAX_NS  1000000
#define LEASE_NS     4000000 /* without a poll or post, then the lease ends */

struct iw_engine iw_engine = {.lock = LOCK(LOCK_ENGINE), .clock = -1};

static __thread bool is_engine;

void iw_engine_kick(void)
{
    if (__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE) &&
        !atomic_exchange(&iw_engine.kicked, true))
        iw_eventfd_raise(iw_engine.kick);
}

bool iw_engine_wake_at(uint64_t ns)
{
    int clock = atomic_load(&iw_engine.clock);
    return clock >= 0 && sys_timerfd_set(clock, ns) == 0;
}

/* ---- what it waits for ---- */

void iw_engine_watch_locked(void)
{
    assert_held(&iw_engine.lock);
    bool on = !atomic_load(&iw_engine.leader) && !iw_engine.visited && !iw_engine.relieved;
    if (on == iw_engine.watched)
        return;
    iw_engine.watched = on;
    struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.fd = iw_engine.sockets};
    sys_epoll_ctl(iw_engine.wait_set, EPOLL_CTL_MOD, iw_engine.sockets, &ev);
}

bool iw_engine_is_thread(void)
{
    return is_engine;
}

bool iw_engine_leased(void)
{
    /* Behind what the caller has stored: who ends the lease afterwards sees that, as in adopt.c. */
    return atomic_load(&iw_engine.leased) && !is_engine;
}

/* ---- the thread ---- */

/** Each time that kicked is set has its one write: it is read before kicked can be set again. */
static void take_kick(void)
{
    if (!atomic_load(&iw_engine.kicked))
        return;
    iw_eventfd_drain(iw_engine.kick);
    atomic_exchange(&iw_engine.kicked, false);
}

/** What the thread knows of pollers. Times are of iw_now(). */
struct watch {
    int64_t park;    /* ns from one look to the next, while leased */
    uint64_t look;   /* when the next is due */
    uint64_t set;    /* what the timer is set to, 0: it is not */
    uint64_t called; /* the last look that found a poll or a post */
    uint64_t served; /* the last look that found a pass, or served the dirty stack itself */
    bool visited;    /* iw_engine.visited, which only the thread changes */
    uint64_t visits; /* when the getters are counted, while they leave the sockets off */
};

/** Judges whether getters come back so soon that the sockets stay off between them. */
static void look_at_visits_locked(struct watch *w, uint64_t now)
{
    assert_held(&iw_engine.lock);
    if (iw_engine.visited && now < w->visits)
        return;
    iw_engine.visited = iw_engine.visits >= WATCH_VISITS;
    iw_engine.visits = 0;
    w->visits = now + PARK_MAX_NS;
}

/** Judges by what pollers did since the last look whether they hold a lease. */
static void look(struct watch *w, uint64_t now)
{
    unsigned polls = atomic_exchange(&iw_engine.polls, 0),
             passes = atomic_exchange(&iw_engine.passes, 0),
             sends = atomic_exchange(&iw_engine.sends, 0);
    bool deferring = atomic_exchange(&iw_engine.deferring, false);
    if (polls || sends)
        w->called = now;
    lock_get(&iw_engine.lock);
    bool leased = atomic_load(&iw_engine.leased) && now - w->called < LEASE_NS;
    bool relieved = leased && passes >= WATCH_PASSES;
    /* Who sends in long stretches makes few passes. */
    bool busy = deferring || (passes < IW_ENGINE_MANY && (relieved || !sends));
    look_at_visits_locked(w, now);
    w->park = busy ? PARK_MIN_NS : w->park < PARK_MAX_NS ? w->park * 2 : PARK_MAX_NS;
    w->look = now + (uint64_t)w->park;
    iw_engine.relieved = relieved;
    w->visited = iw_engine.visited;
    atomic_store(&iw_engine.near, w->park == PARK_MIN_NS);
    atomic_store(&iw_engine.leased, leased);
    iw_engine_watch_locked();
    lock_put(&iw_engine.lock);
    if (leased)
        iw_adopted_look();
    else
        iw_adopted_put_back(NULL);
    bool sending = sends && now - w->served < LEASE_NS;
    if (!leased || (passes == 0 && !sending))
        iw_dirty_run();
    if (passes || !sending)
        w->served = now;
}

/** A timer of its own, as a time limit of each wait would cost as much as the wait. */
static void set_timer(struct watch *w)
{
    uint64_t at = atomic_load(&iw_engine.leased) ? w->look : w->visited ? w->visits : 0;
    if (at != w->set)
        sys_timerfd_set(iw_engine.looks, at);
    w->set = at;
}

/** Looks if it is time, and makes sure that the thread wakes for the next one. */
static void watch_pollers(struct watch *w)
{
    uint64_t now = iw_now();
    if (!atomic_load(&iw_engine.leased) || now >= w->look) {
        look(w, now);
    } else if (atomic_load(&iw_engine.deferring) && w->look - now > PARK_MIN_NS) {
        w->look = now + PARK_MIN_NS;
        atomic_store(&iw_engine.near, true);
    }
    set_timer(w);
}

/** The program has closed what it does not know: without descriptors there is nothing to do. */
static void *end(int error)
{
    pthread_detach(pthread_self()); /* nobody waits for it */
    atomic_store(&iw_engine.ended, error);
    iw_log(IW_LOG_WARN,
           "no connection goes on, as the program has closed descriptors that are not its own: %s",
           strerror(error));
    return NULL;
}

static void *engine_main(void *arg)
{
    struct watch w = {.park = PARK_MIN_NS};
    struct epoll_event ev;
    (void)arg;

    is_engine = true;
    pthread_setname_np(pthread_self(), "anywarp");
    for (;;) {
        take_kick();
        iw_timers_run();
        watch_pollers(&w);
        long n = sys_wait(iw_engine.wait_set, &ev, 1, -1);
        if (n > 0)
            iw_engine_run_ready(0);
        else if (n != 0 && n != -EINTR)
            return end((int)-n);
    }
}

/** Signals are the program's threads'; but a fault while they are blocked would kill. */
static int thread_start(void)
{
    sigset_t most, old;
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigdelset(&most, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &most, &old);
    int r = pthread_create(&iw_engine.thread, NULL, engine_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

static void close_descriptors_locked(void)
{
    assert_held(&iw_engine.lock);
    iw_eventfd_close(iw_engine.kick);
    sys_close(iw_engine.sockets);
    sys_close(iw_engine.wait_set);
    sys_close(iw_engine.clock);
    sys_close(iw_engine.looks);
    iw_engine.sockets = iw_engine.wait_set = iw_engine.kick = iw_engine.looks = -1;
    atomic_store(&iw_engine.clock, -1);
}

static int engine_make_locked(void)
{
    assert_held(&iw_engine.lock);
    long fds[] = {sys_epoll_create(), sys_epoll_create(), iw_eventfd_create_hidden(), sys_timerfd(),
                  sys_timerfd()};
    int r = 0;
    for (int i = 0; i < 5; i++) {
        r = fds[i] < 0 ? (int)-fds[i] : r;
        if (fds[i] >= 0 && i != 2) /* an eventfd is where it belongs */
            fds[i] = iw_fd_high((int)fds[i]);
    }
    iw_engine.sockets = (int)fds[0];
    iw_engine.wait_set = (int)fds[1];
    iw_engine.kick = (int)fds[2];
    atomic_store(&iw_engine.clock, (int)fds[3]);
    iw_engine.looks = (int)fds[4];
    const int waited_for[] = {iw_engine.sockets, iw_engine.kick, iw_engine.clock, iw_engine.looks};
    for (int i = 0; i < 4 && !r; i++) {
        struct epoll_event on = {.events = EPOLLIN, .data.fd = waited_for[i]};
        r = (int)-sys_epoll_ctl(iw_engine.wait_set, EPOLL_CTL_ADD, waited_for[i], &on);
    }
    if (!r) {
        iw_engine.watched = true;
        r = iw_sources_restore(); /* what a child of fork() inherited */
        if (!r)
            r = thread_start();
    }
    if (r)
        close_descriptors_locked();
    return r;
}

int iw_engine_start(void)
{
    int r = 0;
    if (__atomic_load_n(&iw_engine.started, __ATOMIC_ACQUIRE))
        return atomic_load(&iw_engine.ended);
    lock_get(&iw_engine.lock);
    if (!iw_engine.started) {
        r = engine_make_locked();
        if (!r)
            __atomic_store_n(&iw_engine.started, true, __ATOMIC_RELEASE);
    }
    lock_put(&iw_engine.lock);
    return r;
}

/* ---- fork ---- */

void iw_engine_freeze(void)
{
    atomic_store(&iw_engine.frozen, true);
    iw_dirty_wait_all();
    iw_sources_wait();
    iw_timers_wait();
}

void iw_engine_thaw(void)
{
    atomic_store(&iw_engine.frozen, false);
    iw_engine_kick();
}

/** The epoll sets are shared with the parent and must not be changed; the thread is not there. */
static void forget_parent_locked(void)
{
    assert_held(&iw_engine.lock);
    close_descriptors_locked();
    atomic_store(&iw_engine.leader, NULL);
    iw_engine.visits = 0;
    iw_engine.visited = false;
    atomic_store(&iw_engine.kicked, false);
    atomic_store(&iw_engine.leased, false);
    iw_engine.relieved = false;
    atomic_store(&iw_engine.ended, 0);
    iw_dirty_forget();
    __atomic_store_n(&iw_engine.started, false, __ATOMIC_RELEASE);
}

void iw_engine_fork(enum fork_step step)
{
    if (step == FORK_CHILD && iw_engine.started)
        forget_parent_locked();
    lock_fork(&iw_engine.lock, step);
}

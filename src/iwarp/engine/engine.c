/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include "common/sys.h"
#include "engine/active.h"
#include "engine/deferred.h"
#include "engine/linger.h"
#include "engine/poller.h"
#include "engine/presence.h"
#include "engine/processors.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "env/conf.h"
#include "env/eventfd.h"
#include "env/fd.h"
#include "env/log.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WATCH_PASSES  4  /* between two looks make it needless to watch the sockets */
#define WATCH_VISITS  4  /* of waiters, too */
#define STEADY_DRAINS 2  /* in PARK_MIN_NS */
#define WAKES         8  /* of the thread at a time, at most */
#define KEPT_LOOKS    64 /* at what is in memory, to one at descriptors */
#define PASSES        8 /* of the thread over a shard that moves bytes, before it looks elsewhere */
#define ALONE         4 /* runs of what alone was ready, before it asks again */
#define PARK_MIN_NS   100000
#define PARK_MAX_NS   1000000
#define LEASE_NS      4000000   /* without a poll or post, then the lease ends */
#define PERIOD_NS     20000000  /* in which each thread that polls does so, mostly */
#define PERIOD_MAX    100000000 /* the engine's thread slept meanwhile: it tells nothing */

struct iw_engine iw_engine = {.lock = LOCK(LOCK_ENGINE), .clock = -1, .all = -1, .period = 1};

static __thread bool is_engine;
static __thread bool occasion; /* to linger: the engine's thread alone sets it, and the next */
static __thread bool keeps;    /* sources that it is to put to rest before it sleeps */

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

static int wait_in(int set, int how, int fd, bool on, uint32_t which)
{
    struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.u32 = which};
    return (int)-sys_epoll_ctl(set, how, fd, &ev);
}

static int wait_for(int how, int fd, bool on, uint32_t which)
{
    return wait_in(iw_engine.wait_set, how, fd, on, which);
}

void iw_engine_watch_locked(struct iw_shard *s)
{
    assert_held(&iw_engine.lock);
    bool on = !atomic_load(&s->leader) && !s->visited && !s->relieved;
    if (on == s->watched)
        return;
    s->watched = on;
    wait_for(EPOLL_CTL_MOD, s->sockets, on, (uint32_t)(s - iw_shards));
}

bool iw_engine_is_thread(void)
{
    return is_engine;
}

bool iw_engine_leased(const struct iw_shard *s)
{
    /* Behind what the caller has stored: who ends the lease afterwards sees that, as in presence.c.
     */
    return atomic_load(&s->leased) && !is_engine;
}

void iw_engine_linger(void)
{
    occasion = is_engine;
}

bool iw_engine_keep(void)
{
    if (occasion)
        keeps = true;
    return occasion;
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

/** Judges whether waiters come back so soon that the sockets stay off between them. */
static void look_at_visits_locked(struct iw_shard *s, uint64_t now)
{
    struct iw_watch *w = &s->watch;
    assert_held(&iw_engine.lock);
    if (s->visited && now < w->visits)
        return;
    s->visited = s->visits >= WATCH_VISITS;
    s->visits = 0;
    w->visits = now + PARK_MAX_NS;
}

/** Whether passes run deferred work twice in 100 us: whoever leaves such work behind is likely to
 * be back before a look, which takes the processor of one that is. */
static bool is_steady(unsigned drains, int64_t park)
{
    int64_t least = STEADY_DRAINS * (park / PARK_MIN_NS);
    return drains >= (least < IW_ENGINE_MANY ? least : IW_ENGINE_MANY);
}

/** Judges by what pollers did since the last look whether they hold a lease. */
static void look(struct iw_shard *s, uint64_t now)
{
    struct iw_watch *w = &s->watch;
    unsigned polls = atomic_exchange(&s->polls, 0), passes = atomic_exchange(&s->passes, 0),
             sends = atomic_exchange(&s->sends, 0);
    bool deferring = atomic_exchange(&s->deferring, false);
    atomic_store_explicit(&s->spared, 0, memory_order_relaxed);
    w->steady = is_steady(atomic_exchange(&s->drains, 0), w->park);
    if (polls || sends)
        w->called = now;
    lock_get(&iw_engine.lock);
    bool leased = atomic_load(&s->leased) && now - w->called < LEASE_NS;
    /* Who sends in long stretches makes few passes, and is there all the same. */
    bool relieved = leased && (passes >= WATCH_PASSES || (passes && sends && s->relieved));
    bool busy = (deferring && !w->steady) || (passes < IW_ENGINE_MANY && !sends);
    look_at_visits_locked(s, now);
    w->park = busy ? PARK_MIN_NS : w->park < PARK_MAX_NS ? w->park * 2 : PARK_MAX_NS;
    w->look = now + (uint64_t)w->park;
    s->relieved = relieved;
    w->visited = s->visited;
    atomic_store(&s->near, w->steady || w->park == PARK_MIN_NS);
    if (!leased) /* it began with a poller, and who has armed meanwhile has ended it */
        atomic_store(&s->leased, false);
    iw_engine_watch_locked(s);
    lock_put(&iw_engine.lock);
    if (leased)
        iw_adopted_check(s);
    else
        iw_adopted_leave(s);
    if (relieved)
        iw_active_check(s, now);
    else if (!keeps)
        iw_active_rest(s);
    bool sending = sends && now - w->served < LEASE_NS;
    if (!leased || (passes == 0 && !sending))
        iw_deferred_run(s);
    if (passes || !sending)
        w->served = now;
}

/** Looks if it is time. @return when the next look is due; 0: it is not */
static uint64_t watch(struct iw_shard *s, uint64_t now)
{
    struct iw_watch *w = &s->watch;
    if (!atomic_load(&s->leased) || now >= w->look)
        look(s, now);
    /* Also during this look: who left something saw a near one. */
    if (!w->steady && atomic_load(&s->deferring) && w->look - now > PARK_MIN_NS) {
        w->look = now + PARK_MIN_NS;
        atomic_store(&s->near, true);
    }
    return atomic_load(&s->leased) ? w->look : w->visited ? w->visits : 0;
}

/** Judges by the threads that polled in a period, when that is over, whether they are too many. */
static void count_pollers(uint64_t now)
{
    static uint64_t since;
    uint64_t time = now - since;
    if (time < PERIOD_NS)
        return;
    unsigned threads = atomic_exchange(&iw_engine.threads, 0);
    since = now;
    atomic_store(&iw_engine.crowded, time < PERIOD_MAX && iw_processors_are_few(threads));
    atomic_fetch_add(&iw_engine.period, 1);
}

/** Looks at all shards, and makes sure that the thread wakes for the next look. */
static void watch_pollers(uint64_t *set)
{
    uint64_t now = iw_now(), first = 0;
    atomic_fetch_add_explicit(&iw_engine.checks, 1, memory_order_relaxed);
    for (unsigned i = 0; i < iw_shard_count(); i++) {
        uint64_t at = watch(&iw_shards[i], now);
        if (at && (!first || at < first))
            first = at;
    }
    count_pollers(now);
    /* A timer of its own, as a time limit of each wait would cost as much as the wait. */
    if (first != *set)
        sys_timerfd_set(iw_engine.looks, first);
    *set = first;
}

/** The two invariants of engine.h, for a thread that is about to sleep. */
static void assert_handed_over(const struct iw_shard *s)
{
#ifdef LOCK_OWNERS
    /* In this order: what a thread undoes behind it, it announces before. */
    bool is_left = atomic_load(&s->top), is_leased = atomic_load(&s->leased),
         comes = atomic_load(&s->between) || atomic_load(&iw_engine.kicked) || iw_engine_frozen();
    assert(!is_left || is_leased || comes);
    lock_get(&iw_engine.lock);
    bool is_served = s->watched || s->visited || atomic_load(&s->leader);
    lock_put(&iw_engine.lock);
    assert(is_served || is_leased || comes);
#else
    (void)s;
#endif
}

/** Runs what it keeps, in all shards. @return whether bytes moved */
static bool run_kept(void)
{
    bool moved = false;
    for (unsigned i = 0; keeps && i < iw_shard_count(); i++)
        if (atomic_load_explicit(&iw_shards[i].actives, memory_order_relaxed))
            moved |= iw_active_poll(&iw_shards[i]);
    return moved;
}

/** Before it sleeps: what it kept is left to pollers where there are some, or else told of again.
 */
static void rest_kept(void)
{
    for (unsigned i = 0; keeps && i < iw_shard_count(); i++)
        if (!iw_shards[i].relieved)
            iw_active_rest(&iw_shards[i]);
    keeps = false;
}

/** @param found  [out] whether anything came @return as sys_wait(), or 0 */
static long look_on(const struct iw_linger *l, struct epoll_event *ev, bool *found)
{
    uint64_t end = iw_now() + l->us * UINT64_C(1000);
    long n;
    do {
        n = sys_epoll_look(iw_engine.wait_set, ev, WAKES);
        *found = n > 0;
        for (int i = 0; i < KEPT_LOOKS && !*found; i++)
            *found = run_kept();
    } while (n == 0 && !*found && iw_now() < end);
    return n;
}

/** Sleeps until there is something to do; first looks on, if the last pass was an occasion. */
static long wait_for_work(struct iw_linger *l, struct epoll_event *ev)
{
    bool lingers = occasion && iw_linger_begin(l), found = false;
    occasion = false;
    long n = lingers ? look_on(l, ev, &found) : 0;
    if (lingers)
        iw_linger_end(l, found);
    if (n || found)
        return n;
    rest_kept();
    return sys_wait(iw_engine.wait_set, ev, WAKES);
}

/** Without its epoll set there is nothing to do: a program may close what it does not know. */
static void *end(int error)
{
    bool closed = error == EBADF || error == EINVAL; /* or it has opened something else there */
    pthread_detach(pthread_self());                  /* nobody waits for it */
    iw_log(IW_LOG_WARN, "no connection goes on, as %s: %s",
           closed ? "the program has closed descriptors that are not its own"
                  : "the kernel refuses to wait for sockets, epoll_pwait()",
           strerror(error));
    atomic_store(&iw_engine.ended, error);
    return NULL;
}

/** Runs what alone was ready again, while bytes come. */
static void run_alone(const struct iw_found *f)
{
    uint64_t alone = iw_found_alone(f);
    for (int i = 0; alone && i < ALONE && !iw_engine_told(); i++)
        if (!iw_source_run(alone, 0, 0))
            break;
}

/** What moves bytes once may do so again: to look costs less than to be woken. */
static void run(struct iw_shard *s)
{
    for (int i = 0; i < PASSES; i++) {
        struct iw_found f = iw_engine_run_ready(s, 0);
        if (!f.moved)
            break;
        run_alone(&f);
        if (iw_engine_told())
            sched_yield(); /* to whom the event woke */
    }
}

static void *engine_main(void *arg)
{
    uint64_t look = 0; /* what the timer of looks is set to; 0: it is not */
    struct epoll_event ev[WAKES];
    struct iw_linger linger;
    (void)arg;

    is_engine = true;
    pthread_setname_np(pthread_self(), "anywarp");
    iw_linger_init(&linger, iw_conf()->spin_us, sysconf(_SC_NPROCESSORS_ONLN));
    for (;;) {
        take_kick();
        iw_timers_run();
        watch_pollers(&look);
        for (unsigned i = 0; i < iw_shard_count(); i++)
            assert_handed_over(&iw_shards[i]);
        long n = wait_for_work(&linger, ev);
        if (n < 0 && n != -EINTR)
            return end((int)-n);
        for (long i = 0; i < n; i++)
            if (ev[i].data.u32 < IW_SHARDS)
                run(&iw_shards[ev[i].data.u32]);
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

/** @return 0 or a positive errno */
static int add_to_all_locked(int all, unsigned i)
{
    assert_held(&iw_engine.lock);
    return wait_in(all, EPOLL_CTL_ADD, iw_shards[i].sockets, true, i);
}

static int make_all_locked(void)
{
    assert_held(&iw_engine.lock);
    long fd = sys_epoll_create();
    if (fd < 0)
        return -1;
    int r = 0, all = iw_fd_high((int)fd);
    for (unsigned i = 0; i < iw_shard_count() && !r; i++)
        r = add_to_all_locked(all, i);
    if (r) {
        sys_close(all);
        return -1;
    }
    atomic_store(&iw_engine.all, all);
    return all;
}

int iw_engine_all(void)
{
    int all = atomic_load_explicit(&iw_engine.all, memory_order_acquire);
    if (all >= 0)
        return all;
    lock_get(&iw_engine.lock);
    all = atomic_load(&iw_engine.all);
    if (all < 0)
        all = make_all_locked();
    lock_put(&iw_engine.lock);
    return all;
}

static int open_shard_locked(struct iw_shard *s)
{
    assert_held(&iw_engine.lock);
    long fd = sys_epoll_create();
    if (fd < 0)
        return (int)-fd;
    s->sockets = iw_fd_high((int)fd);
    s->watched = true;
    s->watch = (struct iw_watch){.park = PARK_MIN_NS};
    uint32_t i = (uint32_t)(s - iw_shards);
    int r = wait_for(EPOLL_CTL_ADD, s->sockets, true, i), all = atomic_load(&iw_engine.all);
    if (!r && all >= 0)
        r = add_to_all_locked(all, i);
    if (r)
        sys_close(s->sockets);
    return r;
}

/** One a processor, but not one alone: threads are there even so. */
static unsigned shards_max(void)
{
    unsigned n = iw_processors();
    return n < 2 ? 2 : n < IW_SHARDS ? n : IW_SHARDS;
}

void iw_engine_know_processors(void)
{
    lock_get(&iw_engine.lock);
    iw_processors_add();
    lock_put(&iw_engine.lock);
}

struct iw_shard *iw_engine_open_shard(void)
{
    struct iw_shard *s = NULL;
    lock_get(&iw_engine.lock);
    unsigned i = iw_shard_count();
    if (iw_engine.started && i < shards_max() && !open_shard_locked(&iw_shards[i])) {
        s = &iw_shards[i];
        iw_shard_opened();
    }
    lock_put(&iw_engine.lock);
    return s;
}

static void close_descriptors_locked(unsigned shards)
{
    assert_held(&iw_engine.lock);
    iw_eventfd_close(iw_engine.kick);
    for (unsigned i = 0; i < shards; i++)
        iw_fd_leave_anonymous(iw_shards[i].sockets);
    iw_fd_leave_anonymous(iw_engine.wait_set);
    iw_fd_leave_anonymous(iw_engine.clock);
    iw_fd_leave_anonymous(iw_engine.looks);
    iw_fd_leave_anonymous(atomic_exchange(&iw_engine.all, -1));
    iw_engine.wait_set = iw_engine.kick = iw_engine.looks = -1;
    atomic_store(&iw_engine.clock, -1);
}

/** In a child of fork() there are as many as in the parent. @return 0 or a positive errno */
static int open_shards_locked(unsigned *opened)
{
    int r = 0;
    for (*opened = 0; *opened < iw_shard_count() && !r; *opened += !r)
        r = open_shard_locked(&iw_shards[*opened]);
    return r;
}

static int engine_make_locked(void)
{
    assert_held(&iw_engine.lock);
    long fds[] = {sys_epoll_create(), iw_eventfd_create_hidden(), sys_timerfd(), sys_timerfd()};
    unsigned shards = 0;
    int r = 0;
    for (int i = 0; i < 4; i++) {
        r = fds[i] < 0 ? (int)-fds[i] : r;
        if (fds[i] >= 0 && i != 1) /* an eventfd is where it belongs */
            fds[i] = iw_fd_high((int)fds[i]);
    }
    iw_engine.wait_set = (int)fds[0];
    iw_engine.kick = (int)fds[1];
    atomic_store(&iw_engine.clock, (int)fds[2]);
    iw_engine.looks = (int)fds[3];
    for (int i = 1; i < 4 && !r; i++)
        r = wait_for(EPOLL_CTL_ADD, (int)fds[i], true, IW_SHARDS);
    if (!r)
        r = open_shards_locked(&shards);
    if (!r)
        r = iw_sources_restore(); /* what a child of fork() inherited */
    if (!r)
        r = thread_start();
    if (r)
        close_descriptors_locked(shards);
    return r;
}

static void tell_refusal(int error)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_WARN,
               "no connection is run, as an epoll set, an eventfd, a timerfd or a thread is "
               "refused: %s",
               strerror(error));
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
    if (r)
        tell_refusal(r);
    return r;
}

/* ---- fork ---- */

void iw_engine_freeze(void)
{
    atomic_store(&iw_engine.frozen, true);
    iw_deferred_wait_all();
    iw_sources_wait();
    iw_timers_wait();
}

void iw_engine_thaw(void)
{
    unsigned shards = iw_shard_count();
    for (unsigned i = 0; i < shards; i++)
        iw_hand_over_begin(&iw_shards[i]);
    atomic_store(&iw_engine.frozen, false);
    iw_sources_again();
    if (iw_fd_is_anonymous(iw_engine.kick))
        iw_engine_kick();
    for (unsigned i = 0; i < shards; i++)
        iw_hand_over_end(&iw_shards[i]);
}

/** The epoll sets are shared with the parent and must not be changed; the thread is not there. */
static void forget_parent_locked(void)
{
    assert_held(&iw_engine.lock);
    close_descriptors_locked(iw_shard_count());
    iw_shards_forget();
    atomic_store(&iw_engine.kicked, false);
    atomic_store(&iw_engine.ended, 0);
    iw_deferred_forget();
    __atomic_store_n(&iw_engine.started, false, __ATOMIC_RELEASE);
}

void iw_engine_fork(enum fork_step step)
{
    if (step == FORK_CHILD && iw_engine.started)
        forget_parent_locked();
    lock_fork(&iw_engine.lock, step);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Which thread's shard a poller is in, and what comes with it. */
#include "engine/shard.h"

#include "engine/deferred.h"
#include "engine/engine.h"
#include "engine/poller.h"
#include "engine/processors.h"
#include "engine/source.h"
#include "engine/timer.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY    100000 /* polls that are enough for any move */
#define OFTEN   20     /* times that a CQ moves, so that it moves more seldom */
#define CROWD   80     /* threads, more than there may be shards */
#define PASSES  1000
#define LONG_NS 10000000000

/** A thread of the program, which does what it is told, one thing at a time. */
struct worker {
    pthread_t thread;
    struct iw_poller *_Atomic poll; /* to be polled, then NULL */
    unsigned times;                 /* or until it has moved */
    atomic_bool ends;
};

/** Polls that bring nothing, in this thread. @return those until the poller moved, or @p max */
static unsigned poll_here(struct iw_poller *p, unsigned max)
{
    struct iw_shard *at = iw_shard_of(p);
    unsigned n = 0;
    for (; n < max && iw_shard_of(p) == at; n++) {
        iw_engine_polled(p);
        iw_engine_poll(p);
    }
    return n;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    while (!atomic_load(&w->ends)) {
        struct iw_poller *p = atomic_load(&w->poll);
        if (!p) {
            sched_yield();
            continue;
        }
        poll_here(p, w->times);
        atomic_store(&w->poll, NULL);
    }
    return NULL;
}

static void begin(struct worker *w)
{
    atomic_store(&w->poll, NULL);
    atomic_store(&w->ends, false);
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static void end(struct worker *w)
{
    atomic_store(&w->ends, true);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/** Has the thread poll until the poller moves, so many times at most. */
static void poll_many_by(struct worker *w, struct iw_poller *p, unsigned times)
{
    w->times = times;
    atomic_store(&w->poll, p);
    while (atomic_load(&w->poll))
        sched_yield();
}

static void poll_by(struct worker *w, struct iw_poller *p)
{
    poll_many_by(w, p, 1);
}

static struct worker other;
static struct iw_poller mine, others;

static int setup(void **state)
{
    (void)state;
    mine = others = (struct iw_poller){0};
    begin(&other);
    return iw_engine_start();
}

static int teardown(void **state)
{
    (void)state;
    end(&other);
    return 0;
}

static void one_thread_has_one(void **state)
{
    struct iw_poller more[3] = {{0}};
    (void)state;
    for (int i = 0; i < 3; i++)
        poll_here(&more[i], PASSES);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(iw_shard_of(&more[i]), &iw_shards[0]);
    assert_ptr_equal(iw_shard_own(), &iw_shards[0]);
}

static void another_gets_its_own(void **state)
{
    (void)state;
    poll_here(&others, 1);
    poll_by(&other, &others); /* the first shard is this thread's */
    assert_ptr_equal(iw_shard_of(&others), &iw_shards[0]);
    poll_many_by(&other, &others, PASSES);
    assert_ptr_not_equal(iw_shard_of(&others), &iw_shards[0]);
    poll_here(&mine, PASSES);
    assert_ptr_equal(iw_shard_of(&mine), &iw_shards[0]);
}

static void two_that_poll_in_turn_do_not_tug(void **state)
{
    (void)state;
    for (int i = 0; i < PASSES; i++) {
        poll_by(&other, &mine);
        poll_here(&mine, 1);
    }
    assert_ptr_equal(iw_shard_of(&mine), &iw_shards[0]);
}

static void who_arms_stays(void **state)
{
    (void)state;
    poll_here(&mine, 1);
    for (int i = 0; i < PASSES; i++) {
        poll_by(&other, &others);
        if (i % 100 == 0)
            iw_engine_arm(&others);
    }
    assert_ptr_equal(iw_shard_of(&others), &iw_shards[0]);
}

static void what_goes_to_and_fro_does_so_more_seldom(void **state)
{
    unsigned first, last = 0;
    (void)state;
    poll_here(&mine, 1);
    poll_many_by(&other, &others, MANY);
    first = poll_here(&others, MANY);
    assert_in_range(first, 2, MANY - 1);
    for (int i = 0; i < OFTEN; i++) {
        poll_many_by(&other, &others, MANY);
        last = poll_here(&others, MANY);
        assert_in_range(last, first, MANY - 1);
    }
    assert_true(last > 10 * first);
}

/** The shard of a thread that has ended is the next one's: threads come and go, shards do not. */
static void an_end_leaves_its_shard(void **state)
{
    (void)state;
    poll_here(&mine, 1);
    for (int i = 0; i < CROWD; i++) {
        others = (struct iw_poller){0};
        poll_many_by(&other, &others, PASSES);
        assert_ptr_equal(iw_shard_of(&others), &iw_shards[1]);
        end(&other);
        assert_null(atomic_load(&iw_shards[1].owner));
        begin(&other);
    }
    /* This thread has one: what was left comes to it. */
    poll_here(&others, MANY);
    assert_ptr_equal(iw_shard_of(&others), &iw_shards[0]);
}

/** More threads than processors: they share the first. */
static void there_are_not_too_many(void **state)
{
    static struct worker crowd[CROWD];
    static struct iw_poller polled[CROWD];
    (void)state;
    poll_here(&mine, 1);
    for (int i = 0; i < CROWD; i++) {
        begin(&crowd[i]);
        poll_many_by(&crowd[i], &polled[i], PASSES);
        assert_in_range(iw_shard_of(&polled[i]) - iw_shards, 0, iw_shard_count() - 1);
    }
    assert_in_range(iw_shard_count(), 2, IW_SHARDS);
    assert_ptr_equal(iw_shard_of(&polled[CROWD - 1]), &iw_shards[0]);
    for (int i = 0; i < CROWD; i++)
        end(&crowd[i]);
}

/* ---- more threads than processors ---- */

static atomic_bool polling;

static void *keep_polling(void *arg)
{
    struct iw_poller p = {0};
    (void)arg;
    while (atomic_load(&polling)) {
        iw_engine_polled(&p);
        iw_engine_poll(&p);
    }
    return NULL;
}

/** Whether it comes to be crowded, or not, while so many threads poll; within a time. */
static bool becomes(bool crowded, unsigned threads)
{
    pthread_t t[CROWD];
    atomic_store(&polling, true);
    for (unsigned i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&t[i], NULL, keep_polling, NULL), 0);
    uint64_t end = iw_now() + LONG_NS;
    while (atomic_load(&iw_engine.crowded) != crowded && iw_now() < end)
        sched_yield();
    bool is = atomic_load(&iw_engine.crowded) == crowded;
    atomic_store(&polling, false);
    for (unsigned i = 0; i < threads; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    return is;
}

/* There is a processor for each of them, though one that is asleep has a shard as well. */
static void those_that_sleep_are_not_counted(void **state)
{
    (void)state;
    poll_here(&mine, 1);
    unsigned processors = iw_processors();
    if (processors < 2 || processors >= IW_SHARDS)
        skip();
    assert_true(becomes(true, processors + 1));
    assert_true(becomes(false, processors));
    assert_true(becomes(true, processors + 1));
}

/** Binds this thread to the processor of number @p k among those it has. */
static void bind(const cpu_set_t *has, int k)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, has) && k-- == 0)
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void *keep_polling_bound(void *has)
{
    bind(has, 1);
    return keep_polling(NULL);
}

/* Before any other thread was asked where it may run. */
static void two_that_are_bound_have_two_processors(void **state)
{
    struct iw_poller p = {0};
    cpu_set_t has;
    pthread_t t;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(has), &has), 0);
    if (CPU_COUNT(&has) < 2)
        skip();
    bind(&has, 0);
    poll_here(&p, 1); /* the first shard is this thread's, as all tests want it */
    atomic_store(&polling, true);
    assert_int_equal(pthread_create(&t, NULL, keep_polling_bound, &has), 0);
    unsigned first = atomic_load(&iw_engine.period);
    uint64_t end = iw_now() + LONG_NS;
    while (atomic_load(&iw_engine.period) - first < 5 && iw_now() < end) {
        iw_engine_polled(&p);
        iw_engine_poll(&p);
    }
    assert_true(atomic_load(&iw_engine.period) - first >= 5);
    assert_false(atomic_load(&iw_engine.crowded));
    atomic_store(&polling, false);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(sched_setaffinity(0, sizeof(has), &has), 0);
}

static void two_need_two_processors(void **state)
{
    (void)state;
    unsigned known = iw_processors();
    assert_false(iw_processors_are_few(0));
    assert_false(iw_processors_are_few(known > 1 ? known : 0));
    assert_true(iw_processors_are_few(known + 1));
    assert_int_equal(iw_processors_are_few(1), sysconf(_SC_NPROCESSORS_ONLN) == 1);
}

/* ---- what belongs to a QP ---- */

/** The other thread's poller, in a shard of its own, of which only it makes passes. */
static void part(void)
{
    poll_here(&mine, 1);
    poll_many_by(&other, &others, PASSES);
    poll_many_by(&other, &others, PASSES); /* there it has a lease, too */
    assert_ptr_not_equal(iw_shard_of(&others), iw_shard_of(&mine));
}

static void home_is_where_was_polled_last(void **state)
{
    const struct iw_home home = {{&mine, &others}}, none = {{NULL, NULL}}, one = {{NULL, &others}};
    (void)state;
    part();
    assert_ptr_equal(iw_home_shard(&none), &iw_shards[0]);
    assert_ptr_equal(iw_home_shard(&one), iw_shard_of(&others));
    /* Looks of the engine's thread are the clock; only one of both sees it go on. */
    unsigned checks = atomic_load(&iw_engine.checks);
    while (atomic_load(&iw_engine.checks) - checks < 8)
        poll_by(&other, &others);
    assert_ptr_equal(iw_home_shard(&home), iw_shard_of(&others));
    checks = atomic_load(&iw_engine.checks);
    while (atomic_load(&iw_engine.checks) - checks < 8)
        poll_here(&mine, 1);
    assert_ptr_equal(iw_home_shard(&home), iw_shard_of(&mine));
}

static _Atomic pthread_t runner;
static atomic_uint runs;

static void note(struct iw_deferred *d)
{
    (void)d;
    atomic_store(&runner, pthread_self());
    atomic_fetch_add(&runs, 1);
}

static void deferred_work_is_there(void **state)
{
    struct iw_deferred d = {.run = note, .home = {{&others, NULL}}};
    (void)state;
    part();
    iw_deferred_again(&d);
    assert_non_null(atomic_load(&iw_shard_of(&others)->top));
    assert_false(iw_deferred_run(&iw_shards[0]));
    iw_deferred_wait(&d); /* that looks everywhere */
    assert_null(atomic_load(&iw_shard_of(&others)->top));
}

/** Nobody polls any more: the engine does it. */
static void nothing_is_left_behind(void **state)
{
    struct iw_deferred d[2] = {{.run = note, .home = {{&others, NULL}}},
                               {.run = note, .home = {{&mine, NULL}}}};
    (void)state;
    part();
    unsigned before = atomic_load(&runs);
    for (int i = 0; i < 2; i++)
        iw_deferred_push(&d[i]);
    while (atomic_load(&runs) < before + 2)
        sched_yield();
    for (int i = 0; i < 2; i++)
        iw_deferred_wait(&d[i]);
}

static struct iw_deferred in_order[3];
static unsigned ran[3];
static atomic_uint nran;
static atomic_bool inside, go;

static void note_order(struct iw_deferred *d)
{
    unsigned n = atomic_load(&nran);
    ran[n] = (unsigned)(d - in_order);
    atomic_store(&nran, n + 1);
}

static void stay(struct iw_deferred *d)
{
    atomic_store(&inside, true);
    while (!atomic_load(&go))
        sched_yield();
    note_order(d);
}

static void begin_order(void (*first)(struct iw_deferred *))
{
    part();
    for (int i = 0; i < 3; i++)
        in_order[i] = (struct iw_deferred){.run = note_order, .home = {{&others, NULL}}};
    in_order[0].run = first;
    atomic_store(&nran, 0);
    atomic_store(&inside, false);
    atomic_store(&go, false);
}

static void expect_order(void)
{
    for (int i = 0; i < 3; i++)
        iw_deferred_wait(&in_order[i]);
    iw_deferred_wait_all(); /* who ran the last is still there behind it */
    assert_int_equal(atomic_load(&nran), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ran[i], i);
}

static void what_is_posted_keeps_its_place(void **state)
{
    (void)state;
    begin_order(note_order);
    iw_engine_freeze(); /* so that the engine leaves them here */
    iw_deferred_push(&in_order[0]);
    assert_false(iw_deferred_is_behind(&in_order[2]));
    iw_deferred_posted(&in_order[1]);
    assert_false(iw_deferred_is_behind(&in_order[1]));
    assert_true(iw_deferred_is_behind(&in_order[2]));
    iw_deferred_run_behind(&in_order[2]);
    assert_int_equal(atomic_load(&nran), 0);
    iw_engine_thaw();
    expect_order();
    assert_false(iw_deferred_is_behind(&in_order[2]));
}

static void *run_all(void *arg)
{
    (void)arg;
    while (!atomic_load(&inside))
        iw_deferred_run_all();
    return NULL;
}

/** Another thread has taken what was posted before, and is at it. */
static void so_does_what_is_under_way(void **state)
{
    pthread_t t;
    (void)state;
    begin_order(stay);
    iw_deferred_posted(&in_order[0]);
    assert_int_equal(pthread_create(&t, NULL, run_all, NULL), 0);
    while (!atomic_load(&inside))
        sched_yield();
    assert_true(iw_deferred_is_behind(&in_order[1]));
    atomic_store(&go, true);
    iw_deferred_wait(&in_order[0]);
    assert_int_equal(pthread_join(t, NULL), 0);
    iw_deferred_wait_all();
    assert_false(iw_deferred_is_behind(&in_order[1]));
    for (int i = 1; i < 3; i++) {
        iw_deferred_run_behind(&in_order[i]);
        iw_deferred_wait(&in_order[i]); /* the engine's thread may be at it */
    }
    expect_order();
}

static struct iw_source source;
static struct iw_home source_home = {{&others, NULL}};

static bool take(struct iw_source *s, uint32_t events)
{
    eventfd_t value;
    (void)events;
    iw_source_move(s, &source_home);
    if (eventfd_read(s->fd, &value))
        return false;
    atomic_store(&runner, pthread_self());
    atomic_fetch_add(&runs, 1);
    return true;
}

/** @return the set in which the source is ready */
static struct iw_shard *found(void)
{
    struct epoll_event ev;
    for (unsigned i = 0; i < iw_shard_count(); i++)
        if (epoll_wait(iw_shards[i].sockets, &ev, 1, 0) == 1)
            return &iw_shards[i];
    return NULL;
}

static void a_source_moves_when_it_is_ready(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    iw_source_link(&source, 5);
    part();
    uint64_t before = atomic_load(&iw_shards[0].linked);
    assert_int_equal(before, IW_LINKED(5));
    for (int i = 0; i < 3; i++) { /* whoever runs it, a poller or the engine */
        unsigned n = atomic_load(&runs);
        assert_int_equal(eventfd_write(fd, 1), 0);
        while (atomic_load(&runs) == n)
            sched_yield();
        assert_int_equal(atomic_load(&iw_shards[0].linked), 0);
        assert_int_equal(atomic_load(&iw_shard_of(&others)->linked), before);
    }
    iw_engine_freeze();
    assert_int_equal(eventfd_write(fd, 1), 0);
    assert_ptr_equal(found(), iw_shard_of(&others));
    iw_engine_thaw();
    iw_source_del(&source);
    assert_int_equal(atomic_load(&iw_shard_of(&others)->linked), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_that_are_bound_have_two_processors, setup, teardown),
        cmocka_unit_test_setup_teardown(one_thread_has_one, setup, teardown),
        cmocka_unit_test_setup_teardown(another_gets_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(two_that_poll_in_turn_do_not_tug, setup, teardown),
        cmocka_unit_test_setup_teardown(who_arms_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_goes_to_and_fro_does_so_more_seldom, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_leaves_its_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_not_too_many, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_sleep_are_not_counted, setup, teardown),
        cmocka_unit_test(two_need_two_processors),
        cmocka_unit_test_setup_teardown(home_is_where_was_polled_last, setup, teardown),
        cmocka_unit_test_setup_teardown(deferred_work_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_posted_keeps_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(so_does_what_is_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_moves_when_it_is_ready, setup, teardown),
    };
    alarm(300);
    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}

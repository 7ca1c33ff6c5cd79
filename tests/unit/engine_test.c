/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine's thread leaves to those who poll, for how long, and that it takes it back. */
#include "engine/engine.h"

#include "engine/deferred.h"
#include "engine/poller.h"
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

#define LEASE_RUN 64    /* polls that begin a lease */
#define ARMS      20000 /* beside looks of the thread */
#define ENOUGH    100   /* loads behind each of them */

static struct iw_shard *const first = &iw_shards[0];
static struct iw_poller poller;
static struct iw_source source;
static int fd;
static _Atomic pthread_t runner;
static atomic_uint runs;

static void note_run(void)
{
    atomic_store(&runner, pthread_self());
    atomic_fetch_add(&runs, 1);
}

static bool take(struct iw_source *s, uint32_t events)
{
    eventfd_t value;
    (void)events;
    if (eventfd_read(s->fd, &value))
        return false;
    note_run();
    return true;
}

static void run(struct iw_deferred *d)
{
    (void)d;
    note_run();
}

/** As ibv_poll_cq() on an empty CQ. */
static void poll_once(void)
{
    iw_engine_polled(&poller);
    iw_engine_poll(&poller);
}

static void wait_runs(unsigned n)
{
    while (atomic_load(&runs) < n)
        sched_yield();
}

static void wait_no_lease(void)
{
    while (atomic_load(&first->leased))
        sched_yield();
}

static bool is_relieved(void)
{
    lock_get(&iw_engine.lock);
    bool relieved = first->relieved;
    lock_put(&iw_engine.lock);
    return relieved;
}

static int setup(void **state)
{
    (void)state;
    poller = (struct iw_poller){0};
    source = (struct iw_source){0};
    atomic_store(&runs, 0);
    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int r = iw_source_add(&source, fd, EPOLLIN, take);
    wait_no_lease();
    return r;
}

static int teardown(void **state)
{
    (void)state;
    iw_source_del(&source);
    return close(fd);
}

static void there_is_one_thread(void **state)
{
    pthread_t thread = iw_engine.thread;
    (void)state;
    assert_int_equal(iw_engine_start(), 0);
    assert_true(pthread_equal(thread, iw_engine.thread));
    assert_false(iw_engine_is_thread());
    assert_int_equal(eventfd_write(fd, 1), 0);
    wait_runs(1);
    assert_true(pthread_equal(atomic_load(&runner), thread));
}

static void who_keeps_polling_has_a_lease(void **state)
{
    (void)state;
    for (int i = 1; i < LEASE_RUN; i++)
        iw_engine_polled(&poller);
    assert_false(iw_engine_leased(first));
    iw_engine_polled(&poller);
    assert_true(iw_engine_leased(first));
    wait_no_lease(); /* it ends of itself */
}

static void an_arm_begins_the_count_again(void **state)
{
    (void)state;
    for (int i = 1; i < LEASE_RUN; i++)
        iw_engine_polled(&poller);
    iw_engine_arm(&poller);
    for (int i = 1; i < LEASE_RUN; i++)
        iw_engine_polled(&poller);
    assert_false(iw_engine_leased(first));
}

/** Whatever the thread is at meanwhile. */
static void an_arm_ends_it_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < ARMS; i++) {
        for (int k = 0; k < LEASE_RUN; k++)
            iw_engine_polled(&poller);
        iw_engine_kick();
        for (int k = 0; k < i % ENOUGH; k++) /* so that it is at any place of its look */
            iw_engine_leased(first);
        iw_engine_arm(&poller);
        for (int k = 0; k < ENOUGH; k++)
            assert_false(iw_engine_leased(first));
    }
}

static void sockets_are_left_to_who_makes_passes(void **state)
{
    (void)state;
    while (!is_relieved())
        poll_once();
    /* It stops: what comes is the thread's again. */
    assert_int_equal(eventfd_write(fd, 1), 0);
    wait_runs(1);
    assert_true(pthread_equal(atomic_load(&runner), iw_engine.thread));
    while (is_relieved())
        sched_yield();
}

static void sockets_are_given_back_by_an_arm(void **state)
{
    (void)state;
    while (!is_relieved())
        poll_once();
    iw_engine_arm(&poller);
    while (is_relieved())
        sched_yield();
    assert_int_equal(eventfd_write(fd, 1), 0);
    wait_runs(1);
}

static void deferred_work_is_taken_over(void **state)
{
    struct iw_deferred d = {.run = run, .home = {{&poller, NULL}}};
    (void)state;
    for (unsigned i = 1; i <= 100; i++) {
        for (int k = 0; k < LEASE_RUN; k++)
            iw_engine_polled(&poller);
        i % 2 ? iw_deferred_push(&d) : iw_deferred_again(&d);
        wait_runs(i); /* no pass is made */
        assert_true(pthread_equal(atomic_load(&runner), iw_engine.thread));
    }
    iw_deferred_wait(&d);
}

static void an_arm_runs_what_was_left(void **state)
{
    struct iw_deferred d = {.run = run, .home = {{&poller, NULL}}};
    (void)state;
    for (int k = 0; k < LEASE_RUN; k++)
        iw_engine_polled(&poller);
    iw_deferred_push(&d);
    iw_engine_arm(&poller);
    iw_deferred_wait(&d); /* the thread may be at it */
    assert_int_equal(atomic_load(&runs), 1);
}

static void frozen(void **state)
{
    struct iw_deferred d = {.run = run, .home = {{&poller, NULL}}};
    (void)state;
    iw_engine_freeze();
    assert_int_equal(eventfd_write(fd, 1), 0);
    iw_deferred_push(&d);
    poll_once();
    iw_engine_pass();
    usleep(20000); /* the thread has its chance to be wrong */
    assert_int_equal(atomic_load(&runs), 0);
    iw_engine_thaw();
    wait_runs(2);
    iw_deferred_wait(&d);
}

/** Looks of the thread in 50 ms in which this one leaves work to each of its passes. */
static unsigned looks_beside(struct iw_deferred *d)
{
    uint64_t end = iw_now() + 50000000;
    unsigned before = atomic_load(&iw_engine.checks);
    while (iw_now() < end) {
        iw_deferred_posted(d);
        poll_once();
    }
    return atomic_load(&iw_engine.checks) - before;
}

/** One look in 1 ms, where passes run what is left to them; one in 100 us would be 500. */
static void steady_passes_are_seldom_looked_at(void **state)
{
    struct iw_deferred d = {.run = run};
    (void)state;
    while (!iw_engine_leased(first))
        poll_once();
    while (looks_beside(&d) > 100)
        ;
    unsigned before = atomic_load(&runs);
    iw_deferred_posted(&d); /* and then it goes away */
    wait_runs(before + 1);
    wait_no_lease();
    iw_deferred_wait(&d);
}

static atomic_uint told, untold;

static bool take_one(struct iw_source *s, uint32_t events)
{
    if (!take(s, events))
        return false;
    atomic_fetch_add(events ? &told : &untold, 1);
    return true;
}

/** Of what stands in a descriptor, and is taken one by one, epoll is asked now and then. */
static void what_is_alone_is_run_again(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct iw_source one = {0};
        int many = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
        atomic_store(&told, 0);
        atomic_store(&untold, 0);
        atomic_store(&runs, 0);
        assert_int_equal(eventfd_write(many, 1000), 0);
        assert_int_equal(iw_source_add(&one, many, EPOLLIN, take_one), 0);
        wait_runs(1000);
        iw_source_del(&one);
        assert_true(atomic_load(&told) >= 1000 / 8);
        assert_true(atomic_load(&untold) >= 1000 / 2);
        close(many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(there_is_one_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(who_keeps_polling_has_a_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(an_arm_begins_the_count_again, setup, teardown),
        cmocka_unit_test_setup_teardown(an_arm_ends_it_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(sockets_are_left_to_who_makes_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(sockets_are_given_back_by_an_arm, setup, teardown),
        cmocka_unit_test_setup_teardown(deferred_work_is_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(an_arm_runs_what_was_left, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen, setup, teardown),
        cmocka_unit_test_setup_teardown(steady_passes_are_seldom_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_alone_is_run_again, setup, teardown),
    };
    alarm(120);
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}

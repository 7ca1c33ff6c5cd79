/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers that the test runs itself: there is no engine's thread. */
#include "engine/timer.h"

#include "engine/engine.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define HOUR_MS 3600000

static struct iw_timer timers[3];
static char fired[16];

static void note(struct iw_timer *t)
{
    size_t n = strlen(fired);
    assert_true(n + 1 < sizeof(fired));
    fired[n] = (char)('a' + (t - timers));
    fired[n + 1] = '\0';
}

static int setup(void **state)
{
    (void)state;
    memset(fired, 0, sizeof(fired));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        iw_timer_cancel(&timers[i]);
    return 0;
}

static void by_time(void **state)
{
    (void)state;
    iw_timer_set_us(&timers[0], 60000, note);
    iw_timer_set_us(&timers[1], 30000, note);
    iw_timer_set_us(&timers[2], 0, note);
    uint64_t all_due = iw_now() + 60000000;
    while (iw_now() < all_due)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    iw_timers_run();
    assert_string_equal(fired, "cba");
    iw_timers_run();
    assert_string_equal(fired, "cba");
}

static void not_before_its_time(void **state)
{
    (void)state;
    iw_timer_set(&timers[0], HOUR_MS, note);
    iw_timer_set(&timers[1], 0, note);
    iw_timers_run();
    assert_string_equal(fired, "b");
}

static void the_last_set_counts(void **state)
{
    (void)state;
    iw_timer_set(&timers[0], 0, note);
    iw_timer_set(&timers[0], HOUR_MS, note);
    iw_timers_run();
    assert_string_equal(fired, "");
    iw_timer_set(&timers[0], 0, note);
    iw_timers_run();
    assert_string_equal(fired, "a");
}

static void the_first_start_counts(void **state)
{
    (void)state;
    iw_timer_start_us(&timers[0], 0, note);
    iw_timer_start_us(&timers[0], HOUR_MS * 1000ull, note);
    iw_timers_run();
    assert_string_equal(fired, "a");
    iw_timer_start_us(&timers[0], HOUR_MS * 1000ull, note);
    iw_timer_start_us(&timers[0], 0, note);
    iw_timers_run();
    assert_string_equal(fired, "a");
}

static void unset(void **state)
{
    (void)state;
    iw_timer_set(&timers[0], 0, note);
    iw_timer_unset(&timers[0]);
    iw_timer_unset(&timers[1]);
    iw_timers_run();
    assert_string_equal(fired, "");
    iw_timer_start_us(&timers[0], 0, note);
    iw_timers_run();
    assert_string_equal(fired, "a");
}

static void cancelled(void **state)
{
    (void)state;
    iw_timer_set(&timers[0], 0, note);
    iw_timer_set(&timers[1], 0, note);
    iw_timer_cancel(&timers[0]);
    iw_timer_cancel(&timers[0]);
    iw_timers_run();
    assert_string_equal(fired, "b");
}

static void again(struct iw_timer *t)
{
    note(t);
    if (strlen(fired) < 3)
        iw_timer_set(t, 0, again);
    else
        iw_timer_cancel(t); /* inside itself: does not wait */
}

static void sets_itself_again(void **state)
{
    (void)state;
    iw_timer_set(&timers[2], 0, again);
    iw_timers_run();
    assert_string_equal(fired, "ccc");
}

static void frozen(void **state)
{
    (void)state;
    iw_timer_set(&timers[0], 0, note);
    iw_engine_freeze();
    iw_timers_run();
    assert_string_equal(fired, "");
    iw_engine_thaw();
    iw_timers_run();
    assert_string_equal(fired, "a");
}

/* ---- cancel against a fire() that runs ---- */

static atomic_bool inside, go, cancelled_it;

static void stay(struct iw_timer *t)
{
    atomic_store(&inside, true);
    while (!atomic_load(&go))
        sched_yield();
    note(t);
}

static void *run(void *arg)
{
    iw_timers_run();
    return arg;
}

static void *cancel(void *arg)
{
    iw_timer_cancel(arg);
    assert_string_equal(fired, "a");
    atomic_store(&cancelled_it, true);
    return NULL;
}

static void cancel_waits(void **state)
{
    pthread_t runner, canceller;
    (void)state;
    iw_timer_set(&timers[0], 0, stay);
    assert_int_equal(pthread_create(&runner, NULL, run, NULL), 0);
    while (!atomic_load(&inside))
        sched_yield();
    iw_timer_unset(&timers[0]); /* does not */
    assert_int_equal(pthread_create(&canceller, NULL, cancel, &timers[0]), 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_false(atomic_load(&cancelled_it));
    atomic_store(&go, true);
    assert_int_equal(pthread_join(canceller, NULL), 0);
    assert_int_equal(pthread_join(runner, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_time),
        TEST(not_before_its_time),
        TEST(the_last_set_counts),
        TEST(the_first_start_counts),
        TEST(unset),
        TEST(cancelled),
        TEST(sets_itself_again),
        TEST(frozen),
        TEST(cancel_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The stack of deferred work, run by the test's threads alone: there is no engine's. */
#include "engine/deferred.h"

#include "engine/engine.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define ROUNDS  20000

struct work {
    struct iw_deferred deferred;
    atomic_uint due;  /* what is to be done, stored before it is pushed */
    atomic_uint done; /* of that */
    atomic_uint runs;
};

static void run(struct iw_deferred *d)
{
    struct work *w = (struct work *)d;
    atomic_fetch_add(&w->done, atomic_exchange(&w->due, 0));
    atomic_fetch_add(&w->runs, 1);
}

static struct work work[2];

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        work[i] = (struct work){.deferred.run = run};
    return 0;
}

static void once_however_often_pushed(void **state)
{
    (void)state;
    assert_false(iw_deferred_run_all());
    iw_deferred_push(&work[0].deferred);
    iw_deferred_push(&work[0].deferred);
    iw_deferred_again(&work[0].deferred);
    iw_deferred_push(&work[1].deferred);
    assert_true(iw_deferred_run_all());
    assert_false(iw_deferred_run_all());
    assert_int_equal(atomic_load(&work[0].runs), 1);
    assert_int_equal(atomic_load(&work[1].runs), 1);
}

static void push_again(struct iw_deferred *d)
{
    run(d);
    if (atomic_load(&work[0].runs) < 3)
        iw_deferred_push(d);
}

static void pushed_while_it_runs(void **state)
{
    (void)state;
    work[0].deferred.run = push_again;
    iw_deferred_push(&work[0].deferred);
    assert_true(iw_deferred_run_all()); /* what is pushed meanwhile is the next one's */
    assert_int_equal(atomic_load(&work[0].runs), 1);
    iw_deferred_wait(&work[0].deferred);
    assert_int_equal(atomic_load(&work[0].runs), 3);
}

static void frozen(void **state)
{
    (void)state;
    iw_deferred_push(&work[0].deferred);
    iw_engine_freeze();
    iw_deferred_run_all();
    assert_int_equal(atomic_load(&work[0].runs), 0);
    iw_engine_thaw();
    iw_deferred_run_all();
    assert_int_equal(atomic_load(&work[0].runs), 1);
}

static void forgotten_in_a_child(void **state)
{
    (void)state;
    iw_deferred_push(&work[0].deferred);
    iw_deferred_push(&work[1].deferred);
    iw_deferred_forget();
    assert_false(iw_deferred_run_all());
    assert_int_equal(atomic_load(&work[0].runs), 0);
    assert_int_equal(atomic_load(&work[1].runs), 0);
}

static void what_is_posted_later_goes_later(void **state)
{
    struct iw_deferred *a = &work[0].deferred, *b = &work[1].deferred;
    (void)state;
    iw_deferred_run_passed(a);
    iw_deferred_posted(a);
    assert_false(iw_deferred_is_behind(a));
    assert_true(iw_deferred_is_behind(b));
    iw_deferred_run_passed(a);
    iw_deferred_run_passed(b);
    assert_int_equal(atomic_load(&work[0].runs), 0);

    iw_deferred_posted(b);
    assert_true(iw_deferred_is_behind(b)); /* what a has is older */
    iw_deferred_run_passed(b);
    assert_int_equal(atomic_load(&work[0].runs), 0);
    iw_deferred_run_passed(a);
    assert_int_equal(atomic_load(&work[0].runs), 1);
    assert_int_equal(atomic_load(&work[1].runs), 1);

    iw_deferred_posted(b);
    assert_false(iw_deferred_is_behind(b));
    assert_true(iw_deferred_run_all());
}

/** The rest of a stream waits for more, but not for what was posted to others. */
static void so_does_what_is_posted_behind_a_stream(void **state)
{
    struct iw_deferred *a = &work[0].deferred, *b = &work[1].deferred;
    (void)state;
    iw_deferred_again(a);
    assert_false(iw_deferred_is_behind(b));
    assert_true(iw_deferred_run_all());

    iw_deferred_posted_again(a);
    assert_false(iw_deferred_is_behind(a));
    assert_true(iw_deferred_is_behind(b));
    iw_deferred_run_behind(b);
    assert_int_equal(atomic_load(&work[0].runs), 2);
    assert_int_equal(atomic_load(&work[1].runs), 1);
    assert_true(atomic_load(&a->followed));
    assert_false(atomic_load(&b->followed));

    iw_deferred_posted_again(a);
    assert_true(iw_deferred_run_all());
    assert_false(atomic_load(&a->followed));
}

static void the_first_few_do_not_wake_a_thread_that_sleeps(void **state)
{
    unsigned spared = 0;
    (void)state;
    while (!iw_deferred_pays(&work[0].deferred) && spared < 1000)
        spared++;
    assert_in_range(spared, 1, 100);
    assert_true(iw_deferred_pays(&work[1].deferred)); /* it is the shard's count */

    atomic_store(&iw_shards[0].spared, 0); /* as at a look */
    atomic_store(&iw_shards[0].near, true);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(iw_deferred_pays(&work[0].deferred));
    atomic_store(&iw_shards[0].near, false);
    assert_false(iw_deferred_pays(&work[0].deferred));
}

static void *push_and_run(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&work[i % 2].due, 1);
        iw_deferred_push(&work[i % 2].deferred);
        if (i % 3 == 0)
            iw_deferred_run_all();
    }
    return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, push_and_run, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++) {
        iw_deferred_wait(&work[i].deferred);
        assert_int_equal(atomic_load(&work[i].due), 0);
        assert_int_equal(atomic_load(&work[i].done), THREADS * ROUNDS / 2);
        assert_int_equal(atomic_load(&work[i].deferred.state), 0);
    }
}

static atomic_bool inside, go, waited;

static void stay(struct iw_deferred *d)
{
    atomic_store(&inside, true);
    while (!atomic_load(&go))
        sched_yield();
    run(d);
}

static void *run_stack(void *arg)
{
    iw_deferred_run_all();
    return arg;
}

static void *wait_for(void *arg)
{
    iw_deferred_wait(arg);
    atomic_store(&waited, true);
    return NULL;
}

static void wait_is_for_who_runs_it(void **state)
{
    pthread_t runner, waiter;
    (void)state;
    work[0].deferred.run = stay;
    iw_deferred_push(&work[0].deferred);
    assert_int_equal(pthread_create(&runner, NULL, run_stack, NULL), 0);
    while (!atomic_load(&inside))
        sched_yield();
    assert_int_equal(pthread_create(&waiter, NULL, wait_for, &work[0].deferred), 0);
    for (int i = 0; i < 100; i++) { /* it has its chance to be wrong */
        sched_yield();
        assert_false(atomic_load(&waited));
    }
    atomic_store(&go, true);
    pthread_join(waiter, NULL);
    assert_int_equal(atomic_load(&work[0].runs), 1);
    pthread_join(runner, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(once_however_often_pushed, setup),
        cmocka_unit_test_setup(pushed_while_it_runs, setup),
        cmocka_unit_test_setup(frozen, setup),
        cmocka_unit_test_setup(forgotten_in_a_child, setup),
        cmocka_unit_test_setup(what_is_posted_later_goes_later, setup),
        cmocka_unit_test_setup(so_does_what_is_posted_behind_a_stream, setup),
        cmocka_unit_test_setup(the_first_few_do_not_wake_a_thread_that_sleeps, setup),
        cmocka_unit_test_setup(nothing_is_lost_between_threads, setup),
        cmocka_unit_test_setup(wait_is_for_who_runs_it, setup),
    };
    alarm(120);
    return cmocka_run_group_tests_name("deferred", tests, NULL, NULL);
}

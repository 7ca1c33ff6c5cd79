/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps something for each thread, in a program that has taken all keys before the libraries
 * are loaded: none of them is touched, and all goes on.
 */
#include "cma/rs/rs.h"
#include "common/interrupt.h"
#include "env/pool.h"
#include "mem/quiesce.h"
#include "mem/region.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define ROUNDS 300

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static size_t count;

/** Before those of the libraries. */
static void __attribute__((constructor(101))) take_all(void)
{
    while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0)
        count++;
}

static bool are_untouched(void)
{
    for (size_t i = 0; i < count; i++)
        if (pthread_getspecific(keys[i]))
            return false;
    return count > 0;
}

static void *get_and_put(void *arg)
{
    void *p = iw_pool_get(IW_POOL_STAGING);
    iw_pool_put(IW_POOL_STAGING, p);
    (void)arg;
    return are_untouched() ? p : NULL;
}

/** A thread keeps no buffer whose return nobody would see to. */
static void a_buffer_outlives_its_thread(void **state)
{
    pthread_t t;
    void *first, *second;
    (void)state;
    assert_int_equal(pthread_create(&t, NULL, get_and_put, NULL), 0);
    assert_int_equal(pthread_join(t, &first), 0);
    assert_int_equal(pthread_create(&t, NULL, get_and_put, NULL), 0);
    assert_int_equal(pthread_join(t, &second), 0);
    assert_non_null(first);
    assert_ptr_equal(first, second);
}

static struct iw_pd pd; /* for its address only */
static atomic_int copying;
static atomic_bool stop;

/** @return NULL if all was well */
static void *copy(void *arg)
{
    bool good = true;
    while (!atomic_load(&stop)) {
        iw_copy_begin(&pd);
        good &= atomic_fetch_add(&copying, 1) == 0;
        atomic_fetch_sub(&copying, 1);
        iw_copy_end();
        sched_yield();
    }
    return good && !iw_copier && are_untouched() ? NULL : arg;
}

/** No thread has a copier of its own, so sections come one after the other; periods end. */
static void sections_take_turns(void **state)
{
    pthread_t t[2];
    void *bad;
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, copy, &pd), 0);
    for (int i = 0; i < ROUNDS; i++)
        iw_quiesce(&pd);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(t[i], &bad), 0);
        assert_null(bad);
    }
    iw_copy_begin(&pd);
    struct iw_grace g;
    iw_grace_init(&g);
    iw_grace_begin(&g, &pd);
    assert_true(iw_grace_over(&g));
    iw_copy_end();
    assert_true(are_untouched());
}

static void no_thread_can_be_woken(void **state)
{
    (void)state;
    assert_int_equal(rs_wake_fd(), -1);
    assert_false(rs_is_interrupted());
    rs_set_interruptible(true);
    rs_wake_forked();
    assert_true(are_untouched());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_outlives_its_thread),
        cmocka_unit_test(sections_take_turns),
        cmocka_unit_test(no_thread_can_be_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

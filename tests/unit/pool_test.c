/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/pool.h"

#include "conn/batch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MANY 20 /* more than the process keeps */

static const size_t size[] = {
    [IW_POOL_STAGING] = IW_STAGING_BYTES,
    [IW_POOL_BATCH] = sizeof(struct iwc_batch),
};

static void of_full_size_and_different(void **state)
{
    void *buf[2][MANY];
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < MANY; i++) {
            buf[kind][i] = iw_pool_get((enum iw_pool_kind)kind);
            assert_non_null(buf[kind][i]);
            memset(buf[kind][i], 16 * kind + i, size[kind]);
        }
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < MANY; i++) {
            const uint8_t *p = buf[kind][i];
            assert_int_equal(p[0], 16 * kind + i);
            assert_int_equal(p[size[kind] - 1], 16 * kind + i);
            iw_pool_put((enum iw_pool_kind)kind, buf[kind][i]);
        }
}

static void a_thread_keeps_one(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        void *p = iw_pool_get((enum iw_pool_kind)kind);
        iw_pool_put((enum iw_pool_kind)kind, NULL);
        iw_pool_put((enum iw_pool_kind)kind, p);
        assert_ptr_equal(iw_pool_get((enum iw_pool_kind)kind), p);
        iw_pool_put((enum iw_pool_kind)kind, p);
    }
}

static void *get_and_put(void *arg)
{
    void *p = iw_pool_get(IW_POOL_STAGING);
    iw_pool_put(IW_POOL_STAGING, p);
    (void)arg;
    return p;
}

/** What a thread kept is the next one's when it has ended. */
static void the_end_of_a_thread(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_full_size_and_different),
        cmocka_unit_test(a_thread_keeps_one),
        cmocka_unit_test(the_end_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/handle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PENCIL, PAPER, MANY = 100000 };

static void a_number_names_one_object(void **state)
{
    (void)state;
    struct handle_table t = {0};
    int pencil, paper;
    assert_null(handle_get(&t, PENCIL, 0));
    assert_null(handle_any(&t, PENCIL));
    handle_remove(&t, 1);
    uint32_t a = handle_add(&t, PENCIL, &pencil), b = handle_add(&t, PAPER, &paper);
    assert_true(a && b && a != b);
    assert_ptr_equal(handle_get(&t, PENCIL, a), &pencil);
    assert_ptr_equal(handle_get(&t, PAPER, b), &paper);
    assert_null(handle_get(&t, PAPER, a));
    assert_null(handle_get(&t, PENCIL, 0));
    assert_null(handle_get(&t, PENCIL, UINT32_MAX));
    assert_ptr_equal(handle_any(&t, PAPER), &paper);
    handle_remove(&t, b);
    assert_null(handle_get(&t, PAPER, b));
    assert_null(handle_any(&t, PAPER));
    handle_fini(&t);
    assert_null(handle_get(&t, PENCIL, a));
}

/* Whoever has the number of an object that is gone finds none, though its place is used again. */
static void old_numbers_name_nothing(void **state)
{
    (void)state;
    struct handle_table t = {0};
    int first, second;
    uint32_t old = handle_add(&t, PENCIL, &first), h = old;
    for (int i = 0; i < 4095; i++) {
        handle_remove(&t, h);
        handle_remove(&t, h); /* twice is once */
        h = handle_add(&t, PENCIL, &second);
        assert_int_not_equal(h, old);
        assert_null(handle_get(&t, PENCIL, old));
        assert_ptr_equal(handle_get(&t, PENCIL, h), &second);
    }
    handle_fini(&t);
}

static void many_numbers(void **state)
{
    (void)state;
    static int objects[MANY];
    static uint32_t handles[MANY];
    struct handle_table t = {0};
    for (int i = 0; i < MANY; i++)
        handles[i] = handle_add(&t, PAPER, &objects[i]);
    for (int i = 0; i < MANY; i += 3)
        handle_remove(&t, handles[i]);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(handle_get(&t, PAPER, handles[i]), i % 3 ? &objects[i] : NULL);
    handle_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_names_one_object),
        cmocka_unit_test(old_numbers_name_nothing),
        cmocka_unit_test(many_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/range.h"

#include "vectors.h"

#define MAX  UINT64_MAX
#define HALF ((uint64_t)1 << 63)

static void wraps(void **state)
{
    static const struct {
        const char *name;
        uint64_t start, len;
        bool wraps;
    } rows[] = {
        {"nothing at 0", 0, 0, false},
        {"nothing at the top", MAX, 0, false},
        {"the last byte", MAX, 1, false},
        {"one past the last byte", MAX, 2, true},
        {"all but one byte", 0, MAX, false},
        {"ends exactly at 2^64", 1, MAX, false},
        {"one more", 2, MAX, true},
        {"upper half", HALF, HALF, false},
        {"upper half and one", HALF, HALF + 1, true},
        {"top, longest", MAX, MAX, true},
        {"ordinary", 0x7f0000001000, 4096, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check(rows[i].name, range_wraps(rows[i].start, rows[i].len) == rows[i].wraps);
}

static void inside(void **state)
{
    static const struct {
        const char *name;
        uint64_t base, size, start, len;
        bool inside;
    } rows[] = {
        {"whole", 100, 50, 100, 50, true},
        {"first byte", 100, 50, 100, 1, true},
        {"last byte", 100, 50, 149, 1, true},
        {"one too long", 100, 50, 100, 51, false},
        {"one too far", 100, 50, 101, 50, false},
        {"one before", 100, 50, 99, 1, false},
        {"one behind", 100, 50, 150, 1, false},
        {"nothing at the base", 100, 50, 100, 0, true},
        {"nothing at the end", 100, 50, 150, 0, true},
        {"nothing behind the end", 100, 50, 151, 0, false},
        {"nothing before", 100, 50, 99, 0, false},
        {"nothing of nothing", 100, 0, 100, 0, true},
        {"something of nothing", 100, 0, 100, 1, false},
        {"length that wraps", 100, 50, 120, MAX, false},
        {"length that wraps to the base", 100, 50, 120, MAX - 19, false},
        {"range at the top", MAX - 9, 10, MAX, 1, true},
        {"range at the top, beyond", MAX - 9, 10, MAX, 2, false},
        {"range at the top, wrapped start", MAX - 9, 10, 0, 1, false},
        {"everything", 0, MAX, 0, MAX, true},
        {"the byte that everything lacks", 0, MAX, MAX, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check(rows[i].name, range_inside(rows[i].base, rows[i].size, rows[i].start, rows[i].len) ==
                                rows[i].inside);
}

static void fits(void **state)
{
    static const struct {
        const char *name;
        uint64_t limit, have, more;
        bool fits;
    } rows[] = {
        {"exactly", 10, 4, 6, true},
        {"one too many", 10, 4, 7, false},
        {"full", 10, 10, 0, true},
        {"full and one", 10, 10, 1, false},
        {"over already", 10, 11, 0, false},
        {"sum that wraps", 10, 4, MAX - 3, false},
        {"message length", UINT32_MAX, UINT32_MAX, 0, true},
        {"message length and one", UINT32_MAX, UINT32_MAX, 1, false},
        {"largest", MAX, MAX - 1, 1, true},
        {"largest and one", MAX, MAX, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check(rows[i].name, range_fits(rows[i].limit, rows[i].have, rows[i].more) == rows[i].fits);
}

static void rest(void **state)
{
    uint64_t left = 77;

    (void)state;
    assert_true(range_rest(10, 4, &left));
    assert_int_equal(left, 6);
    assert_true(range_rest(10, 10, &left));
    assert_int_equal(left, 0);
    assert_true(range_rest(MAX, 0, &left));
    assert_int_equal(left, MAX);
    left = 77;
    assert_false(range_rest(10, 11, &left));
    assert_false(range_rest(0, MAX, &left));
    assert_int_equal(left, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wraps),
        cmocka_unit_test(inside),
        cmocka_unit_test(fits),
        cmocka_unit_test(rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

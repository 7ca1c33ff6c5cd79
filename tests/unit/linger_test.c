/* SPDX-License-Identifier: BSD-2-Clause */
/* When the engine's thread looks on, and how seldom it does so in vain. */
#include "engine/linger.h"

#include "vectors.h"

#define MANY 1000000

static void how_long(void **state)
{
    const struct {
        unsigned us;
        long processors;
        unsigned moment;
    } rows[] = {
        {IW_LINGER_US, 2, IW_LINGER_US},
        {IW_LINGER_US + 1, 2, IW_LINGER_US},
        {IW_LINGER_US - 1, 64, IW_LINGER_US - 1},
        {0, 2, 0},
        {IW_LINGER_US, 1, 0},
        {IW_LINGER_US, -1, 0}, /* nobody knows */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct iw_linger l;
        iw_linger_init(&l, rows[i].us, rows[i].processors);
        assert_int_equal(l.us, rows[i].moment);
        for (int k = 0; k < 3; k++)
            assert_int_equal(iw_linger_begin(&l), rows[i].moment > 0);
    }
}

static void where_more_comes_each_time_it_looks_on(void **state)
{
    struct iw_linger l;
    (void)state;
    iw_linger_init(&l, IW_LINGER_US, 2);
    for (int i = 0; i < MANY; i++) {
        assert_true(iw_linger_begin(&l));
        iw_linger_end(&l, true);
    }
}

static unsigned left_out(struct iw_linger *l)
{
    unsigned n = 0;
    while (!iw_linger_begin(l))
        n++;
    return n;
}

static void in_vain_it_leaves_out_twice_as_many(void **state)
{
    struct iw_linger l;
    (void)state;
    iw_linger_init(&l, IW_LINGER_US, 2);
    assert_int_equal(left_out(&l), 0);
    for (unsigned n = 1; n <= IW_LINGER_REST_MAX; n = n * 2 + 1) {
        iw_linger_end(&l, false);
        assert_int_equal(left_out(&l), n);
    }
    iw_linger_end(&l, false);
    assert_int_equal(left_out(&l), IW_LINGER_REST_MAX);
    iw_linger_end(&l, true);
    assert_int_equal(left_out(&l), 0);
    iw_linger_end(&l, false);
    assert_int_equal(left_out(&l), 1);
}

static void that_is_next_to_nothing(void **state)
{
    struct iw_linger l;
    unsigned moments = 0;
    (void)state;
    iw_linger_init(&l, IW_LINGER_US, 2);
    for (int i = 0; i < MANY; i++)
        if (iw_linger_begin(&l)) {
            iw_linger_end(&l, false);
            moments++;
        }
    assert_true(moments < MANY / 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_long),
        cmocka_unit_test(where_more_comes_each_time_it_looks_on),
        cmocka_unit_test(in_vain_it_leaves_out_twice_as_many),
        cmocka_unit_test(that_is_next_to_nothing),
    };
    return cmocka_run_group_tests_name("linger", tests, NULL, NULL);
}

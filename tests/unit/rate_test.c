/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates, against fixed samples and, value by value, against the installed rdma-core. */
#include "real_verbs.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define REAL_RANGE 1300000 /* in Mb/s, above the highest rate */

static int rate_to_mult(int x)
{
    return ibv_rate_to_mult((enum ibv_rate)x);
}

static int mult_to_rate(int x)
{
    return (int)mult_to_ibv_rate(x);
}

static int rate_to_mbps(int x)
{
    return ibv_rate_to_mbps((enum ibv_rate)x);
}

static int mbps_to_rate(int x)
{
    return (int)mbps_to_ibv_rate(x);
}

static const struct {
    int (*ours)(int);
    int in, out;
} samples[] = {
    {rate_to_mult, IBV_RATE_2_5_GBPS, 1},
    {rate_to_mult, IBV_RATE_28_GBPS, 11},
    {rate_to_mult, IBV_RATE_14_GBPS, -1},
    {rate_to_mult, IBV_RATE_MAX, -1},
    {rate_to_mult, IBV_RATE_1200_GBPS, 480},
    {rate_to_mult, 25, -1},
    {mult_to_rate, 1, IBV_RATE_2_5_GBPS},
    {mult_to_rate, 0, IBV_RATE_MAX},
    {mult_to_rate, 3, IBV_RATE_MAX},
    {mult_to_rate, -1, IBV_RATE_MAX},
    {rate_to_mbps, IBV_RATE_5_GBPS, 5000},
    {rate_to_mbps, IBV_RATE_14_GBPS, 14062},
    {rate_to_mbps, IBV_RATE_MAX, -1},
    {mbps_to_rate, 5000, IBV_RATE_5_GBPS},
    {mbps_to_rate, 1275000, IBV_RATE_1200_GBPS},
    {mbps_to_rate, 5001, IBV_RATE_MAX},
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        assert_int_equal(samples[i].ours(samples[i].in), samples[i].out);
}

static void test_real(void **state)
{
    static const struct {
        const char *name;
        int (*ours)(int);
    } functions[] = {
        {"ibv_rate_to_mult", rate_to_mult},
        {"mult_to_ibv_rate", mult_to_rate},
        {"ibv_rate_to_mbps", rate_to_mbps},
        {"mbps_to_ibv_rate", mbps_to_rate},
    };
    (void)state;
    void *real = real_verbs_open();
    if (!real)
        skip();
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        int (*theirs)(int) = (int (*)(int))dlsym(real, functions[f].name);
        assert_non_null(theirs);
        for (int i = -REAL_RANGE; i <= REAL_RANGE; i++)
            if (functions[f].ours(i) != theirs(i))
                fail_msg("%s(%d): %d, not %d", functions[f].name, i, functions[f].ours(i),
                         theirs(i));
        assert_int_equal(functions[f].ours(INT_MIN), theirs(INT_MIN));
        assert_int_equal(functions[f].ours(INT_MAX), theirs(INT_MAX));
    }
    dlclose(real);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

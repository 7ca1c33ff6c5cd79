/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void what_is_understood(void **state)
{
    struct iw_plan plan;
    (void)state;
    assert_null(iw_plan_parse(&plan, "seed=18446744073709551615,log=/a,replay=/b"));
    assert_true(plan.seed == UINT64_MAX);
    assert_string_equal(plan.log, "/a");
    assert_string_equal(plan.replay, "/b");
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        assert_int_equal(plan.every[f], iw_fault_info(f)->every);
    assert_null(iw_plan_parse(&plan, "only=late+reg_mr,every=7"));
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        assert_int_equal(plan.every[f], f == IW_FAULT_LATE || f == IW_FAULT_REG_MR ? 7 : 0);
    assert_null(iw_plan_parse(&plan, "places=/c,ends=on"));
    assert_string_equal(plan.places, "/c");
    assert_true(plan.ends);
    assert_null(iw_plan_parse(&plan, "placement=on"));
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        assert_int_equal(plan.every[f], f == IW_FAULT_PLACEMENT);
    assert_null(iw_plan_parse(&plan, "placement=on,only=late,every=3"));
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        assert_int_equal(plan.every[f], f == IW_FAULT_PLACEMENT ? 1 : f == IW_FAULT_LATE ? 3 : 0);
    assert_null(iw_plan_parse(&plan, "only=late"));
    assert_int_equal(plan.every[IW_FAULT_LATE], iw_fault_info(IW_FAULT_LATE)->every);
}

static void what_is_not(void **state)
{
    static const char *const texts[] = {
        "",
        "seed",
        "seed=",
        "seed=x",
        "seed=-1",
        "seed=1x",
        "every=0",
        "every=x",
        "only=nothing",
        "only=late+nothing",
        "speed=1",
        "log=",
        "places=",
        "ends=off",
        "placement=yes",
        "seed=18446744073709551616",
        "every=4294967296",
    };
    struct iw_plan plan;
    char longest[2000];
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!iw_plan_parse(&plan, texts[i]))
            fail_msg("\"%s\" is understood", texts[i]);
    snprintf(longest, sizeof(longest), "log=/%0300d", 1);
    assert_non_null(iw_plan_parse(&plan, longest));
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_non_null(iw_plan_parse(&plan, longest));
}

static void names_are_names(void **state)
{
    (void)state;
    for (enum iw_fault f = 0; f < IW_FAULTS; f++) {
        assert_int_equal(iw_fault_find(iw_fault_info(f)->name), f);
        assert_int_equal(strspn(iw_fault_info(f)->name, "abcdefghijklmnopqrstuvwxyz_"),
                         strlen(iw_fault_info(f)->name));
        assert_true(iw_fault_info(f)->every > 0);
    }
    assert_int_equal(iw_fault_find("nothing"), IW_FAULTS);
}

static unsigned hits(const struct iw_plan *plan, const char *process, const char *kind,
                     uint64_t number, unsigned calls, uint64_t *sum)
{
    unsigned n = 0;
    for (unsigned call = 1; call <= calls; call++)
        if (iw_plan_decide(plan, process, IW_FAULT_REG_MR, kind, number, call)) {
            *sum = *sum * 31 + call;
            n++;
        }
    return n;
}

/* Each coordinate counts, the rate is about what it should be, and nothing else counts. */
static void decisions(void **state)
{
    struct iw_plan plan;
    uint64_t first = 0, again = 0, sum[4] = {0};
    (void)state;
    assert_null(iw_plan_parse(&plan, "seed=1,every=10"));
    unsigned n = hits(&plan, "a", "qp", 1, 10000, &first);
    assert_in_range(n, 800, 1200);
    assert_int_equal(hits(&plan, "a", "qp", 1, 10000, &again), n);
    assert_true(first == again);
    hits(&plan, "b", "qp", 1, 10000, &sum[0]);
    hits(&plan, "a", "cq", 1, 10000, &sum[1]);
    hits(&plan, "a", "qp", 2, 10000, &sum[2]);
    plan.seed = 2;
    hits(&plan, "a", "qp", 1, 10000, &sum[3]);
    for (int i = 0; i < 4; i++)
        assert_true(sum[i] != first);
    plan.every[IW_FAULT_REG_MR] = 1;
    assert_int_equal(hits(&plan, "a", "qp", 1, 100, &again), 100);
    plan.every[IW_FAULT_REG_MR] = 0;
    assert_int_equal(hits(&plan, "a", "qp", 1, 100, &again), 0);
}

static void a_line(void **state)
{
    char line[100];
    (void)state;
    iw_plan_line(line, sizeof(line), "rping.1", IW_FAULT_POST_SEND, "qp", 3, 41);
    assert_string_equal(line, "rping.1 post_send qp 3 41");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_understood),
        cmocka_unit_test(what_is_not),
        cmocka_unit_test(names_are_names),
        cmocka_unit_test(decisions),
        cmocka_unit_test(a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

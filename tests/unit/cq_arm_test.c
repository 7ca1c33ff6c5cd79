/* SPDX-License-Identifier: BSD-2-Clause */
/* Every state against every event. */
#include "cq/arm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    enum iw_arm arm;
    enum iw_arm_event event;
    enum iw_arm next;
    bool raise;
} rows[] = {
    {IW_ARM_NONE, IW_ARM_EV_SOLICITED, IW_ARM_SOLICITED, false},
    {IW_ARM_NONE, IW_ARM_EV_SOLICITED_LATE, IW_ARM_NONE, true},
    {IW_ARM_NONE, IW_ARM_EV_ANY, IW_ARM_ANY, false},
    {IW_ARM_NONE, IW_ARM_EV_ANY_LATE, IW_ARM_NONE, true},
    {IW_ARM_NONE, IW_ARM_EV_PLAIN, IW_ARM_NONE, false},
    {IW_ARM_NONE, IW_ARM_EV_MATCHED, IW_ARM_NONE, false},
    {IW_ARM_SOLICITED, IW_ARM_EV_SOLICITED, IW_ARM_SOLICITED, false},
    {IW_ARM_SOLICITED, IW_ARM_EV_SOLICITED_LATE, IW_ARM_NONE, true},
    {IW_ARM_SOLICITED, IW_ARM_EV_ANY, IW_ARM_ANY, false},
    {IW_ARM_SOLICITED, IW_ARM_EV_ANY_LATE, IW_ARM_NONE, true},
    {IW_ARM_SOLICITED, IW_ARM_EV_PLAIN, IW_ARM_SOLICITED, false},
    {IW_ARM_SOLICITED, IW_ARM_EV_MATCHED, IW_ARM_NONE, true},
    {IW_ARM_ANY, IW_ARM_EV_SOLICITED, IW_ARM_ANY, false},
    {IW_ARM_ANY, IW_ARM_EV_SOLICITED_LATE, IW_ARM_NONE, true},
    {IW_ARM_ANY, IW_ARM_EV_ANY, IW_ARM_ANY, false},
    {IW_ARM_ANY, IW_ARM_EV_ANY_LATE, IW_ARM_NONE, true},
    {IW_ARM_ANY, IW_ARM_EV_PLAIN, IW_ARM_NONE, true},
    {IW_ARM_ANY, IW_ARM_EV_MATCHED, IW_ARM_NONE, true},
};

static void cross_product(void **state)
{
    bool seen[IW_ARM_STATES][IW_ARM_EVENTS] = {0};
    size_t n = sizeof(rows) / sizeof(rows[0]);
    (void)state;
    assert_int_equal(n, IW_ARM_STATES * IW_ARM_EVENTS);
    for (size_t i = 0; i < n; i++) {
        struct iw_arm_step step = iw_arm_step(rows[i].arm, rows[i].event);
        if (step.next != rows[i].next || step.raise != rows[i].raise)
            fail_msg("row %zu: next %d, raise %d", i, step.next, step.raise);
        assert_false(seen[rows[i].arm][rows[i].event]);
        seen[rows[i].arm][rows[i].event] = true;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cross_product)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

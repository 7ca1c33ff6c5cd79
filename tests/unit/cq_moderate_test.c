/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule by which events are held back: what is done at each step, at a given time. */
#include "cq/cq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000ull

/*
 * A script: letters are steps, the answer to each follows it.
 *   1 to 9   so many completions count       x  the timer fires       >  10 us pass
 *   . wait   ! raise   t set the timer (for the rest that `left` tells, after x)
 */
static const struct {
    const char *what;
    uint16_t count, period_us;
    const char *script;
    uint64_t left_us; /* of the last x, if it sets the timer again */
} scripts[] = {
    {"off: each", 0, 0, "1!1!3!", 0},
    {"count of one: each", 1, 0, "1!1!", 0},
    {"count of one with a period: each, without a timer", 1, 50, "1!1!", 0},
    {"count", 4, 0, "1.1.1.1!1.3!", 0},
    {"count, late ones at once", 4, 0, "3.1!9!4!", 0},
    {"count without a period: no timer", 4, 0, "1.>>>>1.", 0},
    {"period alone: any number", 0, 20, "1t9.9.9.>>x!", 0},
    {"period begins anew", 0, 20, "1t>>x!>1t>>x!", 0},
    {"count first; the timer is left to run out", 2, 20, "1t1!>>x.", 0},
    {"count first, then a new first: no second timer, but its own time", 2, 20, "1t1!>1.>xt", 10},
    {"and after that", 2, 20, "1t1!>1.>xt>x!", 10},
    {"the timer fires early", 5, 30, "1t>xt", 20},
    {"nothing is due when it fires", 5, 30, "1t4!>>>x.1t", 0},
};

static void rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct iw_moderation m = {.count = scripts[i].count, .period_us = scripts[i].period_us};
        uint64_t now = 12345, left = 0;
        for (const char *s = scripts[i].script; *s; s++) {
            if (*s == '>') {
                now += 10 * US;
                continue;
            }
            enum iw_moderate act = *s == 'x' ? iw_moderate_expired(&m, now, &left)
                                             : iw_moderate_add(&m, (uint32_t)(*s - '0'), now);
            char got = ".!t"[act];
            if (got != *++s)
                fail_msg("%s: %s: %c at %s", scripts[i].what, scripts[i].script, got, s);
        }
        assert_int_equal(left, scripts[i].left_us);
    }
}

/** A count that is not reached, and a change: the event is not lost. */
static void a_change_raises_what_is_held(void **state)
{
    struct ibv_context ctx = {.num_comp_vectors = 1};
    struct iw_channel *ch = iw_channel_create(&ctx);
    struct iw_moderation m = {.count = 9};
    (void)state;
    assert_non_null(ch);
    struct iw_cq *cq = calloc(1, sizeof(*cq));
    lock_init(&cq->lock, LOCK_CQ);
    list_init(&cq->event_link);
    cq->channel = ch;
    cq->mod = m;
    assert_int_equal(iw_moderate_add(&cq->mod, 3, 1), IW_MODERATE_WAIT);
    assert_int_equal(iw_cq_moderate(cq, 0, 0), 0);
    assert_ptr_equal(iw_channel_take(ch), cq);
    assert_int_equal(iw_cq_moderate(cq, 7, 0), 0);
    assert_null(iw_channel_take(ch));
    lock_fini(&cq->lock);
    free(cq);
    assert_int_equal(iw_channel_destroy(ch), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule),
        cmocka_unit_test(a_change_raises_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

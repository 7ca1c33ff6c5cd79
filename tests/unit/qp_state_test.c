/* SPDX-License-Identifier: BSD-2-Clause */
/* Every state pair with every mask, against the rules as they are written for people. */
#include "qp/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STATES     (IBV_QPS_ERR + 1)
#define ATTRIBUTES (IBV_QP_DEST_QPN << 1)

static const char *const states[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* In the order of the bits, from bit 0. */
static const char *const attributes[] = {
    "STATE",    "CUR_STATE", "NOTIFY",  "ACCESS", "PKEY",    "PORT",   "QKEY",
    "AV",       "MTU",       "TIMEOUT", "RETRY",  "RNR",     "RQ_PSN", "ORD",
    "ALT_PATH", "MIN_RNR",   "SQ_PSN",  "IRD",    "MIGRATE", "CAP",    "DEST_QPN",
};

static const struct {
    const char *from, *to, *required, *optional;
} rules[] = {
    {"RESET", "RESET", "", ""},
    {"RESET", "INIT", "PKEY PORT ACCESS", ""},
    {"INIT", "RESET", "", ""},
    {"INIT", "INIT", "", "PKEY PORT ACCESS"},
    {"INIT", "RTR", "AV MTU DEST_QPN RQ_PSN IRD MIN_RNR", "ALT_PATH ACCESS PKEY"},
    {"INIT", "ERR", "", ""},
    {"RTR", "RESET", "", ""},
    {"RTR", "RTS", "TIMEOUT RETRY RNR SQ_PSN ORD", "CUR_STATE ALT_PATH ACCESS MIN_RNR MIGRATE"},
    {"RTR", "ERR", "", ""},
    {"RTS", "RESET", "", ""},
    {"RTS", "RTS", "", "CUR_STATE ACCESS ALT_PATH MIGRATE MIN_RNR"},
    {"RTS", "SQD", "", "NOTIFY"},
    {"RTS", "ERR", "", ""},
    {"SQD", "RESET", "", ""},
    {"SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS MIN_RNR MIGRATE"},
    {"SQD", "SQD", "", "PORT AV TIMEOUT RETRY RNR ORD IRD ALT_PATH ACCESS PKEY MIN_RNR MIGRATE"},
    {"SQD", "ERR", "", ""},
    {"SQE", "RESET", "", ""},
    {"SQE", "ERR", "", ""},
    {"ERR", "RESET", "", ""},
    {"ERR", "ERR", "", ""},
};

/* UD has no peer of its own, and the Q_Key where others have rights. */
static const struct {
    const char *from, *to, *required, *optional;
} ud_rules[] = {
    {"RESET", "RESET", "", ""},
    {"RESET", "INIT", "PKEY PORT QKEY", ""},
    {"INIT", "RESET", "", ""},
    {"INIT", "INIT", "", "PKEY PORT QKEY"},
    {"INIT", "RTR", "", "PKEY QKEY"},
    {"INIT", "ERR", "", ""},
    {"RTR", "RESET", "", ""},
    {"RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY"},
    {"RTR", "ERR", "", ""},
    {"RTS", "RESET", "", ""},
    {"RTS", "RTS", "", "CUR_STATE QKEY"},
    {"RTS", "SQD", "", "NOTIFY"},
    {"RTS", "ERR", "", ""},
    {"SQD", "RESET", "", ""},
    {"SQD", "RTS", "", "CUR_STATE QKEY"},
    {"SQD", "SQD", "", "PKEY QKEY"},
    {"SQD", "ERR", "", ""},
    {"SQE", "RESET", "", ""},
    {"SQE", "RTS", "", "CUR_STATE QKEY"},
    {"SQE", "ERR", "", ""},
    {"ERR", "RESET", "", ""},
    {"ERR", "ERR", "", ""},
};

/* What librdmacm hands over on iWARP. */
static const struct {
    const char *from, *to;
} cm_rules[] = {{"RESET", "INIT"}, {"INIT", "INIT"}, {"INIT", "RTR"}};

static int bits_of(const char *names)
{
    char copy[128], *rest;
    int mask = 0;
    snprintf(copy, sizeof(copy), "%s", names);
    for (char *n = strtok_r(copy, " ", &rest); n; n = strtok_r(NULL, " ", &rest)) {
        unsigned i = 0;
        while (strcmp(attributes[i], n) != 0)
            i++;
        mask |= 1 << i;
    }
    return mask;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/** Which of all masks with IBV_QP_STATE are legal from @p from to @p to. */
static bool expected(int rule, bool cm, int mask)
{
    static int required, optional, of = -1;
    if (cm && mask == (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return true;
    if (rule < 0)
        return false;
    if (rule != of) {
        required = bits_of(rules[rule].required) | IBV_QP_STATE;
        optional = bits_of(rules[rule].optional);
        of = rule;
    }
    for (int bit = 1; bit < ATTRIBUTES; bit <<= 1) {
        if ((required & bit) && !(mask & bit))
            return false;
        if ((mask & bit) && !((required | optional) & bit))
            return false;
    }
    return true;
}

static int rule_of(int from, int to)
{
    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (is(rules[i].from, states[from]) && is(rules[i].to, states[to]))
            return (int)i;
    return -1;
}

static bool is_cm_rule(int from, int to)
{
    for (unsigned i = 0; i < sizeof(cm_rules) / sizeof(cm_rules[0]); i++)
        if (is(cm_rules[i].from, states[from]) && is(cm_rules[i].to, states[to]))
            return true;
    return false;
}

/* What UC has not, and where it may do otherwise. */
static bool expected_of_uc(int from, int rule, int mask)
{
    const int ready_to_receive = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
              ready_to_send =
                  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
              rc_only = ready_to_receive | ready_to_send;
    bool port = from == IBV_QPS_SQD && (mask & IBV_QP_PORT);
    return !(mask & rc_only) && !port &&
           (expected(rule, false, mask) || expected(rule, false, mask | rc_only) ||
            expected(rule, false, mask | ready_to_receive) ||
            expected(rule, false, mask | ready_to_send));
}

/** A send queue that has stopped goes on, which one of RC never has to. */
static bool goes_on(int from, int to)
{
    return is(states[from], "SQE") && is(states[to], "RTS");
}

static void every_mask_of_uc(void **state)
{
    const int on = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;
    (void)state;
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++) {
            int rule = rule_of(from, to);
            for (int mask = IBV_QP_STATE; mask < ATTRIBUTES; mask += 2)
                if (iw_qp_modify_is_ok(IW_QP_RULES_UC, from, to, mask) !=
                    (goes_on(from, to) ? !(mask & ~on) : expected_of_uc(from, rule, mask)))
                    fail_msg("%s to %s with mask 0x%x", states[from], states[to], mask);
        }
}

static int ud_rule_of(int from, int to)
{
    for (unsigned i = 0; i < sizeof(ud_rules) / sizeof(ud_rules[0]); i++)
        if (is(ud_rules[i].from, states[from]) && is(ud_rules[i].to, states[to]))
            return (int)i;
    return -1;
}

static void every_mask_of_ud(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++) {
            int rule = ud_rule_of(from, to);
            int required = rule < 0 ? 0 : bits_of(ud_rules[rule].required) | IBV_QP_STATE;
            int known = rule < 0 ? 0 : required | bits_of(ud_rules[rule].optional);
            for (int mask = IBV_QP_STATE; mask < ATTRIBUTES; mask += 2) {
                bool ok = rule >= 0 && (mask & required) == required && !(mask & ~known);
                if (iw_qp_modify_is_ok(IW_QP_RULES_UD, from, to, mask) != ok)
                    fail_msg("%s to %s with mask 0x%x", states[from], states[to], mask);
            }
        }
}

static void every_mask_with_a_state(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++) {
            int rule = rule_of(from, to);
            bool cm = is_cm_rule(from, to);
            for (int mask = IBV_QP_STATE; mask < ATTRIBUTES; mask += 2)
                if (iw_qp_modify_is_ok(IW_QP_RULES_CM, from, to, mask) !=
                        expected(rule, cm, mask) ||
                    iw_qp_modify_is_ok(IW_QP_RULES_RC, from, to, mask) !=
                        expected(rule, false, mask))
                    fail_msg("%s to %s with mask 0x%x", states[from], states[to], mask);
        }
}

/** Without a state: the access flags and the port at any time, else what the state lets one set. */
static void every_mask_without_a_state(void **state)
{
    (void)state;
    for (int s = 0; s < STATES; s++) {
        int rule = rule_of(s, s);
        for (int mask = 0; mask < ATTRIBUTES; mask += 2) {
            bool any_time = mask == 0 || mask == IBV_QP_PORT || mask == IBV_QP_ACCESS_FLAGS ||
                            mask == (IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
            bool ok = any_time || expected(rule, false, mask | IBV_QP_STATE);
            bool roce = mask == 0 || expected(rule, false, mask | IBV_QP_STATE);
            if (iw_qp_modify_is_ok(IW_QP_RULES_CM, s, s, mask) != ok ||
                iw_qp_modify_is_ok(IW_QP_RULES_RC, s, s, mask) != roce)
                fail_msg("%s with mask 0x%x", states[s], mask);
        }
    }
}

/** Which steps a connection has taken already, and with which masks they may be asked for. */
static void every_step_that_is_past(void **state)
{
    const int cm = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    (void)state;
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++)
            for (int mask = IBV_QP_STATE; mask < ATTRIBUTES; mask += 2) {
                bool past = false;
                if (is(states[to], "INIT") || is(states[to], "RTR"))
                    past = mask == cm && strstr("RTS SQD SQE ERR", states[from]);
                else if (is(states[to], "RTS") && is(states[from], "RTS"))
                    past = expected(rule_of(IBV_QPS_RTR, IBV_QPS_RTS), false, mask);
                if (iw_qp_step_is_past(from, to, mask) != past)
                    fail_msg("%s to %s with mask 0x%x", states[from], states[to], mask);
            }
}

static void what_is_not_of_an_rc_qp_is_refused(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++)
            assert_false(
                iw_qp_modify_is_ok(IW_QP_RULES_CM, from, to, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mask_with_a_state),
        cmocka_unit_test(every_mask_of_uc),
        cmocka_unit_test(every_mask_of_ud),
        cmocka_unit_test(every_mask_without_a_state),
        cmocka_unit_test(every_step_that_is_past),
        cmocka_unit_test(what_is_not_of_an_rc_qp_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

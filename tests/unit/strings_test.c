/* SPDX-License-Identifier: BSD-2-Clause */
/* The strings, against fixed samples and, value by value, against the installed rdma-core. */
#include "real_verbs.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

static const char *node(int i)
{
    return ibv_node_type_str((enum ibv_node_type)i);
}

static const char *port(int i)
{
    return ibv_port_state_str((enum ibv_port_state)i);
}

static const char *event(int i)
{
    return ibv_event_type_str((enum ibv_event_type)i);
}

static const char *status(int i)
{
    return ibv_wc_status_str((enum ibv_wc_status)i);
}

static const struct {
    const char *(*ours)(int);
    int value;
    const char *text;
} samples[] = {
    {node, IBV_NODE_CA, "InfiniBand channel adapter"},
    {node, IBV_NODE_RNIC, "iWARP NIC"},
    {node, IBV_NODE_UNSPECIFIED, "unspecified"},
    {node, IBV_NODE_UNKNOWN, "unknown"},
    {node, 0, "unknown"},
    {node, 8, "unknown"},
    {port, IBV_PORT_NOP, "no state change (NOP)"},
    {port, IBV_PORT_ACTIVE, "active"},
    {port, IBV_PORT_ACTIVE_DEFER, "active defer"},
    {port, 6, "unknown"},
    {event, IBV_EVENT_CQ_ERR, "CQ error"},
    {event, IBV_EVENT_QP_FATAL, "local work queue catastrophic error"},
    {event, IBV_EVENT_WQ_FATAL, "WQ fatal"},
    {event, 20, "Device link speed change"},
    {event, 21, "unknown"},
    {event, -1, "unknown"},
    {status, IBV_WC_SUCCESS, "success"},
    {status, IBV_WC_WR_FLUSH_ERR, "Work Request Flushed Error"},
    {status, IBV_WC_REM_ACCESS_ERR, "remote access error"},
    {status, IBV_WC_TM_RNDV_INCOMPLETE, "TM software rendezvous"},
    {status, 24, "unknown"},
    {status, -1, "unknown"},
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        assert_string_equal(samples[i].ours(samples[i].value), samples[i].text);
}

/** What an earlier rdma-core does not know. */
static bool is_later(const char *(*ours)(int), int value, const char *theirs)
{
    return ours == event && value == 20 && strcmp(theirs, "unknown") == 0;
}

static void test_real(void **state)
{
    static const struct {
        const char *name;
        const char *(*ours)(int);
    } functions[] = {
        {"ibv_node_type_str", node},
        {"ibv_port_state_str", port},
        {"ibv_event_type_str", event},
        {"ibv_wc_status_str", status},
    };
    (void)state;
    void *real = real_verbs_open();
    if (!real)
        skip();
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        const char *(*theirs)(int) = (const char *(*)(int))dlsym(real, functions[f].name);
        assert_non_null(theirs);
        for (int i = -70000; i < 70000; i++)
            if (strcmp(functions[f].ours(i), theirs(i)) != 0 &&
                !is_later(functions[f].ours, i, theirs(i)))
                fail_msg("%s(%d)", functions[f].name, i);
        assert_string_equal(functions[f].ours(INT_MIN), theirs(INT_MIN));
        assert_string_equal(functions[f].ours(INT_MAX), theirs(INT_MAX));
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

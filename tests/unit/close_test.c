/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/close.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STATES (IWC_CLOSE_CLOSED + 1)
#define EVENTS (IWC_CLOSE_EV_EXPIRED + 1)

/*
 * The whole table as text: a row for each state, a column for each event in the order of the enum.
 * Actions t (Terminate), f (FIN), r (release), x (reset), ! (fail), # (illegal), then the next
 * state.
 */
static const char *const grid[STATES][EVENTS] = {
    [IWC_CLOSE_OPEN] = {" FLUSHING", "t! TERM", "# OPEN", "! PEER_FIN", "f! DRAIN", "r! CLOSED",
                        "# OPEN"},
    [IWC_CLOSE_FLUSHING] = {" FLUSHING", "t! TERM", "f! DRAIN", "! PEER_FIN", "f! DRAIN",
                            "r! CLOSED", "rx! CLOSED"},
    [IWC_CLOSE_TERM] = {" TERM", " TERM", "f DRAIN", " PEER_FIN", "f DRAIN", "r CLOSED",
                        "rx CLOSED"},
    [IWC_CLOSE_DRAIN] = {" DRAIN", " DRAIN", "# DRAIN", "r CLOSED", " DRAIN", "r CLOSED",
                         "r CLOSED"},
    [IWC_CLOSE_PEER_FIN] = {" PEER_FIN", " PEER_FIN", "r CLOSED", "# PEER_FIN", "r CLOSED",
                            "r CLOSED", "rx CLOSED"},
    [IWC_CLOSE_CLOSED] = {" CLOSED", " CLOSED", "# CLOSED", "# CLOSED", "# CLOSED", " CLOSED",
                          " CLOSED"},
};

static void describe(char *out, size_t size, struct iwc_close_step s)
{
    snprintf(out, size, "%s%s%s%s%s%s %s", s.actions & IWC_CLOSE_SEND_TERM ? "t" : "",
             s.actions & IWC_CLOSE_SEND_FIN ? "f" : "", s.actions & IWC_CLOSE_RELEASE ? "r" : "",
             s.actions & IWC_CLOSE_RESET ? "x" : "", s.actions & IWC_CLOSE_FAIL ? "!" : "",
             s.actions & IWC_CLOSE_ILLEGAL ? "#" : "", iwc_close_state_name(s.next));
}

static void every_pair(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        for (int e = 0; e < EVENTS; e++) {
            char got[64];
            describe(got, sizeof(got), iwc_close_step(s, e));
            assert_string_equal(got, grid[s][e]);
        }
    }
}

/* Whether the program may still use the connection. */
static bool runs(enum iwc_close_state s)
{
    return s == IWC_CLOSE_OPEN || s == IWC_CLOSE_FLUSHING;
}

/* What any owner can rely on, whatever the rows are. */
static void invariants(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        for (int e = 0; e < EVENTS; e++) {
            struct iwc_close_step r = iwc_close_step(s, e);
            if (r.actions & IWC_CLOSE_ILLEGAL) {
                assert_int_equal(r.actions, IWC_CLOSE_ILLEGAL);
                assert_int_equal(r.next, s);
                continue;
            }
            assert_int_equal(!!(r.actions & IWC_CLOSE_FAIL), runs(s) && !runs(r.next));
            bool ends = r.next == IWC_CLOSE_CLOSED && s != IWC_CLOSE_CLOSED;
            assert_int_equal(ends, !!(r.actions & IWC_CLOSE_RELEASE));
            if (r.actions & IWC_CLOSE_RESET)
                assert_true(r.actions & IWC_CLOSE_RELEASE);
            assert_int_equal(!!(r.actions & IWC_CLOSE_SEND_TERM),
                             r.next == IWC_CLOSE_TERM && s != IWC_CLOSE_TERM);
        }
    }
}

/* Walks every path of events; at most one Terminate, FIN, failure and release on each. */
static void walk(enum iwc_close_state s, unsigned done, int depth)
{
    for (int e = 0; depth > 0 && e < EVENTS; e++) {
        struct iwc_close_step r = iwc_close_step(s, e);
        unsigned once = r.actions & (IWC_CLOSE_SEND_TERM | IWC_CLOSE_SEND_FIN | IWC_CLOSE_FAIL |
                                     IWC_CLOSE_RELEASE);
        if (r.actions & IWC_CLOSE_ILLEGAL)
            continue;
        assert_int_equal(done & once, 0);
        if (done & IWC_CLOSE_SEND_FIN)
            assert_false(r.actions & IWC_CLOSE_SEND_TERM);
        walk(r.next, done | once, depth - 1);
    }
}

static void every_path(void **ctx)
{
    (void)ctx;
    walk(IWC_CLOSE_OPEN, 0, 6);
}

static void every_state_ends(void **ctx)
{
    (void)ctx;
    for (int s = IWC_CLOSE_FLUSHING; s < IWC_CLOSE_CLOSED; s++) {
        assert_int_equal(iwc_close_step(s, IWC_CLOSE_EV_EXPIRED).next, IWC_CLOSE_CLOSED);
        assert_int_equal(iwc_close_step(s, IWC_CLOSE_EV_LOST).next, IWC_CLOSE_CLOSED);
    }
}

/* What the predicates say is what the rows say. */
static void predicates(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        struct iwc_close_step sent = iwc_close_step(s, IWC_CLOSE_EV_SENT);
        assert_int_equal(iwc_close_sends(s), !!(sent.actions & IWC_CLOSE_SEND_FIN));
        assert_int_equal(iwc_close_sent(s),
                         s != IWC_CLOSE_OPEN && !iwc_close_may(s, IWC_CLOSE_EV_SENT));
        for (int e = 0; e < EVENTS; e++)
            assert_int_equal(iwc_close_may(s, e), !strchr(grid[s][e], '#'));
    }
}

static void names(void **ctx)
{
    (void)ctx;
    assert_string_equal(iwc_close_state_name(IWC_CLOSE_OPEN), "OPEN");
    assert_string_equal(iwc_close_state_name(IWC_CLOSE_CLOSED), "CLOSED");
    assert_string_equal(iwc_close_event_name(IWC_CLOSE_EV_ASK), "ASK");
    assert_string_equal(iwc_close_event_name(IWC_CLOSE_EV_EXPIRED), "EXPIRED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair), cmocka_unit_test(invariants),
        cmocka_unit_test(every_path), cmocka_unit_test(every_state_ends),
        cmocka_unit_test(predicates), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

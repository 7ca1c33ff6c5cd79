/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STATES IW_CM_STATE_END
#define EVENTS IW_CM_EV_END

static const char *const state_names[STATES] = {
#define X(name) #name,
    IW_CM_STATES(X)
#undef X
};

static const char *const event_names[EVENTS] = {
#define X(name) #name,
    IW_CM_EVS(X)
#undef X
};

static const char *const action_names[] = {
#define X(name, function) #name,
    IW_CM_ACTIONS(X)
#undef X
};

#define ACTIONS (sizeof(action_names) / sizeof(action_names[0]))

/* Every step: "=" where the state stays. What is not here changes nothing, or never happens. */
static const struct {
    const char *event, *from, *to, *actions;
} steps[] = {
    {"BIND", "IDLE", "BOUND", ""},
    {"LISTEN", "BOUND", "LISTEN", ""},
    {"CONNECT", "BOUND", "CONNECTING", ""},
    {"UNDO", "LISTEN CONNECTING", "BOUND", ""},
    {"ACCEPT", "DECISION", "ACCEPTED", "ORPHAN"},
    {"ACCEPT", "PEER_GONE", "DEAD", "RELEASE"},
    {"REJECT", "DECISION", "REJECTED", "TURN_AWAY"},
    {"REJECT", "PEER_GONE", "DEAD", "RELEASE"},
    {"ASK_CLOSE", "CONNECTING REQUESTING RESTING WAIT_REPLY RETRY ABANDONED", "=", "ASK"},
    {"ASK_CLOSE", "ACCEPTED AGREED ESTABLISHED", "=", "ASK"},
    {"ASK_CLOSE", "WAIT_REQUEST DECISION PEER_GONE", "=", ""},
    {"ASK_CLOSE", "ENDING ENDED CLOSING HEARD CLOSED REJECTED DEAD", "=", ""},
    {"DESTROY", "IDLE BOUND PEER_GONE", "DEAD", "RELEASE"},
    {"DESTROY", "LISTEN", "DEAD", "RELEASE DROP_CHILDREN"},
    {"DESTROY", "CONNECTING REQUESTING RESTING WAIT_REPLY", "DEAD",
     "TELL_FAILED RELEASE ECONNABORTED"},
    {"DESTROY", "RETRY ABANDONED", "ABANDONED", ""},
    {"DESTROY", "WAIT_REQUEST", "DEAD", "RELEASE UNREF"},
    {"DESTROY", "DECISION", "REJECTED", "TURN_AWAY TURN_DOWN"},
    {"DESTROY", "ACCEPTED AGREED ESTABLISHED", "=", "ASK"},
    {"DESTROY", "ENDING ENDED CLOSING HEARD CLOSED REJECTED DEAD", "=", ""},
    {"FORKED", "CONNECTING REQUESTING RESTING WAIT_REPLY RETRY ABANDONED", "DEAD",
     "TELL_FAILED RELEASE ECONNABORTED"},
    {"FORKED", "WAIT_REQUEST", "DEAD", "RELEASE UNREF"},
    {"FORKED", "DECISION", "PEER_GONE", "UNWATCH"},
    {"FORKED", "ACCEPTED AGREED ESTABLISHED", "=", "LOSE"},
    {"FORKED", "ENDING ENDED CLOSING HEARD CLOSED REJECTED", "DEAD", "RELEASE"},
    {"FORKED", "PEER_GONE DEAD", "=", ""},
    {"READY", "LISTEN", "=", "TAKE_IN"},
    {"READY", "CONNECTING", "REQUESTING", "SEND_REQUEST"},
    {"READY", "WAIT_REPLY", "=", "READ_REPLY"},
    {"READY", "WAIT_REQUEST", "=", "READ_REQUEST"},
    {"READY", "ENDING ENDED CLOSING HEARD CLOSED REJECTED", "=", "DRAIN"},
    {"HANG_UP", "DECISION", "PEER_GONE", "UNWATCH"},
    {"TIMER", "LISTEN", "=", "GO_ON"},
    {"TIMER", "CONNECTING REQUESTING", "DEAD", "TELL_FAILED RELEASE ETIMEDOUT"},
    {"TIMER", "RESTING", "RETRY", "CONNECT_AGAIN"},
    {"TIMER", "WAIT_REPLY", "DEAD", "GIVE_UP TELL_FAILED RELEASE ETIMEDOUT"},
    {"TIMER", "WAIT_REQUEST", "DEAD", "NO_REQUEST RELEASE UNREF"},
    {"TIMER", "ACCEPTED", "=", "BREAK"},
    {"TIMER", "AGREED ESTABLISHED", "=", "HOLD_OVER"},
    {"TIMER", "ENDING ENDED CLOSING HEARD CLOSED REJECTED", "=", "LINGER"},
    {"DRAINED", "ENDING ENDED", "ENDED", ""},
    {"DRAINED", "CLOSING HEARD CLOSED REJECTED", "DEAD", "RELEASE"},
    {"SENT", "REQUESTING", "WAIT_REPLY", ""},
    {"REFUSED", "CONNECTING REQUESTING", "RETRY", "PAUSE"},
    {"RESTED", "RETRY", "RESTING", ""},
    {"RESTED", "ABANDONED", "DEAD", "TELL_FAILED RELEASE ECONNABORTED"},
    {"AGAIN", "RETRY", "CONNECTING", ""},
    {"AGAIN", "ABANDONED", "DEAD", "TELL_FAILED RELEASE ECONNABORTED"},
    {"FAILED", "CONNECTING REQUESTING WAIT_REPLY RETRY AGREED", "DEAD", "TELL_FAILED RELEASE"},
    {"FAILED", "ABANDONED", "DEAD", "TELL_FAILED RELEASE ECONNABORTED"},
    {"REPLY", "REQUESTING WAIT_REPLY", "AGREED", ""},
    {"DUMB", "WAIT_REPLY", "RETRY", "REVISION_1"},
    {"LINKED", "AGREED ENDING ENDED", "=", "TELL_UP"},
    {"REQUEST", "WAIT_REQUEST", "DECISION", ""},
    {"DROP", "WAIT_REQUEST", "DEAD", "RELEASE UNREF"},
    {"DROP", "REJECTED", "DEAD", "RELEASE"},
    {"BROKEN", "ACCEPTED CLOSING HEARD CLOSED", "DEAD", "RESET RELEASE"},
    {"BROKEN", "AGREED ESTABLISHED", "=", "LOSE"},
    {"QP_READY", "ACCEPTED", "AGREED", "TELL_UP"},
    {"QP_ENDS", "ACCEPTED ESTABLISHED", "CLOSING", "CLOSE_TIMER TELL_END"},
    {"QP_ENDS", "AGREED", "ENDING", "CLOSE_TIMER"},
    {"QP_CLOSED", "ENDING ENDED", "ENDED", ""},
    {"QP_CLOSED", "CLOSING", "CLOSED", ""},
    {"QP_CLOSED", "HEARD", "DEAD", "RELEASE"},
    {"TOLD", "AGREED", "ESTABLISHED", "ASK_LATE"},
    {"TOLD", "ENDING", "CLOSING", "TELL_END"},
    {"TOLD", "ENDED", "CLOSED", "TELL_END"},
    {"HEARD", "CLOSING", "HEARD", ""},
    {"HEARD", "CLOSED", "DEAD", "RELEASE"},
};

/* Whether a list of names holds exactly this word. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += len) {
        bool begins = at == list || at[-1] == ' ';
        if (begins && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* "STATE: actions" of the step, or "" if there is none. */
static void expected(char *out, size_t size, int state, int event)
{
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (strcmp(steps[i].event, event_names[event]) ||
            !has_word(steps[i].from, state_names[state]))
            continue;
        if (out[0])
            fail_msg("%s in %s stands twice", event_names[event], state_names[state]);
        const char *to = strcmp(steps[i].to, "=") ? steps[i].to : state_names[state];
        snprintf(out, size, "%s: %s", to, steps[i].actions);
    }
}

static void describe(char *out, size_t size, struct iw_cm_row row)
{
    out[0] = '\0';
    if (row.kind != IW_CM_STEP)
        return;
    int len = snprintf(out, size, "%s: ", state_names[row.next]);
    for (size_t i = 0; i < ACTIONS; i++)
        if (row.actions & 1u << i)
            len += snprintf(out + len, size - (size_t)len, "%s ", action_names[i]);
    if (row.status)
        snprintf(out + len, size - (size_t)len, "%s", strerrorname_np(-row.status));
    else if (row.actions)
        out[len - 1] = '\0';
}

static void every_pair(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        for (int e = 0; e < EVENTS; e++) {
            char want[128], got[128];
            expected(want, sizeof(want), s, e);
            describe(got, sizeof(got), iw_cm_row(s, e));
            if (strcmp(want, got))
                fail_msg("%s in %s: \"%s\", not \"%s\"", event_names[e], state_names[s], got, want);
        }
    }
}

/* ---- what any owner can rely on, whatever the rows are ---- */

static unsigned count(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

#define OUTCOMES (IW_CM_DO_TELL_UP | IW_CM_DO_TELL_FAILED)

static void invariants(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        for (int e = 0; e < EVENTS; e++) {
            struct iw_cm_row r = iw_cm_row(s, e);
            assert_int_not_equal(r.kind, IW_CM_MISSING);
            assert_in_range(r.next, 0, STATES - 1);
            if (r.kind != IW_CM_STEP || s == IW_CM_S_DEAD) {
                assert_int_equal(r.next, s);
                assert_int_equal(r.actions, 0);
                continue;
            }
            assert_int_equal(r.next == IW_CM_S_DEAD, !!(r.actions & IW_CM_DO_RELEASE));
            if (r.actions & (IW_CM_DO_RESET | IW_CM_DO_DROP_CHILDREN | IW_CM_DO_UNREF))
                assert_true(r.actions & IW_CM_DO_RELEASE);
            /* A failed handshake is the end, and whoever hears of the end heard of no failure. */
            if (r.actions & OUTCOMES & ~IW_CM_DO_TELL_UP)
                assert_int_equal(r.next, IW_CM_S_DEAD);
            assert_true(count(r.actions & (OUTCOMES | IW_CM_DO_TELL_END)) <= 1);
            if (r.status)
                assert_true(r.actions & IW_CM_DO_TELL_FAILED);
        }
    }
}

/* Nothing is impossible of what the program may call at any time, nor in what is over. */
static void calls_and_the_dead(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++)
        for (int e = IW_CM_EV_BIND; e <= IW_CM_EV_FORKED; e++)
            assert_int_not_equal(iw_cm_row(s, e).kind, IW_CM_NEVER);
    for (int e = IW_CM_EV_DRAINED; e < EVENTS; e++)
        assert_int_not_equal(iw_cm_row(IW_CM_S_DEAD, e).kind, IW_CM_NEVER);
}

/* ---- all that can happen to an endpoint ---- */

enum {
    UP = 1,      /* ESTABLISHED is raised */
    TOLD = 2,    /* and queued */
    FAILURE = 4, /* another outcome is raised */
    END = 8,     /* DISCONNECTED is raised */
    HEARD = 16,  /* and delivered */
    LINK = 32,   /* the active side's QP is being linked */
    QP = 64,     /* is linked, or may be */
    QP_END = 128,
    RETRY = 256, /* a thread is at it */
    FLAGS = 512,
};

/* What a path has raised by now. DISCONNECTED is raised once, ESTABLISHED or a failure once. */
static unsigned raised(unsigned flags, int state, int event)
{
    struct iw_cm_row r = iw_cm_row(state, event);
    if (r.actions & OUTCOMES) {
        assert_false(flags & (UP | FAILURE | END));
        flags |= r.actions & IW_CM_DO_TELL_UP ? UP : FAILURE;
    }
    if (r.actions & IW_CM_DO_TELL_END) {
        assert_false(flags & END);
        assert_int_equal(!!(flags & UP), flags & TOLD || event == IW_CM_EV_TOLD);
        flags |= END;
    }
    switch (event) {
    case IW_CM_EV_TOLD:
        return flags | TOLD;
    case IW_CM_EV_HEARD:
        return flags | HEARD;
    case IW_CM_EV_ACCEPT:
        return r.next == IW_CM_S_ACCEPTED ? flags | QP : flags;
    case IW_CM_EV_REPLY:
        return flags | QP | LINK;
    case IW_CM_EV_LINKED:
        return flags & ~LINK;
    case IW_CM_EV_QP_ENDS:
        return flags | QP_END;
    case IW_CM_EV_RESTED:
    case IW_CM_EV_AGAIN:
    case IW_CM_EV_FAILED:
        return flags & ~RETRY;
    default:
        return r.next == IW_CM_S_RETRY ? flags | RETRY : flags;
    }
}

/* Whether the event can come, by who brings it; of the others that is what the table says. */
static bool comes(unsigned flags, int state, int event)
{
    switch (event) {
    case IW_CM_EV_TOLD:
        return (flags & (UP | TOLD)) == UP;
    case IW_CM_EV_HEARD:
        return (flags & (END | HEARD)) == END;
    case IW_CM_EV_LINKED:
        return flags & LINK;
    case IW_CM_EV_QP_READY:
    case IW_CM_EV_QP_ENDS:
        return flags & QP;
    case IW_CM_EV_QP_CLOSED:
        return flags & QP_END;
    case IW_CM_EV_RESTED:
    case IW_CM_EV_AGAIN:
        return flags & RETRY;
    case IW_CM_EV_FAILED:
        if (flags & (LINK | RETRY))
            return !(flags & QP_END); /* which a QP does not say that could not be linked */
        return state != IW_CM_S_AGREED && iw_cm_row(state, event).kind != IW_CM_NEVER;
    default:
        return iw_cm_row(state, event).kind != IW_CM_NEVER;
    }
}

/* In a child of fork(), which has none of the threads that were at something. */
static bool comes_in_child(int event)
{
    return event <= IW_CM_EV_FORKED || event == IW_CM_EV_HEARD || event == IW_CM_EV_QP_ENDS ||
           event == IW_CM_EV_QP_CLOSED;
}

static bool seen[STATES][FLAGS][2];

static void walk(int state, unsigned flags, bool child)
{
    if (seen[state][flags][child])
        return;
    seen[state][flags][child] = true;
    for (int e = 0; e < EVENTS; e++) {
        if (!comes(flags, state, e) || (child && !comes_in_child(e)))
            continue;
        struct iw_cm_row r = iw_cm_row(state, e);
        if (r.kind == IW_CM_NEVER)
            fail_msg("%s comes in %s (%#x)", event_names[e], state_names[state], flags);
        if (r.kind == IW_CM_STEP)
            walk(r.next, raised(flags, state, e), child || e == IW_CM_EV_FORKED);
    }
}

static void every_path(void **ctx)
{
    (void)ctx;
    memset(seen, 0, sizeof(seen));
    walk(IW_CM_S_IDLE, 0, false);
    walk(IW_CM_S_WAIT_REQUEST, 0, false);
    for (int s = 0; s < STATES; s++) {
        bool reached = false;
        for (unsigned f = 0; f < FLAGS; f++) {
            reached |= seen[s][f][0];
            /* What was up does not go without a word... */
            if (s == IW_CM_S_DEAD && seen[s][f][0] && (f & UP) && !(f & END))
                fail_msg("DEAD, and up, but DISCONNECTED was not raised (%#x)", f);
            /* ... and what is up has neither failed nor ended. */
            if (s == IW_CM_S_ESTABLISHED && seen[s][f][0])
                assert_int_equal(f & (UP | TOLD | END | FAILURE), UP | TOLD);
        }
        if (!reached)
            fail_msg("%s is never reached", state_names[s]);
    }
}

/* From every state, with nobody to help but time, the program's leave, and the QP's end. */
static void every_state_ends(void **ctx)
{
    static const int helps[] = {IW_CM_EV_DESTROY, IW_CM_EV_RESTED,    IW_CM_EV_QP_ENDS,
                                IW_CM_EV_TOLD,    IW_CM_EV_QP_CLOSED, IW_CM_EV_HEARD,
                                IW_CM_EV_DRAINED};
    (void)ctx;
    for (int first = 0; first < STATES; first++) {
        int s = first;
        for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++)
            if (iw_cm_row(s, helps[i]).kind == IW_CM_STEP)
                s = iw_cm_row(s, helps[i]).next;
        if (s != IW_CM_S_DEAD)
            fail_msg("%s ends in %s", state_names[first], state_names[s]);
    }
}

static void answered(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++)
        assert_int_equal(iw_cm_answered(s),
                         has_word("ACCEPTED AGREED ESTABLISHED ENDING ENDED CLOSING HEARD CLOSED "
                                  "REJECTED",
                                  state_names[s]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),         cmocka_unit_test(invariants),
        cmocka_unit_test(calls_and_the_dead), cmocka_unit_test(every_path),
        cmocka_unit_test(every_state_ends),   cmocka_unit_test(answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma/state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CALLS (CMA_CALL_END)

static const char *const call_names[CALLS] = {
#define X(name, function, hint) [CMA_CALL_##name] = #name,
    CMA_CALLS(X)
#undef X
};

/* Where each call leads, state by state; calls that an id refuses in a state are not here. */
static const struct {
    enum cma_call call;
    const char *from, *to; /* "=": the state stays */
} allowed[] = {
    {CMA_CALL_BIND, "IDLE", "ADDR_BOUND"},
    {CMA_CALL_RESOLVE_ADDR, "IDLE ADDR_BOUND", "ADDR_RESOLVED"},
    {CMA_CALL_RESOLVE_ROUTE, "ADDR_RESOLVED", "ROUTE_RESOLVED"},
    {CMA_CALL_CREATE_QP, "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT",
     "="},
    {CMA_CALL_CREATE_SRQ,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_LISTEN, "IDLE ADDR_BOUND", "LISTEN"},
    {CMA_CALL_CONNECT, "ROUTE_RESOLVED", "CONNECT"},
    {CMA_CALL_ACCEPT, "CONN_RECV", "CONNECT"},
    {CMA_CALL_REJECT, "CONN_RECV", "CLOSED"},
    {CMA_CALL_DISCONNECT, "CONN_RECV", "CONN_RECV"},
    {CMA_CALL_DISCONNECT, "CONNECT CLOSING", "CLOSING"},
    {CMA_CALL_DISCONNECT, "CLOSED", "CLOSED"},
    {CMA_CALL_SET_REUSEADDR,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_CLEAR_REUSEADDR, "IDLE", "="},
    {CMA_CALL_SET_AFONLY, "IDLE ADDR_BOUND", "="},
    {CMA_CALL_SET_TOS,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_JOIN, "ADDR_BOUND ADDR_RESOLVED", "="},
    {CMA_CALL_LEAVE,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_INIT_QP_ATTR, "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT",
     "="},
    {CMA_CALL_ESTABLISH, "CONNECT", "="},
    {CMA_CALL_NOTIFY, "CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_TELL,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT CLOSING CLOSED", "="},
    {CMA_CALL_DESTROY,
     "IDLE ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONN_RECV CONNECT CLOSING CLOSED",
     "DESTROYING"},
    {CMA_CALL_ADDR_ERROR, "ADDR_RESOLVED ROUTE_RESOLVED", "ADDR_BOUND"},
    {CMA_CALL_ENDED, "CONNECT CLOSING CLOSED", "CLOSED"},
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

static const char *expected(enum cma_state state, enum cma_call call)
{
    const char *name = cma_state_name(state);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (allowed[i].call == call && has_word(allowed[i].from, name))
            return strcmp(allowed[i].to, "=") ? allowed[i].to : name;
    }
    return NULL;
}

static void whole_table(void **unused)
{
    (void)unused;
    for (int call = 0; call < CALLS; call++) {
        for (int state = CMA_NO_STATE + 1; state < CMA_STATE_END; state++) {
            const char *want = expected((enum cma_state)state, (enum cma_call)call);
            int to = cma_state_next((enum cma_state)state, (enum cma_call)call);
            bool right = want ? to > CMA_NO_STATE && to < CMA_STATE_END &&
                                    !strcmp(cma_state_name((enum cma_state)to), want)
                              : to == -EINVAL;
            if (!right)
                fail_msg("%s in %s leads to %d, not to %s", call_names[call],
                         cma_state_name((enum cma_state)state), to, want ? want : "EINVAL");
        }
    }
}

/* No state but IDLE and CONN_RECV, in which ids begin, is out of reach. */
static void every_state_is_reached(void **unused)
{
    (void)unused;
    for (int wanted = CMA_NO_STATE + 1; wanted < CMA_STATE_END; wanted++) {
        bool reached = wanted == CMA_IDLE || wanted == CMA_CONN_RECV;
        for (int call = 0; call < CALLS; call++)
            for (int state = CMA_NO_STATE + 1; state < CMA_STATE_END; state++)
                reached |= state != wanted &&
                           cma_state_next((enum cma_state)state, (enum cma_call)call) == wanted;
        if (!reached)
            fail_msg("%s is never reached", cma_state_name((enum cma_state)wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_table),
        cmocka_unit_test(every_state_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

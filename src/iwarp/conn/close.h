/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an iWARP stream ends (RFC 5040 section 6.2, RFC 5044 section 7.2), as a table: state x event
 * -> action, next state. No I/O; the owner carries the actions out.
 */
#ifndef ANYWARP_CONN_CLOSE_H
#define ANYWARP_CONN_CLOSE_H

#include <stdbool.h>

#define IWC_CLOSE_STATES(X)                                                                        \
    X(OPEN)     /* full operation */                                                               \
    X(FLUSHING) /* close asked for; queued FPDUs go out first */                                   \
    X(TERM)     /* error found; the Terminate goes out first */                                    \
    X(DRAIN)    /* our FIN is out; reading and discarding up to the peer's */                      \
    X(PEER_FIN) /* the peer's FIN came first; queued FPDUs go out, then it is over */              \
    X(CLOSED)

#define IWC_CLOSE_EVENTS(X)                                                                        \
    X(ASK)       /* the program disconnects, or the QP goes away */                                \
    X(ERROR)     /* a local or protocol error that wants a Terminate */                            \
    X(SENT)      /* everything queued, Terminate included, is with TCP */                          \
    X(FIN)       /* the peer's FIN */                                                              \
    X(PEER_TERM) /* the peer's Terminate: nothing more is sent */                                  \
    X(LOST)      /* reset, time-out, or another fatal error of the stream */                       \
    X(EXPIRED)   /* the time limit of FLUSHING, TERM, DRAIN or PEER_FIN ran out */

enum iwc_close_state {
#define X(name) IWC_CLOSE_##name,
    IWC_CLOSE_STATES(X)
#undef X
};

enum iwc_close_event {
#define X(name) IWC_CLOSE_EV_##name,
    IWC_CLOSE_EVENTS(X)
#undef X
};

/** What the owner has to do, in bits. */
enum iwc_close_action {
    IWC_CLOSE_NOTHING = 0,
    IWC_CLOSE_SEND_TERM = 1 << 0, /* queue the Terminate, then report SENT */
    IWC_CLOSE_SEND_FIN = 1 << 1,  /* shutdown(SHUT_WR), at once */
    IWC_CLOSE_RELEASE = 1 << 2,   /* close the stream, with a FIN if none is out */
    IWC_CLOSE_RESET = 1 << 3,     /* with RELEASE: as a reset */
    IWC_CLOSE_FAIL = 1 << 4,      /* once: the QP goes to error, the program hears of the end */
    IWC_CLOSE_ILLEGAL = 1 << 5,   /* the pair cannot happen; the owner asserts */
};

struct iwc_close_step {
    unsigned actions;
    enum iwc_close_state next;
};

/** The table's row for this pair. */
struct iwc_close_step iwc_close_step(enum iwc_close_state s, enum iwc_close_event e);

/** Whether the pair can happen. */
static inline bool iwc_close_may(enum iwc_close_state s, enum iwc_close_event e)
{
    return !(iwc_close_step(s, e).actions & IWC_CLOSE_ILLEGAL);
}

/** Whether our FIN waits for what goes out before it. */
static inline bool iwc_close_sends(enum iwc_close_state s)
{
    return s == IWC_CLOSE_FLUSHING || s == IWC_CLOSE_TERM;
}

/** Whether our FIN is out, or the owner's to send. */
static inline bool iwc_close_sent(enum iwc_close_state s)
{
    return s == IWC_CLOSE_DRAIN || s == IWC_CLOSE_CLOSED;
}

const char *iwc_close_state_name(enum iwc_close_state s);
const char *iwc_close_event_name(enum iwc_close_event e);

#endif

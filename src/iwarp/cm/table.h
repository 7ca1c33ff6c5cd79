/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a CM endpoint as a table: state x event -> actions, next state. No lock and no I/O;
 * endpoint.c takes the steps, the actions are carried out where they are written.
 */
#ifndef ANYWARP_CM_TABLE_H
#define ANYWARP_CM_TABLE_H

#include <stdbool.h>

#define IW_CM_STATES(X)                                                                            \
    X(IDLE) /* no socket */                                                                        \
    X(BOUND)                                                                                       \
    X(LISTEN)                                                                                      \
    X(CONNECTING)   /* TCP */                                                                      \
    X(REQUESTING)   /* TCP is there: the thread that found out sends the MPA Request */            \
    X(RESTING)      /* refused; the timer is that of the next attempt */                           \
    X(WAIT_REPLY)   /* MPA Request sent */                                                         \
    X(RETRY)        /* TCP anew, or revision 1: the thread that found out is at it */              \
    X(ABANDONED)    /* the same, but nobody waits for the outcome any more: that thread ends it */ \
    X(WAIT_REQUEST) /* a listener's child, unknown to the program */                               \
    X(DECISION)     /* CONNECT_REQUEST given to the program */                                     \
    X(PEER_GONE)    /* the same, but the peer has hung up */                                       \
    X(ACCEPTED)     /* Reply sent; the first FPDU is waited for */                                 \
    X(AGREED)       /* up, but the program does not know */                                        \
    X(ESTABLISHED)                                                                                 \
    X(ENDING)   /* over before ESTABLISHED was queued, behind which DISCONNECTED goes */           \
    X(ENDED)    /* the same, and the QP has closed */                                              \
    X(CLOSING)  /* DISCONNECTED is queued; the QP closes, or the socket drains */                  \
    X(HEARD)    /* the same, and the program has heard of it */                                    \
    X(CLOSED)   /* the QP has closed; the socket goes when the program has heard */                \
    X(REJECTED) /* by us; the peer is to hang up */                                                \
    X(DEAD)

/* What happens: first the program's calls, for which NO is EINVAL. */
#define IW_CM_EVS(X)                                                                               \
    X(BIND)                                                                                        \
    X(LISTEN)                                                                                      \
    X(CONNECT)                                                                                     \
    X(UNDO) /* that, or LISTEN, failed at once */                                                  \
    X(ACCEPT)                                                                                      \
    X(REJECT)                                                                                      \
    X(ASK_CLOSE)                                                                                   \
    X(DESTROY) /* nobody wants it any more */                                                      \
    X(FORKED)  /* in a child, whose endpoint has lost its socket; ends a connection if twice */    \
    X(READY)   /* the socket, if it is not a linked QP's */                                        \
    X(HANG_UP) /* the peer's FIN or RST; where that is a matter of READY, NO */                    \
    X(TIMER)                                                                                       \
    X(SENT)      /* the Request is with TCP */                                                     \
    X(REFUSED)   /* by TCP, and that is not the outcome yet */                                     \
    X(RESTED)    /* RETRY: another attempt, later */                                               \
    X(AGAIN)     /* RETRY: another attempt has begun */                                            \
    X(FAILED)    /* the active side's handshake, with a status */                                  \
    X(REPLY)     /* its terms can be kept; the QP is linked next */                                \
    X(DUMB)      /* no Reply, but a FIN: revision 1 */                                             \
    X(LINKED)    /* the active side's QP */                                                        \
    X(REQUEST)   /* for the program to decide on */                                                \
    X(DROP)      /* no Request will come, or there are too many children */                        \
    X(BROKEN)    /* the Reply could not be sent */                                                 \
    X(QP_READY)  /* the first FPDU is in, or none has to be */                                     \
    X(QP_ENDS)   /* DISCONNECTED is due */                                                         \
    X(QP_CLOSED) /* has sent its FIN, or lost the stream */                                        \
    X(TOLD)      /* ESTABLISHED is queued */                                                       \
    X(HEARD)     /* DISCONNECTED was delivered, or never will be */                                \
    X(DRAINED)   /* the peer's FIN is in, or the time for it has run out */

/* Carried out in this order by void iw_cm_FUNCTION(struct iw_cm *), with no lock held. */
#define IW_CM_ACTIONS(X)                                                                           \
    X(TAKE_IN, take_in) /* accepts connections */                                                  \
    X(GO_ON, go_on)     /* accepts again */                                                        \
    X(SEND_REQUEST, send_request)                                                                  \
    X(READ_REPLY, read_reply)                                                                      \
    X(PAUSE, pause) /* gives the connection up, then RESTED */                                     \
    X(CONNECT_AGAIN, connect_again)                                                                \
    X(REVISION_1, revision_1)                                                                      \
    X(READ_REQUEST, read_request)                                                                  \
    X(NO_REQUEST, no_request) /* says so in the log */                                             \
    X(ORPHAN, orphan)         /* takes a child off its listener's accounts */                      \
    X(TURN_AWAY, turn_away)   /* counts a child as rejected */                                     \
    X(TURN_DOWN, turn_down)   /* rejects without private data */                                   \
    X(UNWATCH, unwatch)                                                                            \
    X(GIVE_UP, give_up)         /* ends the negotiation */                                         \
    X(TELL_FAILED, tell_failed) /* raises the outcome: the row's status, or that of FAILED */      \
    X(TELL_UP, tell_up)         /* raises ESTABLISHED, then TOLD */                                \
    X(CLOSE_TIMER, close_timer)                                                                    \
    X(TELL_END, tell_end)   /* raises DISCONNECTED; HEARD follows */                               \
    X(ASK, ask)             /* closes the QP, if there is one, and notes it */                     \
    X(ASK_LATE, ask_late)   /* if that was noted before the QP was there */                        \
    X(BREAK, break_off)     /* the peer has not begun: error and Terminate */                      \
    X(HOLD_OVER, hold_over) /* the time of our first FPDU */                                       \
    X(DRAIN, drain)         /* reads up to the peer's FIN, then DRAINED */                         \
    X(LINGER, linger)       /* waits while the peer takes something, then DRAINED */               \
    X(LOSE, lose)           /* the QP's stream is lost */                                          \
    X(RESET, reset)         /* with RELEASE: as a reset */                                         \
    X(RELEASE, release)                                                                            \
    X(DROP_CHILDREN, drop_children)                                                                \
    X(UNREF, put) /* of a child that the program does not know */

enum iw_cm_state {
#define X(name) IW_CM_S_##name,
    IW_CM_STATES(X)
#undef X
        IW_CM_STATE_END
};

enum iw_cm_ev {
#define X(name) IW_CM_EV_##name,
    IW_CM_EVS(X)
#undef X
        IW_CM_EV_END
};

enum {
#define X(name, function) IW_CM_BIT_##name,
    IW_CM_ACTIONS(X)
#undef X
};

/** What the owner has to do. */
enum iw_cm_action {
#define X(name, function) IW_CM_DO_##name = 1 << IW_CM_BIT_##name,
    IW_CM_ACTIONS(X)
#undef X
};

enum iw_cm_kind {
    IW_CM_MISSING,
    IW_CM_NEVER, /* cannot happen; the owner asserts */
    IW_CM_NO,    /* changes nothing: a call that is not allowed, or another thread was quicker */
    IW_CM_STEP,
};

struct iw_cm_row {
    unsigned actions; /* IW_CM_DO_* */
    enum iw_cm_kind kind;
    enum iw_cm_state next; /* the same state, unless it is a step elsewhere */
    int status;            /* of an attempt that fails: a negative errno; 0: the caller's */
};

/** The table's row for this pair. */
struct iw_cm_row iw_cm_row(enum iw_cm_state state, enum iw_cm_ev ev);

/** Whether the handshake is sent: what is sent now is the QP's, or a rejection. */
static inline bool iw_cm_answered(enum iw_cm_state s)
{
    return s >= IW_CM_S_ACCEPTED && s < IW_CM_S_DEAD;
}

#endif

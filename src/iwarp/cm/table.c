/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/table.h"

#include <errno.h>

/* Short names, for the table only. */
enum {
#define X(name) name = IW_CM_S_##name,
    IW_CM_STATES(X)
#undef X
        SAME,
#define X(name, function) DO_##name = IW_CM_DO_##name,
    IW_CM_ACTIONS(X)
#undef X
};

/* clang-format off */
#define ON(event) [IW_CM_EV_##event]
#define NEVER {.kind = IW_CM_NEVER}
#define NO {.kind = IW_CM_NO}
#define ROW(what, to, error)                                                                       \
    {.kind = IW_CM_STEP, .actions = (what), .next = (enum iw_cm_state)(to), .status = (error)}
#define DO(what, to) ROW(what, to, 0)
#define GO(to) DO(0, to)
#define STAY(what) DO(what, SAME)
#define FAIL(what, error) ROW((what) | DO_TELL_FAILED | DO_RELEASE, DEAD, error)
#define ABORT FAIL(0, -ECONNABORTED)
#define TIMEOUT FAIL(0, -ETIMEDOUT)
#define RELEASE DO(DO_RELEASE, DEAD)
#define FORGET DO(DO_RELEASE | DO_UNREF, DEAD)
#define END DO(DO_CLOSE_TIMER | DO_TELL_END, CLOSING)

/*
 * The thread that takes a step carries it out; another may take the next one meanwhile. So what a
 * thread finds out may come late: that is NO, and NEVER is only what no order of threads can bring.
 */
static const struct iw_cm_row rows[IW_CM_EV_END][IW_CM_STATE_END] = {
    /* ---- the program's calls ---- */
    ON(BIND) = {[IDLE] = GO(BOUND), [BOUND ... DEAD] = NO},
    ON(LISTEN) = {[IDLE] = NO, [BOUND] = GO(LISTEN), [LISTEN ... DEAD] = NO},
    ON(CONNECT) = {[IDLE] = NO, [BOUND] = GO(CONNECTING), [LISTEN ... DEAD] = NO},
    ON(UNDO) = {
        [IDLE ... BOUND] = NO, [LISTEN ... CONNECTING] = GO(BOUND), [REQUESTING ... DEAD] = NO,
    },
    ON(ACCEPT) = {
        [IDLE ... WAIT_REQUEST] = NO, [DECISION] = DO(DO_ORPHAN, ACCEPTED), [PEER_GONE] = RELEASE,
        [ACCEPTED ... DEAD] = NO,
    },
    ON(REJECT) = {
        [IDLE ... WAIT_REQUEST] = NO, [DECISION] = DO(DO_TURN_AWAY, REJECTED),
        [PEER_GONE] = RELEASE, [ACCEPTED ... DEAD] = NO,
    },
    ON(ASK_CLOSE) = {
        [IDLE ... LISTEN] = NO, [CONNECTING ... ABANDONED] = STAY(DO_ASK),
        [WAIT_REQUEST ... PEER_GONE] = STAY(0), [ACCEPTED ... ESTABLISHED] = STAY(DO_ASK),
        [ENDING ... DEAD] = STAY(0),
    },
    ON(DESTROY) = {
        [IDLE ... BOUND] = RELEASE,
        [LISTEN] = DO(DO_RELEASE | DO_DROP_CHILDREN, DEAD), /* now that none is being made */
        [CONNECTING ... WAIT_REPLY] = ABORT, [RETRY ... ABANDONED] = GO(ABANDONED),
        [WAIT_REQUEST] = FORGET, [DECISION] = DO(DO_TURN_AWAY | DO_TURN_DOWN, REJECTED),
        [PEER_GONE] = RELEASE, [ACCEPTED ... ESTABLISHED] = STAY(DO_ASK),
        [ENDING ... DEAD] = STAY(0),
    },
    ON(FORKED) = {
        [IDLE ... LISTEN] = NO, [CONNECTING ... ABANDONED] = ABORT, [WAIT_REQUEST] = FORGET,
        [DECISION] = DO(DO_UNWATCH, PEER_GONE), [PEER_GONE] = STAY(0),
        [ACCEPTED ... ESTABLISHED] = STAY(DO_LOSE), [ENDING ... REJECTED] = RELEASE,
        [DEAD] = STAY(0),
    },

    /* ---- the socket and the timer ---- */
    ON(READY) = {
        [IDLE ... BOUND] = NEVER, [LISTEN] = STAY(DO_TAKE_IN),
        [CONNECTING] = DO(DO_SEND_REQUEST, REQUESTING), [REQUESTING ... RESTING] = NO,
        [WAIT_REPLY] = STAY(DO_READ_REPLY), [RETRY ... ABANDONED] = NO,
        [WAIT_REQUEST] = STAY(DO_READ_REQUEST), [DECISION ... ESTABLISHED] = NO,
        [ENDING ... REJECTED] = STAY(DO_DRAIN), [DEAD] = NO,
    },
    ON(HANG_UP) = {
        [IDLE ... BOUND] = NEVER, [LISTEN ... WAIT_REQUEST] = NO,
        [DECISION] = DO(DO_UNWATCH, PEER_GONE), [PEER_GONE ... DEAD] = NO,
    },
    ON(TIMER) = {
        [IDLE] = NEVER, [BOUND] = NO, [LISTEN] = STAY(DO_GO_ON),
        [CONNECTING ... REQUESTING] = TIMEOUT, [RESTING] = DO(DO_CONNECT_AGAIN, RETRY),
        [WAIT_REPLY] = FAIL(DO_GIVE_UP, -ETIMEDOUT),
        [RETRY ... ABANDONED] = NO,
        [WAIT_REQUEST] = DO(DO_NO_REQUEST | DO_RELEASE | DO_UNREF, DEAD),
        [DECISION ... PEER_GONE] = NO, [ACCEPTED] = STAY(DO_BREAK),
        [AGREED ... ESTABLISHED] = STAY(DO_HOLD_OVER), [ENDING ... REJECTED] = STAY(DO_LINGER),
        [DEAD] = NO,
    },
    ON(DRAINED) = {
        [IDLE ... ESTABLISHED] = NEVER, [ENDING ... ENDED] = GO(ENDED),
        [CLOSING ... REJECTED] = RELEASE, [DEAD] = NO,
    },

    /* ---- the active side's handshake ---- */
    ON(SENT) = {
        [IDLE ... CONNECTING] = NEVER, [REQUESTING] = GO(WAIT_REPLY),
        [RESTING ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(REFUSED) = {
        [IDLE ... LISTEN] = NEVER, [CONNECTING ... REQUESTING] = DO(DO_PAUSE, RETRY),
        [RESTING ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(RESTED) = {
        [IDLE ... WAIT_REPLY] = NEVER, [RETRY] = GO(RESTING), [ABANDONED] = ABORT,
        [WAIT_REQUEST ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(AGAIN) = {
        [IDLE ... WAIT_REPLY] = NEVER, [RETRY] = GO(CONNECTING), [ABANDONED] = ABORT,
        [WAIT_REQUEST ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(FAILED) = {
        [IDLE ... LISTEN] = NEVER, [CONNECTING ... REQUESTING] = FAIL(0, 0), [RESTING] = NEVER,
        [WAIT_REPLY ... RETRY] = FAIL(0, 0), [ABANDONED] = ABORT,
        [WAIT_REQUEST ... ACCEPTED] = NEVER,
        [AGREED] = FAIL(0, 0), /* the QP could not be linked */
        [ESTABLISHED ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(REPLY) = {
        [IDLE ... CONNECTING] = NEVER, [REQUESTING] = GO(AGREED), /* with itself */
        [RESTING] = NEVER, [WAIT_REPLY] = GO(AGREED), [RETRY ... DEAD] = NO,
    },
    ON(DUMB) = {
        [IDLE ... RESTING] = NEVER, [WAIT_REPLY] = DO(DO_REVISION_1, RETRY), [RETRY ... DEAD] = NO,
    },
    ON(LINKED) = {
        [IDLE ... ACCEPTED] = NEVER, [AGREED] = STAY(DO_TELL_UP), [ESTABLISHED] = NEVER,
        [ENDING ... ENDED] = STAY(DO_TELL_UP), /* what came behind the Reply was the end */
        [CLOSING ... REJECTED] = NEVER, [DEAD] = NO,
    },

    /* ---- the passive side's ---- */
    ON(REQUEST) = {
        [IDLE ... ABANDONED] = NEVER, [WAIT_REQUEST] = GO(DECISION), [DECISION ... DEAD] = NO,
    },
    ON(DROP) = {
        [IDLE ... ABANDONED] = NEVER, [WAIT_REQUEST] = FORGET, [DECISION ... CLOSED] = NO,
        [REJECTED] = RELEASE, [DEAD] = NO,
    },
    ON(BROKEN) = {
        [IDLE ... PEER_GONE] = NEVER, [ACCEPTED] = DO(DO_RESET | DO_RELEASE, DEAD),
        [AGREED ... ESTABLISHED] = STAY(DO_LOSE), /* a peer that did not wait for the Reply */
        [ENDING ... ENDED] = NO, [CLOSING ... CLOSED] = DO(DO_RESET | DO_RELEASE, DEAD),
        [REJECTED] = NEVER, [DEAD] = NO,
    },

    /* ---- the connection ---- */
    ON(QP_READY) = {
        [IDLE ... PEER_GONE] = NEVER, [ACCEPTED] = DO(DO_TELL_UP, AGREED), [AGREED ... CLOSED] = NO,
        [REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(QP_ENDS) = {
        [IDLE ... PEER_GONE] = NEVER, [ACCEPTED] = END, [AGREED] = DO(DO_CLOSE_TIMER, ENDING),
        [ESTABLISHED] = END, [ENDING ... CLOSED] = NO, [REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(QP_CLOSED) = {
        [IDLE ... ESTABLISHED] = NEVER, [ENDING ... ENDED] = GO(ENDED), [CLOSING] = GO(CLOSED),
        [HEARD] = RELEASE, [CLOSED] = NO, [REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(TOLD) = {
        [IDLE ... ACCEPTED] = NEVER, [AGREED] = DO(DO_ASK_LATE, ESTABLISHED), [ESTABLISHED] = NEVER,
        [ENDING] = DO(DO_TELL_END, CLOSING), [ENDED] = DO(DO_TELL_END, CLOSED),
        [CLOSING ... REJECTED] = NEVER, [DEAD] = NO,
    },
    ON(HEARD) = {
        [IDLE ... ENDED] = NEVER, [CLOSING] = GO(HEARD), [HEARD] = NEVER, [CLOSED] = RELEASE,
        [REJECTED] = NEVER, [DEAD] = NO,
    },
};
/* clang-format on */

struct iw_cm_row iw_cm_row(enum iw_cm_state state, enum iw_cm_ev ev)
{
    struct iw_cm_row row = rows[ev][state];
    if (row.kind != IW_CM_STEP || (int)row.next == SAME)
        row.next = state;
    return row;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The ibv state machines of RC, UC and UD QPs as a table; what a transition does is in modify.c. */
#ifndef ANYWARP_QP_STATE_H
#define ANYWARP_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/** By whose rules. */
enum iw_qp_rules {
    IW_QP_RULES_RC, /* InfiniBand's of RC */
    IW_QP_RULES_UC, /* of UC, which has neither retries nor reads */
    IW_QP_RULES_UD, /* of UD, which has no peer of its own, and a Q_Key */
    IW_QP_RULES_CM, /* of RC, and the masks of the CM on iWARP */
};

/**
 * Whether a QP in state @p from may be modified with @p mask; @p to is the state asked for, or
 * @p from without IBV_QP_STATE in the mask. Legal are the masks of the table that kernel and
 * programs agree on, and beside them those of the CM on iWARP, whose connections bring their own
 * addresses and numbers: port and access flags alone, with the state for INIT and RTR, without it
 * at any time.
 */
bool iw_qp_modify_is_ok(enum iw_qp_rules rules, enum ibv_qp_state from, enum ibv_qp_state to,
                        int mask);

/**
 * Whether @p mask, which has IBV_QP_STATE, asks for a step on the way to RTS that a connection has
 * taken: INIT or RTR of a QP in RTS or later, with the mask of the CM; and RTS of one in RTS with
 * the mask that leads there from RTR. Programs that move their own QPs do not know how far the CM
 * is. It succeeds and leaves the state alone.
 */
bool iw_qp_step_is_past(enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/** "RESET", "INIT" and so on; "?" for none. */
const char *iw_qp_state_name(enum ibv_qp_state state);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/state.h"

struct transition {
    bool legal;
    int required, optional; /* beside IBV_QP_STATE */
    bool cm;                /* also with the CM's mask alone */
    bool unreliable;        /* legal for UC and UD alone */
};

#define CM_MASK (IBV_QP_ACCESS_FLAGS | IBV_QP_PORT)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

/* clang-format off */
#define TO_RESET [IBV_QPS_RESET] = {.legal = true}
#define TO_ERR [IBV_QPS_ERR] = {.legal = true}

/* What is not named is illegal. */
static const struct transition table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
    [IBV_QPS_RESET] = {
        TO_RESET,
        [IBV_QPS_INIT] = {.legal = true, .cm = true,
            .required = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    },
    [IBV_QPS_INIT] = {
        TO_RESET,
        TO_ERR,
        [IBV_QPS_INIT] = {.legal = true, .cm = true,
            .optional = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
        [IBV_QPS_RTR] = {.legal = true, .cm = true,
            .required = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
            .optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    },
    [IBV_QPS_RTR] = {
        TO_RESET,
        TO_ERR,
        [IBV_QPS_RTS] = {.legal = true,
            .required = RETRIES | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
            .optional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
                IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    },
    [IBV_QPS_RTS] = {
        TO_RESET,
        TO_ERR,
        [IBV_QPS_RTS] = {.legal = true,
            .optional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
                IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER},
        [IBV_QPS_SQD] = {.legal = true, .optional = IBV_QP_EN_SQD_ASYNC_NOTIFY},
    },
    [IBV_QPS_SQD] = {
        TO_RESET,
        TO_ERR,
        [IBV_QPS_RTS] = {.legal = true,
            .optional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
                IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
        [IBV_QPS_SQD] = {.legal = true,
            .optional = IBV_QP_PORT | IBV_QP_AV | RETRIES | IBV_QP_MAX_QP_RD_ATOMIC |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
                IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    },
    [IBV_QPS_SQE] = {
        TO_RESET,
        TO_ERR,
        [IBV_QPS_RTS] = {.unreliable = true,
            .optional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    },
    [IBV_QPS_ERR] = {TO_RESET, TO_ERR},
};
/* clang-format on */

static bool fits(const struct transition *t, int rest)
{
    return (rest & t->required) == t->required && !(rest & ~(t->required | t->optional));
}

/* What UC has not. */
#define RC_ONLY                                                                                    \
    (RETRIES | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static bool fits_uc(const struct transition *t, enum ibv_qp_state from, int rest)
{
    struct transition uc = *t;
    uc.required &= ~RC_ONLY;
    uc.optional &= ~(RC_ONLY | (from == IBV_QPS_SQD ? IBV_QP_PORT : 0));
    return fits(&uc, rest);
}

/* What a peer of one's own needs. */
#define CONNECTED                                                                                  \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_ALT_PATH |             \
     IBV_QP_PATH_MIG_STATE | IBV_QP_ACCESS_FLAGS)

/** The Q_Key stands where others have rights, and can be set at each step that sets anything. */
static bool fits_ud(const struct transition *t, enum ibv_qp_state from, int rest)
{
    struct transition ud = *t;
    bool sets = (t->required | t->optional) & IBV_QP_ACCESS_FLAGS;
    if (t->required & IBV_QP_ACCESS_FLAGS)
        ud.required |= IBV_QP_QKEY;
    else if (sets)
        ud.optional |= IBV_QP_QKEY;
    ud.required &= ~(RC_ONLY | CONNECTED);
    ud.optional &= ~(RC_ONLY | CONNECTED | (from == IBV_QPS_SQD ? IBV_QP_PORT : 0));
    return fits(&ud, rest);
}

static bool fits_rules(enum iw_qp_rules rules, const struct transition *t, enum ibv_qp_state from,
                       int rest)
{
    if (rules == IW_QP_RULES_UD)
        return fits_ud(t, from, rest);
    return rules == IW_QP_RULES_UC ? fits_uc(t, from, rest) : fits(t, rest);
}

bool iw_qp_modify_is_ok(enum iw_qp_rules rules, enum ibv_qp_state from, enum ibv_qp_state to,
                        int mask)
{
    const struct transition *t = &table[from][to];
    int rest = mask & ~IBV_QP_STATE;
    bool cm = rules == IW_QP_RULES_CM;
    if (!(mask & IBV_QP_STATE) && !(rest & ~(cm ? CM_MASK : 0)))
        return true;
    bool unreliable = rules == IW_QP_RULES_UC || rules == IW_QP_RULES_UD;
    if (!t->legal && !(t->unreliable && unreliable))
        return false;
    if (cm && t->cm && rest == CM_MASK)
        return true;
    return fits_rules(rules, t, from, rest);
}

bool iw_qp_step_is_past(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    int rest = mask & ~IBV_QP_STATE;
    if (to == IBV_QPS_RTS)
        return from == IBV_QPS_RTS && fits(&table[IBV_QPS_RTR][IBV_QPS_RTS], rest);
    return from >= IBV_QPS_RTS && (to == IBV_QPS_INIT || to == IBV_QPS_RTR) && rest == CM_MASK;
}

const char *iw_qp_state_name(enum ibv_qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

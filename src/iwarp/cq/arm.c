/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/arm.h"

/* clang-format off */
#define KEEP(arm)  {IW_ARM_##arm, false}
#define RAISE      {IW_ARM_NONE, true}

/*
 * One event an arm. A solicited arm does not weaken a full one. While a full arm stands nothing newer
 * is in the CQ, for it would have raised; LATE cannot happen there, and would have to raise.
 */
static const struct iw_arm_step table[IW_ARM_STATES][IW_ARM_EVENTS] = {
    /* armed for             SOLICITED        .._LATE  ANY        .._LATE  PLAIN            MATCHED */
    [IW_ARM_NONE]      = {KEEP(SOLICITED), RAISE,   KEEP(ANY), RAISE,   KEEP(NONE),      KEEP(NONE)},
    [IW_ARM_SOLICITED] = {KEEP(SOLICITED), RAISE,   KEEP(ANY), RAISE,   KEEP(SOLICITED), RAISE},
    [IW_ARM_ANY]       = {KEEP(ANY),       RAISE,   KEEP(ANY), RAISE,   RAISE,           RAISE},
};
/* clang-format on */

struct iw_arm_step iw_arm_step(enum iw_arm arm, enum iw_arm_event event)
{
    return table[arm][event];
}

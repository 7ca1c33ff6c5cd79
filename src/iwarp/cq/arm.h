/* SPDX-License-Identifier: BSD-2-Clause */
/* The arm rule of a CQ as a table: what it is armed for, against what happens to it. */
#ifndef ANYWARP_CQ_ARM_H
#define ANYWARP_CQ_ARM_H

#include "cq/cq.h"

#define IW_ARM_STATES 3

/** LATE: the CQ holds an unpolled completion that matches, newer than the last raised one. */
enum iw_arm_event {
    IW_ARM_EV_SOLICITED, /* the program asks for solicited or failed completions */
    IW_ARM_EV_SOLICITED_LATE,
    IW_ARM_EV_ANY, /* the program asks for all */
    IW_ARM_EV_ANY_LATE,
    IW_ARM_EV_PLAIN,   /* a completion is added, neither solicited nor failed */
    IW_ARM_EV_MATCHED, /* a solicited or failed one is added */
    IW_ARM_EVENTS,
};

struct iw_arm_step {
    enum iw_arm next;
    bool raise; /* an event is due */
};

struct iw_arm_step iw_arm_step(enum iw_arm arm, enum iw_arm_event event);

#endif

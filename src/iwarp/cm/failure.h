/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connection did not come about, in words. */
#ifndef ANYWARP_CM_FAILURE_H
#define ANYWARP_CM_FAILURE_H

#include "cm/endpoint.h"

/**
 * Says in the log, at level 2, where the connection attempt of @p cm ended, which the event tells
 * as one of four numbers. Called before that event.
 * @param status  of the event, negative
 * @param qp_num  that was to be connected
 */
void iw_cm_log_failure(const struct iw_cm *cm, int status, uint32_t qp_num);

/** The peer's answer is due: to TCP, or to the Request. If it takes a second, the log says so. */
void iw_cm_expect_answer(struct iw_cm *cm);

#endif

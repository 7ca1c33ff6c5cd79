/* SPDX-License-Identifier: BSD-2-Clause */
/* The sentences for where an attempt to connect ended. */
#ifndef ANYWARP_CM_REASON_H
#define ANYWARP_CM_REASON_H

#include "conn/nego.h"

#define IW_CM_REASON_MAX 256

/** The negative errno for a negotiation that is REJECTED or FAILED. */
int iw_cm_reason_status(const struct mpa_nego *nego);

/**
 * @param nego    NULL: the MPA Request had not gone
 * @param status  negative errno
 * @param ms      that the step could take, for -ETIMEDOUT
 */
void iw_cm_reason(const struct mpa_nego *nego, int status, unsigned ms,
                  char text[IW_CM_REASON_MAX]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that ended lately, so that who still uses one is told so. Kept only where the log is read, or
 * a check goes on.
 */
#ifndef ANYWARP_MEM_GONE_H
#define ANYWARP_MEM_GONE_H

#include <stdbool.h>
#include <stdint.h>

/** The region or window of @p stag was destroyed. Any thread, any lock. */
void iw_gone_note(uint32_t stag);

/** Whether it is among the last 64. */
bool iw_gone_lately(uint32_t stag);

#endif

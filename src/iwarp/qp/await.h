/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits for completion events that cannot end, as the QPs of the channel show. */
#ifndef ANYWARP_QP_AWAIT_H
#define ANYWARP_QP_AWAIT_H

#include "cq/channel.h"

/**
 * An iw_channel_look: no CQ is armed, or for solicited events only, or nothing is posted that would
 * complete with an event.
 */
bool iw_await_look(struct iw_channel *ch);

#endif

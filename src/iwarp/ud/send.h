/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending datagrams: the kernel takes them at once, or they wait in the send queue, in order. Who
 * polls tries again, else a timer does. What cannot be sent for another reason than a work request
 * at fault is lost.
 *
 * A receiver of this host that has no room is waited for 10 ms, or 200 ms where nothing is for
 * another; then it has stopped: what is for it is lost until it takes something again, and holds up
 * nothing more. While room is short, as it was found in the last 20 ms, what is for this host waits
 * until it fills a pack (pack.h), or for 20 us and the next look.
 */
#ifndef ANYWARP_UD_SEND_H
#define ANYWARP_UD_SEND_H

#include "ud/ud.h"

/** The transmit() of struct iw_datagrams. */
void iw_ud_transmit(struct iw_qp *qp, struct iw_wakes *w);

#endif

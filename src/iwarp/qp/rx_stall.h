/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that stall. Where early messages have come to their bound the socket is not read
 * (rx_early.h), and the peer's FIN may stand behind a closed window, where nobody hears of it: that
 * of a process that died while its data waited. So what stands in the socket of a connection that
 * has stalled for IW_STALL_MS is taken in as it comes, up to a bound a connection and one a
 * process, until the end behind it is met. Reception goes on with that before it reads the socket
 * again. rx.lock throughout.
 *
 * A stall begins when reception pauses, and is over when a read finds the socket empty: so one that
 * receives now and then, and never keeps up, stalls, too.
 */
#ifndef ANYWARP_QP_RX_STALL_H
#define ANYWARP_QP_RX_STALL_H

#include "qp/qp.h"

#define IW_STALL_MS 500 /* about */

/** Reception pauses: has the CM call iw_qp_stalled() in time, unless it is going to. */
void iw_stall_paused(struct iw_qp *qp);

/** The time is over. @return whether the connection takes in from now on */
bool iw_stall_due(struct iw_qp *qp);

/**
 * Takes in what the socket has, some MB at a time.
 * @return as recv of the stream, or -ENOBUFS: no more than this is taken in
 */
ssize_t iw_stall_take_in(struct iw_qp *qp);

/** Gives back the next bytes, in order. @return how many, at most @p room */
uint32_t iw_stall_give(struct iw_qp_rx *rx, uint8_t *p, uint32_t room);

/** Forgets what was taken in. */
void iw_stall_drop(struct iw_qp_rx *rx);

#endif

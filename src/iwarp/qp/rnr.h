/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiver not ready: how long a message to a QP by number waits for a receive. The responder keeps
 * the time, min_rnr_timer of its own for each rnr_retry of the requester (7: for ever), and then
 * discards the message: the requester's work request fails with IBV_WC_RNR_RETRY_EXC_ERR, and the
 * QP stays as it is, but has no connection any more.
 *
 * UC waits IW_UC_PATIENCE_MS, as receivers are programs that have to get a processor, then drops
 * what came, and from now on at once what finds no receive, until one is posted. Nobody hears of
 * it.
 */
#ifndef ANYWARP_QP_RNR_H
#define ANYWARP_QP_RNR_H

#include <stdint.h>

#define IW_UC_PATIENCE_MS 100

struct iw_qp;

/**
 * Judges the message that waits, if one does. With no lock held.
 * @return us after which this is to be called again, 0: not before the next IW_QP_NEWS_NOT_READY
 */
uint64_t iw_qp_not_ready(struct iw_qp *qp);

/** What a min_rnr_timer means. @return us */
uint32_t iw_rnr_timer_us(uint8_t code);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-way streams of small messages: a message with others behind it completes when it stands in
 * the batch, which goes out later, with those that follow.
 *
 * When that is so, and for how long, is decided in pacing.h. The message that was posted last is
 * left: a program that waits for all of its messages before it tells somebody of them, by whatever
 * means, has to find them ahead of what it tells.
 *
 * What is corked goes out when it is enough, when a poll finds that nothing was posted since the
 * last one, or that something was posted to another QP behind it, when a CQ of the QP is armed, and
 * before the stream is closed; after IW_PACE_CORK_NS at the next poll; and, if the program does not
 * call the library any more, at a look of the engine's thread, within milliseconds. A stream that
 * has little to send in that time is none, and has to prove itself again.
 */
#ifndef ANYWARP_QP_TX_CORK_H
#define ANYWARP_QP_TX_CORK_H

#include "qp/qp.h"

/** It is no stream, or not any more: the peer was heard, or messages were few. */
void iw_cork_pull_locked(struct iw_qp_tx *tx);

/**
 * In a pass: completes what was posted since the last time, but for the last message, if it may
 * wait.
 * @param polled  a program polls, and waits for no event of the QP's CQs
 * @param now     iw_now()
 * @return false if everything unsent must be sent now
 */
bool iw_cork_locked(struct iw_qp *qp, bool polled, uint64_t now, struct iw_wakes *w);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which order the bytes of several connections are used.
 *
 * A peer writes over one connection and tells of it over another. An adapter uses bytes as they
 * arrive, so what was written stands there when the message comes, and programs with several QPs
 * rely on that. Here each connection is a socket of its own. So where peers may write to a process
 * that has more than one connection, a completion that tells something of a peer is shown to the
 * program only after a whole look at the sockets that began when it was in its queue already.
 *
 * What is sent and what comes in over one connection: qp/tx_taken.h. In which order it is sent over
 * several: iw_deferred_run_behind().
 *
 * The limits: of two threads of the program that poll or wait for events, one may show a message
 * while the other is at bytes that arrived before. And from each connection comes what one receive
 * takes, at least 64 KB, so that bulk in front of a message does not hold it up for long.
 */
#ifndef ANYWARP_CQ_VISIBILITY_H
#define ANYWARP_CQ_VISIBILITY_H

#include "cq/cq.h"

/** From now on peers may write to memory of the process. */
void iw_visibility_expose(void);

/** A connection came (@p n is 1) or went (-1). */
void iw_visibility_connections(int n);

/** The calling thread leaves a connection alone, as another thread is at it. */
void iw_visibility_busy(void);

/**
 * Called with @p n completions taken from the queue, before the program sees them. No lock is held
 * that a pass takes.
 */
void iw_visibility_show(struct iw_cq *cq, const struct ibv_wc *wc, int n);

#endif

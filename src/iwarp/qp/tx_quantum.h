/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a QP sends at a stretch, before others are looked at.
 *
 * Streams are fastest in long stretches: acknowledgements that arrive during a system call are
 * dealt with at its end, together. But the short message of another connection waits for the end,
 * too. So a stretch is long only while no other QP moves bytes in this thread (iw_pace_quantum()).
 */
#ifndef ANYWARP_QP_TX_QUANTUM_H
#define ANYWARP_QP_TX_QUANTUM_H

#include "qp/qp.h"

/** This thread moves bytes of the QP of @p tx. */
void iw_quantum_note(const struct iw_qp_tx *tx);

/** This thread is about to send bytes of the QP of @p tx. @return its quantum: a batch,
 * in bytes */
size_t iw_quantum_bytes_locked(struct iw_qp_tx *tx);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements, and what else a QP by number tells its peer: InfiniBand completes what the peer
 * has placed or delivered, TCP only tells what it has taken.
 *
 * An end tells, cumulatively, up to which offset of the stream it has placed or delivered what came
 * in: what waits for a receive is not, nor what came behind it, and requests are answered rather.
 * It is told with what is sent next, in front of it; when a poll finds nothing, or a CQ is armed;
 * at once where no program polls; and in front of a Terminate and a FIN. A response tells as much,
 * of what was posted before its request.
 *
 * Each note is an RDMA Write of no bytes, which every peer has to take (RFC 5040 section 5.1), to a
 * key that no region has; its tagged offset is what it tells.
 */
#ifndef ANYWARP_QP_ACK_H
#define ANYWARP_QP_ACK_H

#include "conn/note.h"
#include "wire/ddp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_qp;
struct iw_qp_tx;

#define IW_RNR_FOR_EVER 7 /* as an rnr_retry */

struct iw_acks {
    _Atomic uint64_t placed; /* stream offset; changed under rx.lock */

    /* under rx.lock */
    bool begun;             /* a message came in */
    bool work;              /* and since placed was changed */
    uint8_t peer_rnr_retry; /* as the peer told */
    uint64_t notes;         /* that came in */

    /* under tx.lock */
    uint64_t told;     /* of placed */
    uint64_t received; /* what the peer told */
    bool retry_told;   /* our rnr_retry */
};

/** A connection begins. Both locks. */
void iw_acks_init(struct iw_acks *a);

/** Reception has come so far. rx.lock. @return whether the peer is to be told */
bool iw_acks_advance(struct iw_qp *qp);
/** As that, when the message that reception is at cannot be taken: the peer learns which it is. */
void iw_acks_failed(struct iw_qp *qp);

/** Whether the peer is to be told. tx.lock. */
bool iw_ack_due_locked(const struct iw_qp *qp);

/**
 * Cuts the notes that are due, in front of what goes out next. tx.lock, with a batch that has room
 * for them.
 * @param work  a work request is next
 */
void iw_acks_cut_locked(struct iw_qp *qp, bool work);

/** All posted up to this offset is placed or delivered. tx.lock. */
void iw_acked_locked(struct iw_qp_tx *tx, struct iw_acks *a, uint64_t offset);

/**
 * A Write of no bytes came in. rx.lock.
 * @param is_note  [out] whether it was one of these
 * @return IW_OK, or TAGGED_BOUNDS: what it acknowledges was never sent
 */
int iw_on_note(struct iw_qp *qp, const struct ddp_seg *seg, bool *is_note);

#endif

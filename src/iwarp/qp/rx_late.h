/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes whose bytes land in pieces, in any order and late, as adapters may have it: a fault,
 * faults/chaos.h. What is kept is all that RFC 5040 and InfiniBand promise: whatever tells the
 * program, or the peer, that a Write is done comes when its bytes are there. What looks at the
 * memory instead sees them come.
 *
 * No eight bytes at a multiple of 8 land apart, and of two Writes to the same bytes, by one key,
 * the later one stays. Each piece is checked again when it lands; memory that the program has taken
 * away meanwhile is left alone.
 *
 * rx.lock, and no section, where nothing else is said.
 */
#ifndef ANYWARP_QP_RX_LATE_H
#define ANYWARP_QP_RX_LATE_H

#include "qp/qp.h"

/** A new QP, nobody else knows of it: its Writes are asked for. Without memory they are not. */
void iw_late_init(struct iw_qp *qp);
/** The QP is stopped: what has not landed is dropped. No lock. */
void iw_late_fini(struct iw_qp *qp);

/**
 * A segment of a Write comes in for a QP that has rx.late.
 * @return whether it lands late: iw_late_keep() is next, if it may land at all
 */
bool iw_late_begin(struct iw_qp *qp, const struct ddp_seg *seg);

/** Keeps what is to land at @p to, which is not looked at. */
void iw_late_keep(struct iw_qp *qp, const struct ddp_seg *seg, const uint8_t *to);

/** As the next two, for a QP that has rx.late. */
bool iw_late_has(const struct iw_qp *qp);
void iw_late_land_now(struct iw_qp *qp);

/** Whether something has not landed. */
static inline bool iw_late_any(const struct iw_qp *qp)
{
    return __builtin_expect(qp->rx.late != NULL, 0) && iw_late_has(qp);
}

/** All lands. */
static inline void iw_late_land(struct iw_qp *qp)
{
    if (__builtin_expect(qp->rx.late != NULL, 0))
        iw_late_land_now(qp);
}

/** The same for all QPs of the process. No lock. */
void iw_late_land_all(void);

#endif

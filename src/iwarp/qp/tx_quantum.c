/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_quantum.h"

/* The QP that this thread moved bytes of last; a hint, it may be gone. */
static __thread const struct iw_qp *mover;

void iw_turn_note(const struct iw_qp *qp)
{
    mover = qp;
}

size_t iw_turn_bytes_locked(struct iw_qp *qp)
{
    uint64_t at = qp->tx.sent_pos;
    assert_held(&qp->sq_lock);
    if (mover != qp) {
        mover = qp;
        qp->alone_from = at;
    }
    return at - qp->alone_from < IW_TURN_MAX ? IW_TURN_MIN : IW_TURN_MAX;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_quantum.h"

#include "qp/pacing.h"

/* The QP that this thread moved bytes of last; a hint, it may be gone. */
static __thread const struct iw_qp_tx *mover;

void iw_quantum_note(const struct iw_qp_tx *tx)
{
    mover = tx;
}

size_t iw_quantum_bytes_locked(struct iw_qp_tx *tx)
{
    uint64_t at = tx->half.sent_pos;
    assert_held(&tx->lock);
    if (mover != tx) {
        mover = tx;
        tx->alone_from = at;
    }
    return iw_pace_quantum(at - tx->alone_from);
}

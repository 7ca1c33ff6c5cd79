/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rnr.h"

#include "engine/timer.h"
#include "qp/end.h"
#include "qp/link.h"
#include "qp/rx_early.h"
#include "qp/rx_place.h"
#include "qp/rx_stream.h"

uint32_t iw_rnr_timer_us(uint8_t code)
{
    /* InfiniBand Architecture Specification 1, table 45: in 10 us, but for code 0, 655.36 ms */
    static const uint32_t units[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return units[code & 31] * 10;
}

/** @return us that a message may wait, 0: none; UINT64_MAX: for ever */
static uint64_t patience_locked(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    if (qp->uc)
        return IW_UC_PATIENCE_MS * 1000;
    if (qp->acks.peer_rnr_retry == IW_RNR_FOR_EVER)
        return UINT64_MAX;
    lock_get(&qp->tx.lock);
    uint64_t us = (uint64_t)qp->acks.peer_rnr_retry * iw_rnr_timer_us(qp->attr.min_rnr_timer);
    lock_put(&qp->tx.lock);
    return us;
}

/** The peer learns of it, and that is the end of the connection, not of the QP. */
static void give_up(struct iw_qp *qp)
{
    struct terminate t;
    assert_held(&qp->rx.lock);
    iw_acks_failed(qp);
    terminate_from_error(&t, IW_ERR_UNTAGGED_NO_BUFFER, iw_early_first(&qp->rx), 0);
    lock_get(&qp->tx.lock);
    if (qp->tx.linked && !qp->end.error && qp->end.close == IWC_CLOSE_OPEN) {
        qp->end.term_len = (uint8_t)terminate_encode(qp->end.term, &t);
        atomic_store(&qp->end.over, true);
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_ERROR, &qp->rx.wakes);
        iw_qp_transmit_locked(qp, &qp->rx.wakes);
    }
    lock_put(&qp->tx.lock);
    atomic_store(&qp->rx.starved, false);
    iw_early_drop(qp);
}

uint64_t iw_qp_not_ready(struct iw_qp *qp)
{
    uint64_t us = 0;
    bool lost = false;
    lock_get(&qp->rx.lock);
    uint64_t most = patience_locked(qp);
    if (iw_early_any(&qp->rx) && !atomic_load(&qp->end.over) && most != UINT64_MAX) {
        uint64_t waited = (iw_now() - qp->rx.early_since) / 1000;
        if (waited < most)
            us = most - waited;
        else if (qp->uc)
            lost = true;
        else
            give_up(qp);
    }
    if (lost)
        iw_early_lose(qp);
    iw_rx_leave(qp);
    if (lost)
        iw_recv_resume(qp);
    return us;
}

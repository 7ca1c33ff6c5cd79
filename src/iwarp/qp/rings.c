/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rings.h"

#include "cq/visibility.h"
#include "qp/link.h"
#include "qp/rx_stream.h"
#include "wire/bytes.h"
#include "wire/fpdu.h"

#include <sched.h>

/* Large ones come one by one (rx_direct.h), the rest at once: at least the 64 KB that are promised
 * in cq/visibility.h. */
#define FPDUS_A_LOOK 8

void iw_rings_init(struct iw_qp *qp, struct iwc_stream_shm *s, bool responder, size_t early)
{
    qp->rings = (struct iw_rings){.shm = s};
    iw_stats_set(&qp->stats->sq.ring, 0);
    iw_stats_set(&qp->stats->rq.ring, 0);
    qp->rx.half.rings = s;
    if (s)
        iwc_stream_shm_begin(s, early, !responder);
}

bool iw_rings_cut_locked(struct iw_qp *qp)
{
    struct iw_qp_tx *tx = &qp->tx;
    uint8_t hdr[RDMAP_PATH_HDR];
    struct iwc_msg m = {.opcode = RDMAP_PATH, .hdr = hdr, .hdr_len = RDMAP_PATH_HDR};
    assert_held(&tx->lock);
    put_be32(hdr, RDMAP_PATH_SWITCH);
    if (!iwc_tx_cut(&tx->half, tx->batch, &m))
        return false;
    tx->says &= (uint8_t)~IW_SAYS_SWITCH;
    iwc_stream_shm_switch_out(qp->rings.shm, tx->half.cut_pos - tx->half.sent_pos);
    iw_stats_set(&qp->stats->sq.ring, 1);
    return false;
}

void iw_rings_switch(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    if (qp->tx.linked && qp->rings.shm && !qp->rings.told) {
        qp->rings.told = true;
        qp->tx.says |= IW_SAYS_SWITCH;
    }
    lock_put(&qp->tx.lock);
}

int iw_rings_heard(void *up, uint32_t kind)
{
    struct iw_qp *qp = up;
    uint64_t end = qp->rx.half.offset + fpdu_size(DDP_UNTAGGED_HDR + RDMAP_PATH_HDR);
    if (kind != RDMAP_PATH_SWITCH || !iwc_stream_shm_switch_in(qp->rings.shm, end))
        return IW_ERR_OPCODE;
    uint64_t key;
    if (iw_source_place(qp->tx.source, &key))
        iw_source_quiet(key); /* all further bytes are the bell's source's */
    iw_stats_set(&qp->stats->rq.ring, 1);
    return IW_OK;
}

/* ---- the rings ---- */

bool iw_rings_rung(struct iw_qp *qp, bool *looked)
{
    bool moved = false;
    *looked = lock_try(&qp->rx.lock);
    if (!*looked) {
        iw_visibility_busy();
        sched_yield(); /* as in iw_qp_ready() */
        return false;
    }
    struct iwc_stream_shm *s = qp->rings.shm;
    bool more = s;
    for (int i = 0; i < FPDUS_A_LOOK && more; i++) {
        more = iw_rx_go_on(qp);
        moved |= more;
        more = more && qp->rx.staged;
    }
    bool waits = s && iwc_stream_shm_asked(s);
    iw_rx_leave(qp);
    if (waits)
        moved |= iw_tx_go_on(qp);
    return moved;
}

bool iw_rings_rest(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool used = qp->tx.linked && qp->rings.shm && iwc_stream_shm_rest(qp->rings.shm);
    lock_put(&qp->tx.lock);
    return used;
}

uint32_t iw_rings_want_locked(struct iw_qp *qp)
{
    enum iwc_shm_room room = qp->rings.shm ? iwc_stream_shm_want(qp->rings.shm) : IWC_SHM_TCP;
    if (room == IWC_SHM_NOW)
        iw_deferred_push(&qp->tx.deferred);
    return room == IWC_SHM_TCP ? EPOLLOUT : 0;
}

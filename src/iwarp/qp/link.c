/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/link.h"

#include "common/patience.h"
#include "common/sys.h"
#include "common/usdt.h"
#include "cq/visibility.h"
#include "env/conf.h"
#include "env/pool.h"
#include "observe/record_stream.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/reset.h"
#include "qp/retry.h"
#include "qp/rings.h"
#include "qp/rx_early.h"
#include "qp/rx_stall.h"
#include "qp/rx_stream.h"
#include "qp/section.h"
#include "qp/tx_answers.h"
#include "qp/tx_queue.h"
#include "qp/tx_requests.h"
#include "wire/fpdu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FPDU_AUTO_EXT 16384 /* ULPDU bytes to another host's anywarp */

int iw_qp_reserve(struct iw_qp *qp, struct iw_cm *cm, const struct iw_qp_owner *owner,
                  uint8_t ack_timeout)
{
    int r = -EINVAL;
    lock_get(&qp->tx.lock);
    bool early = qp->tx.state <= IBV_QPS_RTR || (qp->ib && qp->tx.state == IBV_QPS_RTS);
    if (!qp->end.error && !qp->was_linked && !qp->cm && early) {
        qp->cm = cm;
        atomic_store(&qp->owner, owner);
        if (ack_timeout)
            qp->attr.timeout = ack_timeout;
        atomic_fetch_add(&qp->pins, 1); /* for the handshake */
        r = 0;
    }
    lock_put(&qp->tx.lock);
    return r;
}

void iw_qp_leave_owner(struct iw_qp *qp)
{
    const struct iw_qp_owner *owner = atomic_load(&qp->owner);
    if (owner)
        owner->leave(qp);
    /* A thread that came from the endpoint, or from a failed handshake, may still be inside. */
    patience_for(&qp->pins);
}

void iw_qp_unreserve(struct iw_qp *qp, bool failed)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    qp->cm = NULL;
    if (failed && !qp->ib) {
        iw_qp_explain(qp, IW_ERR_LLP_CLOSED, "no connection came about");
        iw_qp_fail_locked(qp, IW_ERR_LLP_CLOSED, NULL, 0, &w);
    }
    iw_qp_leave(qp, &w);
    atomic_fetch_sub(&qp->pins, 1);
}

void iw_qp_set_mulpdu_locked(struct iw_qp *qp)
{
    const struct iw_conf *conf = iw_conf();
    uint32_t one = fpdu_mulpdu(qp->stream->ops->emss(qp->stream), qp->tx.half.markers);
    if (conf->fpdu == IW_ON)
        qp->tx.half.mulpdu = one;
    else if (conf->fpdu == IW_OFF)
        qp->tx.half.mulpdu = conf->fpdu_bytes;
    else if (qp->ext)
        qp->tx.half.mulpdu = qp->same_host ? FPDU_ULPDU_MAX : FPDU_AUTO_EXT;
    else
        qp->tx.half.mulpdu = one;
}

/** Room for reads and atomics in flight each way; freed with the QP. @return 0 or -ENOMEM */
static int make_rings(struct iw_qp *qp, const struct mpa_result *a)
{
    iw_depth_init(&qp->tx.ird, a->ird);
    iw_depth_init(&qp->tx.ord, a->ord);
    qp->tx.irq = calloc(qp->tx.ird.mask + 1, sizeof(*qp->tx.irq));
    qp->tx.orq = calloc(qp->tx.ord.mask + 1, sizeof(*qp->tx.orq));
    return qp->tx.irq && qp->tx.orq ? 0 : -ENOMEM;
}

static void announce(struct iw_qp *qp, const struct iw_link *l)
{
    const struct mpa_result *a = l->agreed;
    iw_stats_qp_link(qp->stats,
                     &(struct iw_stats_link){
                         .local = l->local,
                         .peer = l->peer,
                         .flags = (a->crc ? STATS_CRC : 0) | (a->tx_markers ? STATS_MARKERS : 0) |
                                  (a->ext ? STATS_ANYWARP : 0) | (a->p2p ? STATS_P2P : 0) |
                                  (l->responder ? 0 : STATS_INITIATOR),
                         .rev = a->rev,
                         .ird = a->ird,
                         .ord = a->ord,
                         .tls = l->tls ? &l->tls->name : NULL,
                     });
    USDT5(connection, qp->pub.qp_num, !l->responder, a->rev, a->ird, a->ord);
    qp->rx.half.flow = &qp->stats->in;
    qp->tx.half.flow = &qp->stats->out;
}

/** A QP that the program moves has attributes of its own. */
static void begin_ib_locked(struct iw_qp *qp, const struct iw_link *l)
{
    struct ibv_qp_attr *attr = &qp->attr;
    assert_held(&qp->tx.lock);
    qp->ib = true;
    if (!l->ib->moves)
        return;
    attr->dest_qp_num = l->ib->peer_qpn;
    attr->retry_cnt = l->ib->retry_cnt;
    attr->rnr_retry = l->ib->rnr_retry;
    if (!attr->timeout)
        attr->timeout = IW_RETRY_TIMEOUT;
    attr->max_rd_atomic = (uint8_t)qp->tx.ord.limit;
    attr->max_dest_rd_atomic = (uint8_t)qp->tx.ird.limit;
}

int iw_qp_link(struct iw_qp *qp, const struct iw_link *l)
{
    const struct mpa_result *a = l->agreed;
    lock_get(&qp->rx.lock);
    lock_get(&qp->tx.lock);
    int r = qp->end.error ? -ECONNABORTED : make_rings(qp, a); /* the program ended it meanwhile */
    if (!r) {
        qp->stream = l->stream;
        iw_record_link(qp->stream, qp->pub.qp_num);
        qp->tx.source = l->source;
        iw_source_link(qp->tx.source, qp->pub.qp_num);
        qp->same_host = l->same_host;
        qp->ext = a->ext;
        iwc_rx_init(&qp->rx.half, &iw_qp_upcalls, qp, a->crc, a->ext);
        iwc_tx_init(&qp->tx.half, a->crc, a->tx_markers, FPDU_MULPDU_MIN);
        iw_qp_set_mulpdu_locked(qp);
        announce(qp, l);
        iw_acks_init(&qp->acks);
        qp->tx.hold = l->hold;
        qp->silent = l->responder;
        qp->rx.rtr_first = l->responder && a->rtr == MPA_RTR_WRITE;
        iw_rings_init(qp, l->shm, l->responder, l->early_len);
        iw_stats_set(&qp->stats->rq.tcp, l->tcp);
        qp->tx.says = l->rtr;
        qp->end.close = IWC_CLOSE_OPEN;
        qp->tx.linked = qp->was_linked = true;
        iw_visibility_connections(1);
        if (l->ib)
            begin_ib_locked(qp, l);
        if (!qp->ib || (l->ib && l->ib->moves))
            iw_qp_set_state_locked(qp, IBV_QPS_RTS);
        else if (qp->attr.max_rd_atomic < qp->tx.ord.limit && qp->tx.state == IBV_QPS_RTS)
            qp->tx.ord.limit = qp->attr.max_rd_atomic;
    }
    lock_put(&qp->tx.lock);
    if (!r && l->early_len)
        iw_rx_feed(qp, l->early, l->early_len);
    qp->rx.work |= !r;
    iw_rx_leave(qp);
    return r;
}

void iw_qp_release(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    qp->tx.hold = false;
    iw_qp_transmit_locked(qp, &w);
    iw_qp_leave(qp, &w);
}

/** Whether all that is cut is with TCP, and no message is cut in part. */
static bool between_messages_locked(const struct iw_qp_tx *tx)
{
    bool begun = tx->sq.cut != tx->sq.tail && iw_sq_at(&tx->sq, tx->sq.cut)->begun;
    return !begun && !iw_answer_begun(tx) && tx->half.sent_pos == tx->half.cut_pos;
}

bool iw_qp_nudge(struct iw_qp *qp)
{
    struct iw_wakes w;
    lock_get(&qp->rx.lock);
    bool silent = qp->rx.half.fpdus == 0;
    lock_put(&qp->rx.lock);
    iw_qp_enter(qp, &w);
    bool open = qp->tx.linked && !qp->end.error && qp->end.close == IWC_CLOSE_OPEN;
    if (silent && open && qp->tx.half.sent_pos > 0 && between_messages_locked(&qp->tx)) {
        qp->tx.says |= MPA_RTR_WRITE;
        iw_qp_transmit_locked(qp, &w);
    }
    iw_qp_leave(qp, &w);
    return silent;
}

void iw_qp_close(struct iw_qp *qp, bool abrupt)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    if (abrupt)
        iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, &w);
    else
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_ASK, &w);
    if (qp->silent) /* a responder may close without having been spoken to */
        qp->tx.hold = false;
    iw_qp_transmit_locked(qp, &w);
    iw_qp_leave(qp, &w);
}

void iw_qp_expired(struct iw_qp *qp, unsigned awaits)
{
    struct iw_wakes w;
    iw_qp_enter_rx(qp, &w);
    uint32_t unused = (uint32_t)qp->rx.early_bytes + qp->rx.staged + qp->rx.stall.bytes;
    bool anew = atomic_load(&qp->rx.awaits) != awaits;
    bool fin = qp->fin_known && qp->rx.paused && !anew && !atomic_load(&qp->end.over);
    if (fin) {
        iw_qp_explain(qp, IW_ERR_LLP_LOST, "the peer closed it, no receive came for its messages");
        iw_rx_abandon(qp);
    }
    lock_get(&qp->tx.lock);
    if (fin)
        iw_qp_fin_locked(qp, unused, &w);
    if (iwc_close_may(qp->end.close, IWC_CLOSE_EV_EXPIRED))
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_EXPIRED, &w);
    lock_put(&qp->tx.lock);
    iw_qp_leave_rx(qp, &w);
}

void iw_qp_stalled(struct iw_qp *qp)
{
    lock_get(&qp->rx.lock);
    if (qp->stream && !atomic_load(&qp->end.over) && iw_stall_due(qp))
        iw_rx_take_in(qp);
    iw_rx_leave(qp);
}

void iw_qp_unreached(struct iw_qp *qp, const char *why)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    bool due = iw_qp_is_stranded_locked(qp) && qp->tx.sq.head != qp->tx.sq.tail;
    if (due && qp->uc) {
        if (!qp->tx.linked) /* else TCP may still look at what was posted */
            iw_sq_lose_locked(qp, &w);
    } else if (due) {
        iw_sq_blame_locked(&qp->tx.sq, IBV_WC_RETRY_EXC_ERR);
        iw_qp_explain(qp, IW_ERR_LLP_LOST, "%s", why);
        iw_qp_fail_locked(qp, IW_ERR_LLP_LOST, NULL, 0, &w);
    }
    iw_qp_leave(qp, &w);
}

void iw_qp_watched(struct iw_qp *qp, bool watched)
{
    lock_get(&qp->tx.lock);
    qp->tx.watched = watched;
    lock_put(&qp->tx.lock);
}

void iw_qp_lose(struct iw_qp *qp, int error)
{
    struct iw_wakes w;
    iw_qp_enter_rx(qp, &w);
    lock_get(&qp->tx.lock);
    iw_qp_lost_locked(qp, error, &w);
    lock_put(&qp->tx.lock);
    iw_qp_leave_rx(qp, &w);
}

bool iw_qp_heard(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool heard = !qp->silent;
    lock_put(&qp->tx.lock);
    return heard;
}

bool iw_qp_was_linked(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool was = qp->was_linked;
    lock_put(&qp->tx.lock);
    return was;
}

bool iw_qp_closed_enough(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool busy = qp->tx.linked && iwc_close_sends(qp->end.close);
    lock_put(&qp->tx.lock);
    return !busy;
}

bool iw_qp_drains(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool drains = qp->tx.linked && qp->end.close == IWC_CLOSE_DRAIN;
    lock_put(&qp->tx.lock);
    return drains;
}

bool iw_qp_try_sent(struct iw_qp *qp)
{
    if (!lock_try(&qp->tx.lock))
        return false;
    bool sent = !qp->tx.linked || iwc_close_sent(qp->end.close);
    lock_put(&qp->tx.lock);
    return sent;
}

void iw_qp_end_is_told(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    qp->end.untold = false;
    iw_qp_leave(qp, &w);
}

void iw_qp_unlink(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter_rx(qp, &w);
    lock_get(&qp->tx.lock);
    qp->tx.linked = qp->end.untold = false;
    if (!qp->ib)
        iw_qp_fail_locked(qp, IW_ERR_LLP_CLOSED, NULL, 0, &w);
    iw_qp_strand_locked(qp, &w);
    if (qp->stream)
        iw_visibility_connections(-1);
    qp->stream = NULL;
    memset(&qp->rings, 0, sizeof(qp->rings));
    qp->tx.source = NULL;
    qp->cm = NULL;
    iw_pool_put(IW_POOL_BATCH, qp->tx.batch);
    qp->tx.batch = NULL;
    iw_rx_fini(qp);
    iw_qp_unmeet_locked(qp);
    lock_put(&qp->tx.lock);
    w.cm &= IW_QP_NEWS_STRANDED; /* the caller is the CM */
    iw_qp_leave_rx(qp, &w);
}

/* ---- what epoll is asked for ---- */

void iw_qp_want_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    if (!qp->tx.source)
        return;
    uint32_t events = 0;
    if (!qp->tx.rx_ended && (!qp->tx.rx_paused || qp->tx.rx_takes_in || qp->end.error))
        events |= EPOLLIN | EPOLLRDHUP;
    else if (!qp->tx.rx_ended && !qp->fin_known)
        events |= EPOLLRDHUP;
    if (qp->tx.blocked && !qp->tx.retries)
        events |= iw_rings_want_locked(qp);
    bool reads = (events & EPOLLIN) && qp->rings.shm && !iw_source_wants(qp->tx.source, EPOLLIN);
    iw_source_want(qp->tx.source, events);
    if (reads) /* again: nobody was rung for meanwhile */
        iwc_stream_shm_arm(qp->rings.shm);
}

void iw_qp_stop_reading_locked(struct iw_qp *qp)
{
    qp->tx.rx_ended = true;
    iw_qp_want_locked(qp);
}

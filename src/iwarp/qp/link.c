/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/link.h"

#include "common/sys.h"
#include "common/usdt.h"
#include "cq/visibility.h"
#include "env/conf.h"
#include "env/pool.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/rx_early.h"
#include "qp/rx_stall.h"
#include "qp/rx_stream.h"
#include "qp/tx_answers.h"
#include "qp/tx_queue.h"
#include "qp/tx_requests.h"
#include "wire/fpdu.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#define FPDU_AUTO_EXT 16384 /* ULPDU bytes to another host's anywarp */

int iw_qp_reserve(struct iw_qp *qp, struct iw_cm *cm, const struct iw_qp_owner *owner,
                  uint8_t ack_timeout)
{
    int r = -EINVAL;
    lock_get(&qp->sq_lock);
    if (!qp->error && !qp->was_linked && !qp->cm && qp->state <= IBV_QPS_RTR) {
        qp->cm = cm;
        atomic_store(&qp->owner, owner);
        if (ack_timeout)
            qp->attr.timeout = ack_timeout;
        atomic_fetch_add(&qp->pins, 1); /* for the handshake */
        r = 0;
    }
    lock_put(&qp->sq_lock);
    return r;
}

void iw_qp_leave(struct iw_qp *qp)
{
    const struct iw_qp_owner *owner = atomic_load(&qp->owner);
    if (owner)
        owner->leave(qp);
    /* A thread that came from the endpoint, or from a failed handshake, may still be inside. */
    while (atomic_load(&qp->pins))
        sched_yield();
}

void iw_qp_unreserve(struct iw_qp *qp, bool failed)
{
    struct iw_wakes w = {0};
    lock_get(&qp->sq_lock);
    qp->cm = NULL;
    if (failed) {
        iw_qp_explain(qp, IW_ERR_LLP_CLOSED, "no connection came about");
        iw_qp_fail_locked(qp, IW_ERR_LLP_CLOSED, NULL, 0, &w);
    }
    lock_put(&qp->sq_lock);
    iw_qp_settle(qp, &w);
    iw_wakes_fire(&w);
    atomic_fetch_sub(&qp->pins, 1);
}

void iw_qp_set_mulpdu_locked(struct iw_qp *qp)
{
    const struct iw_conf *conf = iw_conf();
    uint32_t one = fpdu_mulpdu(qp->stream->ops->emss(qp->stream), qp->tx.markers);
    if (conf->fpdu == IW_ON)
        qp->tx.mulpdu = one;
    else if (conf->fpdu == IW_OFF)
        qp->tx.mulpdu = conf->fpdu_bytes;
    else if (qp->ext)
        qp->tx.mulpdu = qp->same_host ? FPDU_ULPDU_MAX : FPDU_AUTO_EXT;
    else
        qp->tx.mulpdu = one;
}

/** Room for reads and atomics in flight each way; freed with the QP. @return 0 or -ENOMEM */
static int make_rings(struct iw_qp *qp, const struct mpa_result *a)
{
    iw_depth_init(&qp->ird, a->ird);
    iw_depth_init(&qp->ord, a->ord);
    qp->irq = calloc(qp->ird.mask + 1, sizeof(*qp->irq));
    qp->orq = calloc(qp->ord.mask + 1, sizeof(*qp->orq));
    return qp->irq && qp->orq ? 0 : -ENOMEM;
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
                     });
    USDT5(connection, qp->pub.qp_num, !l->responder, a->rev, a->ird, a->ord);
    qp->rx.flow = &qp->stats->in;
    qp->tx.flow = &qp->stats->out;
}

int iw_qp_link(struct iw_qp *qp, const struct iw_link *l)
{
    const struct mpa_result *a = l->agreed;
    lock_get(&qp->rx_lock);
    lock_get(&qp->sq_lock);
    int r = qp->error ? -ECONNABORTED : make_rings(qp, a); /* the program ended it meanwhile */
    if (!r) {
        qp->stream = l->stream;
        qp->source = l->source;
        __atomic_store_n(&qp->source->qp_num, qp->pub.qp_num, __ATOMIC_RELAXED);
        qp->same_host = l->same_host;
        qp->ext = a->ext;
        iwc_rx_init(&qp->rx, &iw_qp_upcalls, qp, a->crc, a->ext);
        iwc_tx_init(&qp->tx, a->crc, a->tx_markers, FPDU_MULPDU_MIN);
        iw_qp_set_mulpdu_locked(qp);
        announce(qp, l);
        qp->tx_hold = l->hold;
        qp->silent = l->responder;
        qp->rtr_first = l->responder && a->rtr == MPA_RTR_WRITE;
        qp->rtr = l->rtr;
        qp->close = IWC_CLOSE_OPEN;
        qp->linked = qp->was_linked = true;
        iw_order_connections(1);
        iw_qp_set_state_locked(qp, IBV_QPS_RTS);
    }
    lock_put(&qp->sq_lock);
    if (!r && l->early_len)
        iw_rx_feed(qp, l->early, l->early_len);
    qp->work |= !r;
    iw_rx_leave(qp);
    return r;
}

void iw_qp_release(struct iw_qp *qp)
{
    struct iw_wakes w = {0};
    lock_get(&qp->sq_lock);
    qp->tx_hold = false;
    iw_qp_transmit_locked(qp, &w);
    lock_put(&qp->sq_lock);
    iw_qp_settle(qp, &w);
    iw_wakes_fire(&w);
}

/** Whether all that is cut is with TCP, and no message is cut in part. */
static bool between_messages_locked(const struct iw_qp *qp)
{
    bool begun = qp->sq.cut != qp->sq.tail && qp->sq.ring[qp->sq.cut & qp->sq.mask].begun;
    return !begun && !iw_answer_begun(qp) && qp->tx.sent_pos == qp->tx.cut_pos;
}

bool iw_qp_nudge(struct iw_qp *qp)
{
    struct iw_wakes w = {0};
    lock_get(&qp->rx_lock);
    bool silent = qp->rx.fpdus == 0;
    lock_put(&qp->rx_lock);
    lock_get(&qp->sq_lock);
    bool open = qp->linked && !qp->error && qp->close == IWC_CLOSE_OPEN;
    if (silent && open && qp->tx.sent_pos > 0 && between_messages_locked(qp)) {
        qp->rtr = MPA_RTR_WRITE;
        iw_qp_transmit_locked(qp, &w);
    }
    lock_put(&qp->sq_lock);
    iw_qp_settle(qp, &w);
    iw_wakes_fire(&w);
    return silent;
}

void iw_qp_close(struct iw_qp *qp, bool abrupt)
{
    struct iw_wakes w = {0};
    lock_get(&qp->sq_lock);
    if (abrupt)
        iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, &w);
    else
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_ASK, &w);
    if (qp->silent) /* a responder may close without having been spoken to */
        qp->tx_hold = false;
    iw_qp_transmit_locked(qp, &w);
    lock_put(&qp->sq_lock);
    iw_qp_settle(qp, &w);
    iw_wakes_fire(&w);
}

void iw_qp_expired(struct iw_qp *qp, unsigned awaits)
{
    struct iw_wakes w = {0};
    lock_get(&qp->rx_lock);
    uint32_t unused = (uint32_t)qp->held_bytes + qp->staged + qp->stall.bytes;
    bool anew = atomic_load(&qp->awaits) != awaits;
    bool fin = qp->fin_known && qp->paused && !anew && !atomic_load(&qp->over);
    if (fin) {
        iw_qp_explain(qp, IW_ERR_LLP_LOST, "the peer closed it, no receive came for its messages");
        iw_rx_abandon(qp);
    }
    lock_get(&qp->sq_lock);
    if (fin)
        iw_qp_fin_locked(qp, unused, &w);
    if (iwc_close_may(qp->close, IWC_CLOSE_EV_EXPIRED))
        iw_qp_close_event_locked(qp, IWC_CLOSE_EV_EXPIRED, &w);
    lock_put(&qp->sq_lock);
    iw_qp_settle_rx_locked(qp, &w);
    lock_put(&qp->rx_lock);
    iw_wakes_fire(&w);
}

void iw_qp_stalled(struct iw_qp *qp)
{
    lock_get(&qp->rx_lock);
    if (qp->stream && !atomic_load(&qp->over) && iw_stall_due(qp))
        iw_rx_take_in(qp);
    iw_rx_leave(qp);
}

void iw_qp_watched(struct iw_qp *qp, bool watched)
{
    lock_get(&qp->sq_lock);
    qp->watched = watched;
    lock_put(&qp->sq_lock);
}

void iw_qp_lose(struct iw_qp *qp, int error)
{
    struct iw_wakes w = {0};
    lock_get(&qp->rx_lock);
    lock_get(&qp->sq_lock);
    iw_qp_lost_locked(qp, error, &w);
    lock_put(&qp->sq_lock);
    iw_qp_settle_rx_locked(qp, &w);
    lock_put(&qp->rx_lock);
    iw_wakes_fire(&w);
}

bool iw_qp_was_linked(struct iw_qp *qp)
{
    lock_get(&qp->sq_lock);
    bool was = qp->was_linked;
    lock_put(&qp->sq_lock);
    return was;
}

bool iw_qp_closed_enough(struct iw_qp *qp)
{
    lock_get(&qp->sq_lock);
    bool busy = qp->linked && iwc_close_sends(qp->close);
    lock_put(&qp->sq_lock);
    return !busy;
}

bool iw_qp_drains(struct iw_qp *qp)
{
    lock_get(&qp->sq_lock);
    bool drains = qp->linked && qp->close == IWC_CLOSE_DRAIN;
    lock_put(&qp->sq_lock);
    return drains;
}

bool iw_qp_try_sent(struct iw_qp *qp)
{
    if (!lock_try(&qp->sq_lock))
        return false;
    bool sent = !qp->linked || iwc_close_sent(qp->close);
    lock_put(&qp->sq_lock);
    return sent;
}

void iw_qp_unlink(struct iw_qp *qp)
{
    struct iw_wakes w = {0};
    lock_get(&qp->rx_lock);
    lock_get(&qp->sq_lock);
    qp->linked = qp->untold = false;
    iw_qp_fail_locked(qp, IW_ERR_LLP_CLOSED, NULL, 0, &w);
    if (qp->stream)
        iw_order_connections(-1);
    qp->stream = NULL;
    qp->source = NULL;
    qp->cm = NULL;
    iw_pool_put(IW_POOL_BATCH, qp->batch);
    qp->batch = NULL;
    lock_put(&qp->sq_lock);
    iw_qp_settle_rx_locked(qp, &w);
    iw_rx_fini(qp);
    lock_put(&qp->rx_lock);
    w.cm = 0; /* the caller is the CM */
    iw_wakes_fire(&w);
}

/* ---- what epoll is asked for ---- */

void iw_qp_want_locked(struct iw_qp *qp)
{
    assert_held(&qp->sq_lock);
    if (!qp->source)
        return;
    uint32_t events = 0;
    if (!qp->rx_ended && (!qp->rx_paused || qp->rx_takes_in || qp->error))
        events |= EPOLLIN | EPOLLRDHUP;
    else if (!qp->rx_ended && !qp->fin_known)
        events |= EPOLLRDHUP;
    if (qp->tx_blocked && !qp->retries)
        events |= EPOLLOUT;
    iw_source_want(qp->source, events);
}

void iw_qp_stop_reading_locked(struct iw_qp *qp)
{
    qp->rx_ended = true;
    iw_qp_want_locked(qp);
}

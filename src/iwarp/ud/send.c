/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/send.h"

#include "common/sys.h"
#include "engine/engine.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/section.h"
#include "qp/tx_queue.h"
#include "ud/outgoing.h"
#include "ud/socket.h"

#define PATIENCE 10000000  /* ns that a receiver may be full */
#define ALONE    200000000 /* if nothing waits behind it that is for another */
#define PAUSE    5000      /* ns between two tries, however often one posts and polls */
#define SHORT    20000000  /* ns that room counts as short after the last time there was none */
#define GATHER   20000     /* ns that a pack may fill meanwhile */
#define AGAIN_US 100       /* until the next look, if nobody polls */

/* ---- what becomes of it ---- */

/** The place where a receiver that takes nothing is remembered. */
static uint32_t *stopped_at(struct iw_ud *ud, uint32_t qpn)
{
    return &ud->stopped[(qpn ^ qpn >> 8) % IW_UD_STOPPED];
}

static void taken_locked(struct iw_qp *qp, uint32_t n)
{
    struct iw_ud *ud = iw_ud(qp);
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    ud->single -= n < ud->single ? n : ud->single;
    iwc_count(&qp->stats->out.messages[IWC_KIND_SEND], n);
    for (; n; n--, sq->cut++) {
        const struct iw_sqe *e = iw_sq_at(sq, sq->cut);
        uint32_t qpn = e->remote_qpn, *stopped = stopped_at(ud, qpn);
        iwc_count(&qp->stats->out.bytes[IWC_KIND_SEND], e->len);
        if (*stopped == qpn)
            *stopped = 0;
    }
    ud->full_since = 0;
    ud->renewed = false;
}

static void lose_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    iwc_count(&qp->stats->sq.lost, 1);
    qp->tx.sq.cut++;
    iw_ud(qp)->full_since = 0;
    iw_ud(qp)->renewed = false;
}

enum full { WAIT, RETRY, LOSE };

/** Whether all that waits has the same receiver. */
static bool is_for_one_locked(const struct iw_sq *sq, uint32_t qpn)
{
    uint32_t i = sq->cut;
    while (i != sq->tail && iw_sq_at(sq, i)->remote_qpn == qpn)
        i++;
    return i == sq->tail;
}

/**
 * There is no room for the datagram at sq.cut. What lies with a receiver that is stopped counts for
 * our socket: before that is believed of this one, another socket tries.
 */
static enum full full_locked(struct iw_qp *qp)
{
    struct iw_ud *ud = iw_ud(qp);
    uint32_t i = qp->tx.sq.cut, qpn = iw_sq_at(&qp->tx.sq, i)->remote_qpn;
    uint32_t *stopped = stopped_at(ud, qpn);
    bool here = qp->tx.sq.routes[i & qp->tx.sq.mask].here;
    uint64_t now = iw_now();
    assert_held(&qp->tx.lock);
    ud->tried = now;
    if (!ud->full_since)
        ud->full_since = now;
    uint64_t waited = now - ud->full_since;
    bool stops = here && *stopped == qpn;
    bool more = waited < PATIENCE || (waited < ALONE && is_for_one_locked(&qp->tx.sq, qpn));
    if (!stops && more)
        return WAIT;
    if (!here)
        return LOSE;
    if (!ud->renewed) {
        sys_close(ud->out);
        ud->out = -1;
        ud->renewed = true;
        return RETRY;
    }
    *stopped = qpn;
    return LOSE;
}

static void again(struct iw_timer *t)
{
    struct iw_qp *qp = container_of(t, struct iw_ud, again)->qp;
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    iw_qp_transmit_locked(qp, &w);
    iw_qp_leave(qp, &w);
}

static void try_later_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    if (iw_engine_leased(iw_home_shard(&qp->tx.deferred.home)))
        iw_deferred_again(&qp->tx.deferred);
    else
        iw_timer_set_us(&iw_ud(qp)->again, AGAIN_US, again);
}

/** The work request at sq.cut is at fault: it completes so, what is behind it is flushed. */
static void fail_locked(struct iw_qp *qp, enum iw_err err, struct iw_wakes *w)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, qp->tx.sq.cut);
    assert_held(&qp->tx.lock);
    iw_sq_retire_locked(qp, w);
    e->status = (uint8_t)iw_err_info(err)->status;
    iw_qp_log_stop_locked(qp, err);
    iw_qp_set_state_locked(qp, IBV_QPS_SQE);
    iw_sq_flush_locked(qp, w);
    iw_ud(qp)->full_since = 0;
}

/** The socket for the work request at @p i. @return -1: there is none */
static int socket_for_locked(struct iw_qp *qp, uint32_t i)
{
    struct iw_ud *ud = iw_ud(qp);
    assert_held(&qp->tx.lock);
    if (!qp->tx.sq.routes[i & qp->tx.sq.mask].here || ud->in[IW_UD_NET].fd < 0)
        return ud->in[IW_UD_NET].fd;
    if (ud->out < 0)
        ud->out = iw_ud_open_out();
    return ud->out < 0 ? -1 : ud->out;
}

/* ---- sending ---- */

/** The kernel does not take what is at sq.cut, and that is a pack: they go one by one. */
static bool unpacks_locked(struct iw_qp *qp, const struct iw_ud_outgoing *o, long r)
{
    assert_held(&qp->tx.lock);
    if ((r != -EFAULT && r != -EMSGSIZE) || o->of[0] == 1)
        return false;
    iw_ud(qp)->single = o->of[0];
    return true;
}

static void describe_all_locked(struct iw_qp *qp, uint32_t end, int fd, struct iw_ud_outgoing *o,
                                enum iw_err *err)
{
    uint32_t i = qp->tx.sq.cut;
    assert_held(&qp->tx.lock);
    iw_ud_out_init(o, iw_ud(qp)->single);
    for (*err = IW_OK; i != end && iw_ud_has_room(o) && socket_for_locked(qp, i) == fd; i++) {
        *err = iw_ud_add_locked(qp, i, o);
        if (*err)
            break;
    }
}

static uint32_t datagrams_of(const struct iw_ud_outgoing *o, long messages)
{
    uint32_t n = 0;
    for (long i = 0; i < messages; i++)
        n += o->of[i];
    return n;
}

/** One system call, and what became of it. @return whether there may be more to send now */
static bool send_locked(struct iw_qp *qp, uint32_t end, struct iw_wakes *w)
{
    struct iw_ud_outgoing o;
    enum iw_err err;
    int fd = socket_for_locked(qp, qp->tx.sq.cut);
    assert_held(&qp->tx.lock);
    if (fd < 0) {
        lose_locked(qp);
        iw_sq_retire_locked(qp, w);
        return true;
    }
    iw_copy_begin(qp->pd);
    describe_all_locked(qp, end, fd, &o, &err);
    iw_sent_begin(&qp->sent);
    long r = o.messages ? sys_sendmmsg(fd, o.msg, o.messages, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    iw_copy_end();
    if (r > 0)
        taken_locked(qp, datagrams_of(&o, r));
    bool faulty = err && r == o.messages, unpacks = unpacks_locked(qp, &o, r);
    if (r == -EFAULT && !unpacks) {
        err = IW_ERR_LOCAL_GONE;
        faulty = true;
    }
    enum full full = unpacks ? RETRY : r == -EAGAIN ? full_locked(qp) : LOSE;
    if (faulty)
        fail_locked(qp, err, w);
    else if (r < 0 && full == LOSE)
        lose_locked(qp);
    iw_sq_retire_locked(qp, w);
    iw_sent_end(&qp->sent);
    if (full == WAIT)
        try_later_locked(qp);
    return full != WAIT && !faulty;
}

/** How many such as that at sq.cut fill a pack. */
static uint32_t full_pack(const struct iw_sq *sq)
{
    uint64_t one = IW_UD_PACK_LENGTH + IW_UD_HEADER + IW_UD_GRH + iw_sq_at(sq, sq->cut)->len;
    uint64_t fit = IW_UD_PACK_MAX / one;
    return fit < IW_UD_OUT_DATAGRAMS ? (uint32_t)fit : IW_UD_OUT_DATAGRAMS;
}

/** Whether what is posted, up to @p end, waits: for room, or, where that is short, for more. */
static bool waits_locked(struct iw_qp *qp, uint32_t end)
{
    struct iw_ud *ud = iw_ud(qp);
    const struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    if (!ud->tried)
        return false;
    uint64_t now = iw_now();
    if (ud->full_since)
        return now - ud->tried < PAUSE;
    if (now - ud->tried >= SHORT)
        ud->tried = 0;
    bool gathers =
        ud->tried && end - sq->cut < full_pack(sq) && sq->routes[sq->cut & sq->mask].here;
    if (gathers && !ud->gathers)
        ud->gathers = now;
    if (gathers && now - ud->gathers < GATHER)
        return true;
    ud->gathers = 0;
    return false;
}

void iw_ud_transmit(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    if (qp->end.error || iw_ud(qp)->stopping)
        return;
    if (qp->tx.state == IBV_QPS_SQE)
        iw_sq_flush_locked(qp, w);
    bool draining = qp->tx.state == IBV_QPS_SQD;
    if (qp->tx.state != IBV_QPS_RTS && !draining)
        return;
    uint32_t end = draining ? sq->drain : sq->tail;
    if (sq->cut != end && waits_locked(qp, end)) {
        try_later_locked(qp);
        return;
    }
    while (sq->cut != end && send_locked(qp, end, w))
        ;
    qp->tx.unflushed = 0;
}

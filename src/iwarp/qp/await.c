/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/await.h"

#include "advice/advice.h"
#include "cq/cq.h"
#include "env/unmet.h"
#include "qp/qp.h"
#include "qp/tx_queue.h"

struct view {
    const struct iw_channel *channel;
    unsigned cqs, armed; /* one that two QPs use counts twice */
    unsigned solicited;  /* armed, but for such completions only */
    unsigned unpolled;   /* completions that the arms do not tell of */
    bool posted;         /* what will complete there, or may */
    bool unsignaled;     /* the last work request of a send queue asked for no completion */
};

/** @return whether it is on the channel */
static bool add_cq(struct view *v, struct iw_cq *cq)
{
    if (!cq || cq->channel != v->channel)
        return false;
    lock_get(&cq->lock);
    v->cqs++;
    v->armed += cq->arm != IW_ARM_NONE;
    v->solicited += cq->arm == IW_ARM_SOLICITED;
    v->unpolled += cq->arm == IW_ARM_ANY ? 0 : atomic_load(&cq->tail) - atomic_load(&cq->head);
    lock_put(&cq->lock);
    return true;
}

static void add_receives(struct view *v, struct iw_rq *rq)
{
    lock_get(&rq->lock);
    v->posted |= rq->head != rq->tail;
    lock_put(&rq->lock);
}

/** Of a QP at which another thread is at work, nothing is known. */
static void add_sends(struct view *v, struct iw_qp *qp)
{
    const struct iw_sq *sq = &qp->tx.sq;
    if (!lock_try(&qp->tx.lock)) {
        v->posted = true;
        return;
    }
    v->posted |= sq->head != sq->tail;
    if (sq->tail)
        v->unsignaled |= !(iw_sq_at(sq, sq->tail - 1)->flags & IBV_SEND_SIGNALED);
    lock_put(&qp->tx.lock);
}

static void add_qp(struct iw_qp *qp, void *view)
{
    struct view *v = view;
    if (add_cq(v, qp->send_cq))
        add_sends(v, qp);
    if (qp->recv_cq == qp->send_cq ? qp->recv_cq && qp->recv_cq->channel == v->channel
                                   : add_cq(v, qp->recv_cq))
        add_receives(v, qp->rq);
}

bool iw_await_look(struct iw_channel *ch)
{
    struct view v = {.channel = ch};
    iw_qps_visit(add_qp, &v);
    if (v.cqs && !v.armed && v.unpolled)
        iw_advise(IW_FINDING_SILENT_WAIT, "completion channel", NULL,
                  "a thread waits in ibv_get_cq_event(), no CQ of the channel is armed, and %u "
                  "completions wait",
                  v.unpolled);
    if (v.armed && v.solicited == v.armed && v.unpolled)
        iw_advise(IW_FINDING_SOLICITED_WAIT, "completion channel", NULL,
                  "a thread waits in ibv_get_cq_event(), the CQs are armed for solicited events "
                  "only, and %u completions wait that are none",
                  v.unpolled);
    if (v.cqs && !v.armed)
        iw_cm_unmet("ibv_get_cq_event: no completion queue of the channel is armed, and %u "
                    "completions wait there (ibv_req_notify_cq, then ibv_poll_cq)",
                    v.unpolled);
    else if (v.solicited && v.solicited == v.armed && v.unpolled)
        iw_cm_unmet(
            "ibv_get_cq_event: armed for solicited events only, and %u completions wait that "
            "are none (ibv_req_notify_cq(cq, 0), or IBV_SEND_SOLICITED at the peer)",
            v.unpolled);
    else if (v.cqs && !v.posted && !v.unpolled)
        iw_cm_unmet("ibv_get_cq_event: nothing is posted that would complete with an event%s "
                    "(ibv_post_recv, IBV_SEND_SIGNALED)",
                    v.unsignaled ? "; the last send was posted without IBV_SEND_SIGNALED" : "");
    else
        return false;
    return true;
}

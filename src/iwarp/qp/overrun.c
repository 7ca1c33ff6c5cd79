/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ that was overrun has lost a completion, so that no QP that uses it can go on. They fail one
 * by one, and their completions go to the CQs that are left. It is dirty work and not done on the
 * spot: who overran the CQ is inside a QP's progress, where waiting for another QP's could be
 * mutual.
 */
#include "device/context.h"
#include "env/log.h"
#include "qp/end.h"
#include "qp/section.h"

#include <string.h>

static void fail(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    iw_qp_fail_locked(qp, IW_ERR_CQ_OVERRUN, NULL, 0, &w);
    iw_qp_leave(qp, &w);
}

void iw_cq_fail_users(struct iw_dirty *failing)
{
    struct iw_cq *cq = container_of(failing, struct iw_cq, failing);
    unsigned bucket = 0;
    struct iw_qp *qp;
    while ((qp = iw_qp_pin_user(cq, &bucket))) {
        fail(qp);
        atomic_fetch_sub(&qp->pins, 1);
    }
}

static void push(struct iw_cq *cq)
{
    int r = iw_engine_start();
    if (r)
        iw_log(IW_LOG_ERR, "no engine to end the users of an overrun CQ: %s", strerror(r));
    iw_dirty_push(&cq->failing);
}

void iw_cq_overrun(struct iw_cq *cq)
{
    struct ibv_async_event ev = {.element.cq = &cq->pub, .event_type = IBV_EVENT_CQ_ERR};
    iw_async_raise(iw_context(cq->pub.context), &ev, &cq->async_events_read);
    push(cq);
}

void iw_cqs_check(struct iw_qp *qp)
{
    struct iw_cq *cqs[] = {qp->send_cq, qp->recv_cq};
    for (int i = 0; i < 2; i++)
        if (cqs[i] && atomic_load(&cqs[i]->overrun))
            push(cqs[i]);
}

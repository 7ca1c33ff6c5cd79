/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/overrun.h"

#include "qp/end.h"
#include "qp/section.h"

static void fail(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    iw_qp_fail_locked(qp, IW_ERR_CQ_OVERRUN, NULL, 0, &w);
    iw_qp_leave(qp, &w);
}

void iw_qps_fail(struct iw_deferred *failing)
{
    struct iw_cq *cq = container_of(failing, struct iw_cq, failing);
    unsigned bucket = 0;
    struct iw_qp *qp;
    while ((qp = iw_qp_pin_user(cq, &bucket))) {
        fail(qp);
        atomic_fetch_sub(&qp->pins, 1);
    }
}

void iw_cqs_check(struct iw_qp *qp)
{
    struct iw_cq *cqs[] = {qp->send_cq, qp->recv_cq};
    for (int i = 0; i < 2; i++)
        if (cqs[i] && atomic_load(&cqs[i]->overrun))
            iw_cq_fail_users(cqs[i]);
}

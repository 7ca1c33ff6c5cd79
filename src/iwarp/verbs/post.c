/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path: posting, polling, arming. */
#include "cq/cq.h"
#include "cq/visibility.h"
#include "engine/poller.h"
#include "faults/like.h"
#include "qp/qp.h"
#include "verbs/export.h"
#include "verbs/ops.h"

int op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    return iw_post_send(iw_qp(qp), wr, bad_wr, IW_POST_EACH);
}

int op_post_send_like(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct ibv_send_wr *last = NULL, *bad = wr;
    while (bad && !iw_like_send(bad)) {
        last = bad;
        bad = bad->next;
    }
    if (!bad)
        return op_post_send(qp, wr, bad_wr);
    if (last) {
        last->next = NULL;
        int r = op_post_send(qp, wr, bad_wr);
        last->next = bad;
        if (r)
            return r;
    }
    *bad_wr = bad;
    return EINVAL;
}

int op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    return iw_post_recv(iw_qp(qp), wr, bad_wr);
}

/** A poll of an empty CQ does the work: it runs the sockets, then looks again. */
int op_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
    struct iw_cq *cq = iw_cq(ibcq);
    if (n <= 0)
        return n < 0 ? -iw_refuse("ibv_poll_cq", VALUE, "a negative num_entries") : 0;
    int got = iw_cq_take(cq, n, wc);
    iw_engine_polled(&cq->poller);
    if (!got && iw_engine_give_way())
        got = iw_cq_take(cq, n, wc);
    if (!got) {
        iw_engine_poll(&cq->poller);
        got = iw_cq_take(cq, n, wc);
    } else {
        iw_engine_found(&cq->poller);
    }
    if (got > 0)
        iw_visibility_show(cq, wc, got);
    return got;
}

int op_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    iw_engine_arm(&iw_cq(cq)->poller);
    iw_cq_arm(iw_cq(cq), solicited_only != 0);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues whose completions are calls: wr_cqe->done. */
#include <stdlib.h>

#include <linux/completion.h>
#include <rdma/ib_verbs.h>

enum { AT_ONCE = 16, BUDGET = 256 };

int ib_process_cq_direct(struct ib_cq *cq, int budget)
{
    struct ib_wc wc[AT_ONCE];
    int done = 0, n;
    while (done < budget && (n = ib_poll_cq(cq, min(budget - done, (int)AT_ONCE), wc)) > 0) {
        for (int i = 0; i < n; i++) {
            if (!WARN_ON_ONCE(!wc[i].wr_cqe))
                wc[i].wr_cqe->done(cq, &wc[i]);
        }
        done += n;
    }
    return done;
}

static void process(struct ib_cq *cq)
{
    do {
        while (ib_process_cq_direct(cq, BUDGET) == BUDGET)
            continue;
    } while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void in_interrupt_of(struct ib_cq *cq, void *private)
{
    (void)private;
    process(cq);
}

static void in_work(struct work_struct *work)
{
    process(container_of(work, struct ib_cq, work));
}

static void to_work(struct ib_cq *cq, void *private)
{
    (void)private;
    schedule_work(&cq->work);
}

struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *private, int nr_cqe, int comp_vector,
                          enum ib_poll_context poll_ctx)
{
    static const ib_comp_handler handlers[] = {
        [IB_POLL_DIRECT] = NULL,
        [IB_POLL_SOFTIRQ] = in_interrupt_of,
        [IB_POLL_WORKQUEUE] = to_work,
    };
    if (poll_ctx > IB_POLL_WORKQUEUE)
        return ERR_PTR(-EINVAL);
    struct ib_cq_init_attr attr = {.cqe = (unsigned)nr_cqe, .comp_vector = comp_vector};
    struct ib_cq *cq = ib_create_cq(dev, handlers[poll_ctx], NULL, private, &attr);
    if (IS_ERR(cq))
        return cq;
    cq->poll_ctx = poll_ctx;
    INIT_WORK(&cq->work, in_work);
    if (poll_ctx != IB_POLL_DIRECT)
        ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
    return cq;
}

void ib_free_cq(struct ib_cq *cq)
{
    if (WARN_ON(atomic_read(&cq->usecnt) > 0))
        return;
    WARN_ON(ib_destroy_cq(cq) != 0);
}

struct drain {
    struct ib_cqe cqe;
    struct completion done;
};

static void drained(struct ib_cq *cq, struct ib_wc *wc)
{
    (void)cq;
    complete(&container_of(wc->wr_cqe, struct drain, cqe)->done);
}

static void drain_init(struct drain *d)
{
    d->cqe.done = drained;
    init_completion(&d->done);
}

/* Nobody else polls a direct CQ. */
static void drain_wait(struct drain *d, struct ib_cq *cq)
{
    if (cq->poll_ctx != IB_POLL_DIRECT) {
        wait_for_completion(&d->done);
        return;
    }
    while (!try_wait_for_completion(&d->done)) {
        ib_process_cq_direct(cq, BUDGET);
        cond_resched();
    }
}

void ib_drain_qp(struct ib_qp *qp)
{
    might_sleep();
    struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
    struct drain sent, received;
    drain_init(&sent);
    drain_init(&received);
    struct ib_send_wr send = {.wr_cqe = &sent.cqe, .opcode = IB_WR_SEND};
    struct ib_recv_wr receive = {.wr_cqe = &received.cqe};
    struct ib_send_wr *bad_send;
    struct ib_recv_wr *bad_receive;
    if (WARN_ON(ib_modify_qp(qp, &attr, IB_QP_STATE) != 0))
        return;
    if (!WARN_ON(ib_post_send(qp, &send, &bad_send) != 0))
        drain_wait(&sent, qp->send_cq);
    if (!qp->srq && !WARN_ON(ib_post_recv(qp, &receive, &bad_receive) != 0))
        drain_wait(&received, qp->recv_cq);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/explain.h"

#include "advice/shadow.h"
#include "env/log.h"
#include "mem/probe.h"
#include "qp/end.h"
#include "qp/tx_queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX 512

/* ---- facts ---- */

void iw_qp_explain(struct iw_qp *qp, enum iw_err err, const char *fmt, ...)
{
    va_list ap;
    if (atomic_exchange(&qp->end.explained, true))
        return;
    va_start(ap, fmt);
    vsnprintf(qp->end.explanation, sizeof(qp->end.explanation), fmt, ap);
    va_end(ap);
    qp->end.explained_error = err;
}

/** The right of the QP that an access of the peer needs, 0 for an access of its own. */
static unsigned right_of(enum iw_use use)
{
    switch (use) {
    case IW_USE_WRITE:
        return IBV_ACCESS_REMOTE_WRITE;
    case IW_USE_READ:
        return IBV_ACCESS_REMOTE_READ;
    case IW_USE_ATOMIC:
        return IBV_ACCESS_REMOTE_ATOMIC;
    default:
        return 0;
    }
}

void iw_qp_explain_access(struct iw_qp *qp, enum iw_err err, uint32_t stag, enum iw_use use,
                          uint64_t to, uint64_t len)
{
    char text[sizeof(qp->end.explanation)];
    iw_region_explain(text, sizeof(text), stag, &qp->accessor, use, to, len);
    bool allowed = iw_qp_allows(qp, right_of(use));
    iw_qp_explain(qp, err, "%s%s", text, allowed ? "" : "; the QP's access flags do not allow it");
}

void iw_qp_explain_sge(struct iw_qp *qp, enum iw_err err, enum iw_use use,
                       const struct ibv_sge *sge, uint32_t k, uint32_t nsge, uint64_t offset,
                       uint64_t len)
{
    char text[sizeof(qp->end.explanation)];
    iw_region_explain(text, sizeof(text), sge[k].lkey, &qp->accessor, use, sge[k].addr + offset,
                      len);
    if (err == IW_ERR_LOCAL_GONE && iw_advice_on())
        qp->end.unmapped |= iw_probe_hole((void *)(uintptr_t)(sge[k].addr + offset), len);
    iw_qp_explain(qp, err, "entry %" PRIu32 " of %" PRIu32 ", %s", k + 1, nsge, text);
}

/* ---- the line ---- */

/** Ends that somebody wanted. */
static bool orderly(enum iw_err err)
{
    return err == IW_ERR_LLP_CLOSED || err == IW_ERR_RDMAP_LOCAL;
}

static const char *name_of(const struct iw_sqe *e)
{
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "RDMA Write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA Write with Immediate",
        [IBV_WR_SEND] = "Send",
        [IBV_WR_SEND_WITH_IMM] = "Send with Immediate",
        [IBV_WR_RDMA_READ] = "RDMA Read",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic compare and swap",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic fetch and add",
        [IBV_WR_LOCAL_INV] = "local invalidate",
        [IBV_WR_BIND_MW] = "bind of a memory window",
        [IBV_WR_SEND_WITH_INV] = "Send with Invalidate",
    };
    return names[e->opcode];
}

/** Which work requests are going to complete, and how. */
struct toll {
    char culprit[64]; /* the one with a status of its own, ready for the line */
    bool receive;     /* that it is one */
    uint64_t wr_id;   /* its */
    uint32_t sends, receives;
};

static void count_sends_locked(struct iw_qp *qp, struct toll *t)
{
    *t = (struct toll){0};
    assert_held(&qp->tx.lock);
    for (uint32_t i = qp->tx.sq.head; i != qp->tx.sq.tail; i++) {
        const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
        if (e->status) {
            snprintf(t->culprit, sizeof(t->culprit), "%s, wr_id 0x%" PRIx64 ": ", name_of(e),
                     e->wr_id);
            t->wr_id = e->wr_id;
        }
        t->sends += !e->status;
    }
}

static void count_locked(struct iw_qp *qp, struct toll *t)
{
    count_sends_locked(qp, t);
    if (qp->rx.recv.taken && qp->rx.recv_status) {
        snprintf(t->culprit, sizeof(t->culprit), "receive, wr_id 0x%" PRIx64 ": ",
                 qp->rx.recv.wr_id);
        t->receive = true;
        t->wr_id = qp->rx.recv.wr_id;
    }
    t->receives = qp->rx.recv.taken && !qp->rx.recv_status;
    if (qp->rq->srq)
        return;
    lock_get(&qp->rq->lock);
    t->receives += qp->rq->tail - qp->rq->head;
    lock_put(&qp->rq->lock);
}

static void tell_unmapped(const struct iw_qp *qp, const struct toll *t)
{
    char name[32];
    snprintf(name, sizeof(name), "QP 0x%06x", qp->pub.qp_num);
    iw_advise(IW_FINDING_UNMAPPED_MEMORY, name, iw_shadow_posted(qp->shadow, t->receive, t->wr_id),
              "%sits memory is not mapped any more: %s", t->culprit, qp->end.explanation);
}

void iw_qp_log_end_locked(struct iw_qp *qp)
{
    bool wanted = orderly(qp->end.error);
    enum iw_log_level level = wanted ? IW_LOG_INFO : IW_LOG_WARN;
    char line[LINE_MAX];
    struct toll t;
    assert_held(&qp->rx.lock);
    assert_held(&qp->tx.lock);
    if (wanted && !iw_log_on(level))
        return;
    count_locked(qp, &t);
    bool explained = qp->end.explained && qp->end.explained_error == qp->end.error;
    snprintf(line, sizeof(line), "%s%s%s%s; %u send and %u receive work requests flushed",
             t.culprit, iw_err_info(qp->end.error)->text, explained ? ": " : "",
             explained ? qp->end.explanation : "", t.sends, t.receives);
    iw_log(level, "QP 0x%06x: %s", qp->pub.qp_num, line);
    if (explained && qp->end.unmapped && *t.culprit)
        tell_unmapped(qp, &t);
    if (!wanted)
        iw_stats_error(qp->stats, qp->pub.qp_num, line);
}

void iw_qp_log_stop_locked(struct iw_qp *qp, enum iw_err err)
{
    struct toll t;
    assert_held(&qp->tx.lock);
    count_sends_locked(qp, &t);
    bool explained = qp->end.explained && qp->end.explained_error == err;
    iw_log(IW_LOG_WARN,
           "QP 0x%06x: %s%s%s%s; %u send work requests flushed, and nothing is sent (SQE)",
           qp->pub.qp_num, t.culprit, iw_err_info(err)->text, explained ? ": " : "",
           explained ? qp->end.explanation : "", t.sends);
    atomic_store(&qp->end.explained, false);
}

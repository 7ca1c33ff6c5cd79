/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/check.h"

#include "advice/life.h"
#include "advice/shadow.h"
#include "common/patience.h"
#include "device/context.h"
#include "env/adapter.h"
#include "mem/judge.h"
#include "qp/tx_queue.h"
#include "verbs/export.h"
#include "verbs/ops.h"

#include <inttypes.h>
#include <string.h>

#define POISON 0x5a5a5a5a /* in what is undefined */
#define TURNS  140        /* for a pass that runs just now; it may wait for what the visit holds */

static struct ibv_context_ops under; /* what the slots had; the same in each context */

/* ---- objects ---- */

/** The most that any adapter has. */
static uint32_t most(enum iw_limit which)
{
    uint32_t max = 0;
    size_t n;
    const struct iw_adapter *a = iw_adapters(&n);
    for (size_t i = 0; i < n; i++)
        if (a[i].limit[which].source && a[i].limit[which].value > max)
            max = a[i].limit[which].value;
    return max;
}

static void judge_cap(const struct iw_qp *qp, const struct ibv_qp_cap *cap)
{
    const struct {
        enum iw_limit limit;
        uint32_t asked;
        const char *name;
    } rows[] = {
        {IW_LIMIT_QP_WR, cap->max_send_wr, "max_send_wr"},
        {IW_LIMIT_QP_WR, cap->max_recv_wr, "max_recv_wr"},
        {IW_LIMIT_SEND_SGE, cap->max_send_sge, "max_send_sge"},
        {IW_LIMIT_RECV_SGE, cap->max_recv_sge, "max_recv_sge"},
        {IW_LIMIT_INLINE, cap->max_inline_data, "max_inline_data"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].asked > most(rows[i].limit))
            iw_advise(IW_FINDING_BEYOND_ADAPTERS, iw_shadow_name(qp->shadow), iw_stack_here(),
                      "%s is %u, and no adapter that is known has more than %u", rows[i].name,
                      rows[i].asked, most(rows[i].limit));
}

void verbs_check_qp(struct iw_qp *qp, const struct ibv_qp_init_attr *asked)
{
    if (!iw_advice_on())
        return;
    qp->shadow = iw_shadow_qp_new(&qp->pub, &qp->cap, asked->sq_sig_all,
                                  qp->send_cq ? qp->send_cq->shadow : NULL,
                                  qp->recv_cq ? qp->recv_cq->shadow : NULL);
    iw_life_note(&qp->pub, "QP");
    if (qp->shadow)
        judge_cap(qp, &asked->cap);
}

void verbs_check_cq(struct iw_cq *cq)
{
    if (!iw_advice_on())
        return;
    cq->shadow = iw_shadow_cq_new(&cq->pub);
    iw_life_note(&cq->pub, "CQ");
}

struct use {
    uint32_t lkey;
    const struct iw_qp *by, *posted_by; /* work in flight; a receive that waits */
    uint64_t wr_id, posted_wr_id;
};

static bool names(const struct ibv_sge *sge, uint32_t n, uint32_t lkey)
{
    for (uint32_t k = 0; k < n; k++)
        if (sge[k].lkey == lkey && sge[k].length)
            return true;
    return false;
}

static void look_at_sends(const struct iw_qp *qp, struct use *u)
{
    const struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    for (uint32_t i = sq->head; i != sq->tail; i++)
        if (names(iw_sq_sge(sq, i), iw_sq_at(sq, i)->nsge, u->lkey)) {
            u->by = qp;
            u->wr_id = iw_sq_at(sq, i)->wr_id;
        }
}

static void look_at_receives(struct iw_qp *qp, struct use *u)
{
    struct iw_rq *rq = &qp->own_rq;
    lock_get(&rq->lock);
    for (uint32_t i = rq->head; i != rq->tail; i++) {
        const struct iw_rqe *e = &rq->ring[i & rq->mask];
        if (names(rq->sge + (size_t)(i & rq->mask) * rq->max_sge, e->nsge, u->lkey)) {
            u->posted_by = qp;
            u->posted_wr_id = e->wr_id;
        }
    }
    lock_put(&rq->lock);
}

static void look_for_use(struct iw_qp *qp, void *arg)
{
    struct use *u = arg;
    for (unsigned turn = 0; !lock_try(&qp->tx.lock); turn++) {
        if (turn == TURNS)
            return;
        patience(turn);
    }
    if (qp->tx.linked && qp->tx.state == IBV_QPS_RTS && !atomic_load(&qp->end.over)) {
        look_at_sends(qp, u);
        if (qp->rq == &qp->own_rq)
            look_at_receives(qp, u);
    }
    lock_put(&qp->tx.lock);
}

void verbs_check_dereg(const struct ibv_mr *mr)
{
    struct use u = {.lkey = mr->lkey};
    if (!iw_advice_on())
        return;
    iw_qps_visit(look_for_use, &u);
    if (u.by)
        iw_advise(IW_FINDING_DEREG_IN_USE, iw_shadow_name(u.by->shadow), iw_stack_here(),
                  "the region with key 0x%08x is deregistered, and the work request with wr_id "
                  "0x%" PRIx64 " that uses it is not completed",
                  mr->lkey, u.wr_id);
    if (u.posted_by)
        iw_advise(IW_FINDING_DEREG_POSTED, iw_shadow_name(u.posted_by->shadow), iw_stack_here(),
                  "the region with key 0x%08x is deregistered, and the receive with wr_id "
                  "0x%" PRIx64 " that names it is posted on a connected QP",
                  mr->lkey, u.posted_wr_id);
}

/* ---- posting ---- */

/** Whether it does as an iWARP adapter's would. */
static bool is_iwarp(const struct iw_qp *qp)
{
    return !qp->ib && !qp->datagrams;
}

static void judge_entry(const struct iw_qp *qp, const struct ibv_sge *sge, bool is_read)
{
    unsigned access;
    const char *name = iw_shadow_name(qp->shadow);
    if (!sge->length) {
        iw_advise(IW_FINDING_EMPTY_ENTRY, name, iw_stack_here(),
                  "an entry of the list has length 0");
        return;
    }
    switch (iw_key_judge(sge->lkey, qp->pd, &access)) {
    case IW_KEY_GONE:
        iw_advise(IW_FINDING_DEAD_KEY, name, iw_stack_here(),
                  "the region with key 0x%08x is deregistered", sge->lkey);
        break;
    case IW_KEY_SWAPPED:
        iw_advise(IW_FINDING_SWAPPED_KEY, name, iw_stack_here(),
                  "no region has key 0x%08x, but one has 0x%08x", sge->lkey,
                  __builtin_bswap32(sge->lkey));
        break;
    case IW_KEY_GOOD:
        if (is_read && is_iwarp(qp) && !(access & IBV_ACCESS_REMOTE_WRITE))
            iw_advise(IW_FINDING_READ_SINK, name, iw_stack_here(),
                      "the region with key 0x%08x, into which an RDMA Read is posted, has no "
                      "IBV_ACCESS_REMOTE_WRITE",
                      sge->lkey);
        break;
    case IW_KEY_UNKNOWN:
        break;
    }
}

static void judge_entries(const struct iw_qp *qp, const struct ibv_sge *sge, int n, bool is_read)
{
    for (int i = 0; sge && i < n; i++)
        judge_entry(qp, &sge[i], is_read);
}

/** What RFC 7306 brought. */
static bool is_late_iwarp(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
           opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool asks(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool may_ask(struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    bool may = !qp->tx.linked || qp->tx.ord.limit;
    lock_put(&qp->tx.lock);
    return may;
}

static void judge_send(struct iw_qp *qp, const struct ibv_send_wr *wr)
{
    const char *name = iw_shadow_name(qp->shadow);
    if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW)
        return;
    if (!(wr->send_flags & IBV_SEND_INLINE))
        judge_entries(qp, wr->sg_list, wr->num_sge, wr->opcode == IBV_WR_RDMA_READ);
    if (is_iwarp(qp) && is_late_iwarp(wr->opcode))
        iw_advise(IW_FINDING_BEYOND_IWARP, name, iw_stack_here(), "%s is posted on an iWARP device",
                  asks(wr->opcode) ? "an atomic" : "immediate data");
    if (asks(wr->opcode) && !may_ask(qp))
        iw_advise(IW_FINDING_READ_DEPTH, name, iw_stack_here(),
                  "the connection allows no RDMA Read or atomic: its initiator_depth is 0");
}

/** How much came in on it, for iw_shadow_send(). Acknowledgements alone do not count. */
static uint64_t heard(const struct iw_qp *qp)
{
    const struct iwc_flow *in = &qp->stats->in;
    uint64_t sum = 0;
    for (int i = 0; i < IWC_KIND_DATA; i++)
        sum += __atomic_load_n(&in->bytes[i], __ATOMIC_RELAXED);
    for (int i = IWC_KIND_DATA; i < IWC_KINDS; i++)
        sum += __atomic_load_n(&in->messages[i], __ATOMIC_RELAXED);
    return sum + __atomic_load_n(&in->messages[IWC_KIND_SEND], __ATOMIC_RELAXED);
}

void verbs_check_send(struct iw_qp *qp, const struct ibv_send_wr *wr)
{
    for (; qp->shadow && wr; wr = wr->next) {
        judge_send(qp, wr);
        iw_shadow_send(qp->shadow, wr, heard(qp));
    }
}

void verbs_check_unsent(struct iw_qp *qp, const struct ibv_send_wr *wr)
{
    for (; wr; wr = wr->next)
        iw_shadow_unsent(qp->shadow);
}

static int handle_over(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    return iw_qp(qp)->datagrams ? iw_life_over(wr->wr.ud.ah, "ibv_post_send") : 0;
}

/* One by one, as a list may be posted in part; its completions may be there before the call ends.
 */
static int check_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    int r = iw_life_over(qp, "ibv_post_send");
    for (; wr && !r; wr = r ? wr : wr->next) {
        struct ibv_send_wr one = *wr, *bad;
        one.next = NULL;
        r = handle_over(qp, &one);
        if (r)
            break;
        verbs_check_send(iw_qp(qp), &one);
        r = under.post_send(qp, &one, &bad);
        if (r)
            verbs_check_unsent(iw_qp(qp), &one);
    }
    if (r)
        *bad_wr = wr;
    return r;
}

static int check_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int r = iw_life_over(qp, "ibv_post_recv");
    for (; wr && !r; wr = r ? wr : wr->next) {
        struct ibv_recv_wr one = *wr, *bad;
        one.next = NULL;
        if (iw_qp(qp)->shadow)
            judge_entries(iw_qp(qp), wr->sg_list, wr->num_sge, false);
        iw_shadow_recv(iw_qp(qp)->shadow, &one);
        r = under.post_recv(qp, &one, &bad);
        if (r)
            iw_shadow_unreceived(iw_qp(qp)->shadow);
    }
    if (r)
        *bad_wr = wr;
    return r;
}

static int check_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                               struct ibv_recv_wr **bad_wr)
{
    int r = iw_life_over(srq, "ibv_post_srq_recv");
    if (!r)
        return under.post_srq_recv(srq, wr, bad_wr);
    *bad_wr = wr;
    return r;
}

static int check_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr wr = {
        .wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags};
    int r = iw_life_over(qp, "ibv_bind_mw");
    if (!r)
        r = iw_life_over(mw, "ibv_bind_mw");
    if (r)
        return r;
    verbs_check_send(iw_qp(qp), &wr);
    r = under.bind_mw(qp, mw, bind);
    if (r)
        verbs_check_unsent(iw_qp(qp), &wr);
    return r;
}

/* ---- polling ---- */

static void poison(struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS)
        return;
    *wc = (struct ibv_wc){
        .wr_id = wc->wr_id,
        .status = wc->status,
        .opcode = (enum ibv_wc_opcode)POISON,
        .vendor_err = wc->vendor_err,
        .byte_len = POISON,
        .imm_data = POISON,
        .qp_num = wc->qp_num,
        .src_qp = POISON,
        .wc_flags = POISON,
        .pkey_index = (uint16_t)POISON,
        .slid = (uint16_t)POISON,
        .sl = (uint8_t)POISON,
        .dlid_path_bits = (uint8_t)POISON,
    };
}

void verbs_check_completed(struct iw_cq *cq, struct ibv_wc *wc)
{
    struct iw_qp *qp = iw_qp_find(cq->pub.context, wc->qp_num, false);
    if (qp)
        iw_shadow_completed(qp->shadow, wc, heard(qp));
    poison(wc);
}

static int check_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    if (iw_life_over(cq, "ibv_poll_cq"))
        return -1;
    int got = under.poll_cq(cq, n, wc);
    for (int i = 0; i < got; i++)
        verbs_check_completed(iw_cq(cq), &wc[i]);
    iw_shadow_polled(iw_cq(cq)->shadow, n, got);
    return got;
}

static int check_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    int r = iw_life_over(cq, "ibv_req_notify_cq");
    if (!r)
        r = under.req_notify_cq(cq, solicited_only);
    if (!r)
        iw_shadow_armed(iw_cq(cq)->shadow);
    return r;
}

void verbs_check_fill_ops(struct verbs_context *v)
{
    if (!iw_advice_on())
        return;
    under = v->context.ops;
    v->context.ops.post_send = check_post_send;
    v->context.ops.post_recv = check_post_recv;
    v->context.ops.post_srq_recv = check_post_srq_recv;
    v->context.ops.bind_mw = check_bind_mw;
    v->context.ops.poll_cq = check_poll_cq;
    v->context.ops.req_notify_cq = check_req_notify_cq;
}

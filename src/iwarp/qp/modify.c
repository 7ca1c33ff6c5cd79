/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp and ibv_query_qp. IBV_EVENT_COMM_EST, which tells of data for a QP that is still in
 * RTR, comes to one by number (ack.c) only: the CM's streams belong to QPs in RTS.
 */
#include "common/usdt.h"
#include "device/device.h"
#include "env/conf.h"
#include "env/later.h"
#include "env/refuse.h"
#include "observe/record.h"
#include "qp/end.h"
#include "qp/link.h"
#include "qp/reset.h"
#include "qp/section.h"
#include "qp/state.h"
#include "qp/tx_queue.h"

#include <errno.h>

#define MODIFY "ibv_modify_qp"

/* A program of rdma-core 45 or later may let its peer flush, which no peer can ask for here. */
#define ANY_ACCESS                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IW_ACCESS_FLUSH)
#define ANY_ATTR ((IBV_QP_DEST_QPN << 1) - 1 + IBV_QP_RATE_LIMIT)

/* X(bit of the mask, what it sets in struct ibv_qp_attr) */
#define KEPT(X)                                                                                    \
    X(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify)                                                    \
    X(ACCESS_FLAGS, qp_access_flags)                                                               \
    X(PKEY_INDEX, pkey_index)                                                                      \
    X(AV, ah_attr)                                                                                 \
    X(PATH_MTU, path_mtu)                                                                          \
    X(TIMEOUT, timeout)                                                                            \
    X(RETRY_CNT, retry_cnt)                                                                        \
    X(RNR_RETRY, rnr_retry)                                                                        \
    X(RQ_PSN, rq_psn)                                                                              \
    X(MAX_QP_RD_ATOMIC, max_rd_atomic)                                                             \
    X(ALT_PATH, alt_ah_attr)                                                                       \
    X(ALT_PATH, alt_pkey_index)                                                                    \
    X(ALT_PATH, alt_port_num)                                                                      \
    X(ALT_PATH, alt_timeout)                                                                       \
    X(MIN_RNR_TIMER, min_rnr_timer)                                                                \
    X(SQ_PSN, sq_psn)                                                                              \
    X(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)                                                      \
    X(PATH_MIG_STATE, path_mig_state)                                                              \
    X(DEST_QPN, dest_qp_num)

/** A stream's agreed depths can only be lowered. */
static bool depths_ok(const struct iw_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    bool agreed = qp->was_linked && !qp->ib;
    uint32_t ord = agreed ? qp->tx.ord.limit : IW_MAX_DEPTH;
    uint32_t ird = agreed ? qp->tx.ird.limit : IW_MAX_DEPTH;
    return (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || a->max_rd_atomic <= ord) &&
           (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= ird);
}

static bool values_ok(const struct iw_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_STATE) && (unsigned)a->qp_state > IBV_QPS_ERR)
        return false;
    if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != qp->tx.state)
        return false;
    if ((mask & IBV_QP_PORT) && a->port_num != 1)
        return false;
    if ((mask & IBV_QP_AV) && a->ah_attr.port_num != 1)
        return false;
    if ((mask & IBV_QP_ALT_PATH) &&
        (a->alt_port_num != 1 || a->alt_ah_attr.port_num != 1 || a->alt_pkey_index))
        return false;
    if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index)
        return false;
    if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned)ANY_ACCESS))
        return false;
    if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return false;
    return depths_ok(qp, a, mask);
}

void iw_qp_set_state_locked(struct iw_qp *qp, enum ibv_qp_state state)
{
    assert_held(&qp->tx.lock);
    USDT3(state, qp->pub.qp_num, qp->tx.state, state);
    iw_record_note(STATE, qp->pub.qp_num, qp->tx.state, state);
    __atomic_store_n(&qp->tx.state, state, __ATOMIC_RELAXED);
    __atomic_store_n(&qp->pub.state, state, __ATOMIC_RELAXED);
    iw_stats_set(&qp->stats->state, (uint8_t)state);
}

static void keep_locked(struct iw_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    assert_held(&qp->tx.lock);
#define X(bit, field)                                                                              \
    if (mask & IBV_QP_##bit)                                                                       \
        qp->attr.field = a->field;
    KEPT(X)
#undef X
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = a->qp_access_flags;
    if (mask & IBV_QP_QKEY) /* who receives compares it, under rx.lock */
        __atomic_store_n(&qp->attr.qkey, a->qkey, __ATOMIC_RELAXED);
    if (mask & IBV_QP_RNR_RETRY)
        qp->acks.retry_told = false;
    if (qp->was_linked && (mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic < qp->tx.ord.limit)
        qp->tx.ord.limit = a->max_rd_atomic;
    if (qp->was_linked && !qp->ib && (mask & IBV_QP_MAX_DEST_RD_ATOMIC))
        qp->tx.ird.limit = a->max_dest_rd_atomic;
}

/** As new: what was received for and set is forgotten. */
static void reset_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    iw_qp_set_state_locked(qp, IBV_QPS_RESET);
    qp->attr = (struct ibv_qp_attr){0};
    qp->access = 0;
    qp->ib = false;
    iw_rq_clear(&qp->own_rq);
}

/** Whether RESET has more to do than to forget what was set and posted. */
static bool has_past(const struct iw_qp *qp)
{
    return qp->was_linked || qp->ib || qp->cm || qp->datagrams || qp->end.error;
}

static void drain_locked(struct iw_qp *qp, bool notify, struct iw_wakes *w)
{
    assert_held(&qp->tx.lock);
    iw_qp_set_state_locked(qp, IBV_QPS_SQD);
    qp->tx.sq.drain = qp->tx.sq.tail;
    qp->tx.sq.tell_drained = notify;
    iw_qp_transmit_locked(qp, w);
    iw_sq_retire_locked(qp, w);
}

/** The effect of a transition that is legal. @return 0 or EINVAL */
static int move_locked(struct iw_qp *qp, enum ibv_qp_state to, int mask, bool notify,
                       struct iw_wakes *w)
{
    switch (to) {
    case IBV_QPS_RESET:
        if (has_past(qp))
            iw_qp_reset_begin_locked(qp, w);
        else
            reset_locked(qp);
        return 0;
    case IBV_QPS_RTS: /* only a connection leads here, or the number of a peer, but for UD */
        if (!qp->tx.linked && !qp->ib && !qp->datagrams)
            return iw_refuse(MODIFY, NO_CONNECTION);
        iw_qp_set_state_locked(qp, to);
        return 0;
    case IBV_QPS_SQD:
        if (qp->tx.state != IBV_QPS_SQD)
            drain_locked(qp, notify, w);
        return 0;
    case IBV_QPS_ERR:
        iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, w);
        return 0;
    case IBV_QPS_RTR:
        if ((mask & IBV_QP_DEST_QPN) && !qp->cm) {
            qp->ib = true;
            qp->ext = iw_conf()->ext; /* only anywarp is reached so */
        }
        iw_qp_set_state_locked(qp, to);
        return 0;
    default:
        iw_qp_set_state_locked(qp, to);
        return 0;
    }
}

static bool is_roce(const struct iw_qp *qp)
{
    return iw_device(qp->pub.context->device)->roce;
}

static enum iw_qp_rules rules_of(const struct iw_qp *qp)
{
    if (qp->datagrams)
        return IW_QP_RULES_UD;
    return qp->uc ? IW_QP_RULES_UC : is_roce(qp) ? IW_QP_RULES_RC : IW_QP_RULES_CM;
}

int iw_qp_modify(struct iw_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct iw_wakes w;
    bool notify = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify;
    if (mask & ~ANY_ATTR)
        return iw_refuse(MODIFY, ATTR_MASK, (unsigned)mask);
    iw_qp_enter(qp, &w);
    bool ok = values_ok(qp, attr, mask);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->tx.state;
    bool past = ok && !is_roce(qp) && qp->was_linked && (mask & IBV_QP_STATE) &&
                iw_qp_step_is_past(qp->tx.state, to, mask);
    int r = 0;
    if (!ok)
        r = iw_refuse(MODIFY, ATTR_VALUE, (unsigned)mask);
    else if (!past && !iw_qp_modify_is_ok(rules_of(qp), qp->tx.state, to, mask))
        r = iw_refuse(MODIFY, TRANSITION, iw_qp_state_name(qp->tx.state), iw_qp_state_name(to),
                      (unsigned)mask);
    if (!r && !past && (mask & IBV_QP_STATE))
        r = move_locked(qp, to, mask, notify, &w);
    if (!r)
        keep_locked(qp, attr, mask);
    if (!r && !past && (mask & IBV_QP_STATE) && to == IBV_QPS_RTS)
        iw_qp_transmit_locked(qp, &w);
    bool reset = qp->end.forgets && (mask & IBV_QP_STATE) && to == IBV_QPS_RESET;
    iw_qp_leave(qp, &w);
    if (reset)
        iw_qp_reset_end(qp);
    return r;
}

void iw_qp_query(struct iw_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
    lock_get(&qp->tx.lock);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = qp->tx.state;
    __atomic_store_n(&qp->pub.state, qp->tx.state, __ATOMIC_RELAXED);
    attr->sq_draining = qp->tx.state == IBV_QPS_SQD && qp->tx.sq.head != qp->tx.sq.drain;
    attr->cap = qp->cap;
    attr->port_num = 1;
    if (!attr->path_mtu)
        attr->path_mtu = IBV_MTU_4096;
    if (qp->was_linked && !qp->ib) {
        attr->max_rd_atomic = (uint8_t)qp->tx.ord.limit;
        attr->max_dest_rd_atomic = (uint8_t)qp->tx.ird.limit;
    }
    *init = (struct ibv_qp_init_attr){
        .qp_context = qp->pub.qp_context,
        .send_cq = qp->pub.send_cq,
        .recv_cq = qp->pub.recv_cq,
        .srq = qp->pub.srq,
        .cap = qp->cap,
        .qp_type = qp->pub.qp_type,
        .sq_sig_all = qp->tx.sq.sig_all,
    };
    lock_put(&qp->tx.lock);
}

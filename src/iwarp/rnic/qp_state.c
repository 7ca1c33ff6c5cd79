/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ibv state machine of an RC QP: which attributes each transition needs and allows. The table
 * is the one that kernel and programs agree on; beside it stand the short masks of the CM
 * (rdma_init_qp_attr on iWARP), whose connections bring their own addresses and numbers.
 */
#include "rnic/qp_fail.h"
#include "rnic/qp_link.h"

#include <errno.h>

#define ANY_ACCESS                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct transition {
    bool legal;
    int required, optional;
};

#define ALWAYS  (IBV_QP_STATE | IBV_QP_CUR_STATE)
#define CM_MASK (IBV_QP_ACCESS_FLAGS | IBV_QP_PORT)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

/* clang-format off */
static const struct transition table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
    [IBV_QPS_RESET] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_INIT] = {true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    },
    [IBV_QPS_INIT] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
        [IBV_QPS_INIT] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
        [IBV_QPS_RTR] = {true,
            IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
            IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    },
    [IBV_QPS_RTR] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
        [IBV_QPS_RTS] = {true, RETRIES | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
            IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
                IBV_QP_PATH_MIG_STATE},
    },
    [IBV_QPS_RTS] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
        [IBV_QPS_RTS] = {true, 0,
            IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
                IBV_QP_MIN_RNR_TIMER},
        [IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    },
    [IBV_QPS_SQD] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
        [IBV_QPS_RTS] = {true, 0,
            IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
                IBV_QP_PATH_MIG_STATE},
        [IBV_QPS_SQD] = {true, 0,
            IBV_QP_PORT | IBV_QP_AV | RETRIES | IBV_QP_MAX_QP_RD_ATOMIC |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
                IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    },
    [IBV_QPS_SQE] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
    },
    [IBV_QPS_ERR] = {
        [IBV_QPS_RESET] = {true, 0, 0},
        [IBV_QPS_ERR] = {true, 0, 0},
    },
};
/* clang-format on */

/** Whether the transition and its mask are legal, by the table or by the CM's short masks. */
static bool mask_ok(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    const struct transition *t = &table[from][to];
    int rest = mask & ~ALWAYS;
    if (!t->legal)
        return false;
    if (to <= IBV_QPS_RTR && to != IBV_QPS_RESET && !(rest & ~CM_MASK) &&
        (rest & IBV_QP_ACCESS_FLAGS))
        return true;
    return (rest & t->required) == t->required && !(rest & ~(t->required | t->optional));
}

static bool values_ok(const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_PORT) && a->port_num != 1)
        return false;
    if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned)ANY_ACCESS))
        return false;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > IW_MAX_DEPTH)
        return false;
    return !(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= IW_MAX_DEPTH;
}

void iw_qp_set_state_locked(struct iw_qp *qp, enum ibv_qp_state state)
{
    assert_held(&qp->sq_lock);
    qp->state = state;
    __atomic_store_n(&qp->pub.state, state, __ATOMIC_RELAXED);
}

static void keep_locked(struct iw_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = qp->attr.qp_access_flags = a->qp_access_flags;
    if (mask & IBV_QP_PKEY_INDEX)
        qp->attr.pkey_index = a->pkey_index;
    if (mask & IBV_QP_PATH_MTU)
        qp->attr.path_mtu = a->path_mtu;
    if (mask & IBV_QP_TIMEOUT)
        qp->attr.timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->attr.retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        qp->attr.rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        qp->attr.min_rnr_timer = a->min_rnr_timer;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        qp->attr.max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
}

/** The effect on the stream of a transition that is legal. @return 0 or EINVAL */
static int move_locked(struct iw_qp *qp, enum ibv_qp_state to, struct iw_wakes *w)
{
    switch (to) {
    case IBV_QPS_RTS: /* only a connection leads here */
        if (!qp->linked)
            return EINVAL;
        iw_qp_set_state_locked(qp, to);
        iw_qp_transmit_locked(qp, w);
        return 0;
    case IBV_QPS_ERR:
        iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, w);
        return 0;
    case IBV_QPS_RESET:
        if (qp->linked) {
            iw_qp_fail_locked(qp, IW_ERR_RDMAP_LOCAL, NULL, 0, w);
            return 0;
        }
        if (!qp->error)
            iw_qp_set_state_locked(qp, to);
        return 0;
    default:
        iw_qp_set_state_locked(qp, to);
        return 0;
    }
}

int iw_qp_modify(struct iw_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct iw_wakes w = {0};
    int r = 0;
    lock_get(&qp->sq_lock);
    enum ibv_qp_state from = qp->state;
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if ((unsigned)to > IBV_QPS_ERR || !values_ok(attr, mask))
        r = EINVAL;
    else if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
        r = EINVAL;
    else if (from == IBV_QPS_ERR && (mask & IBV_QP_STATE))
        goto out; /* an iWARP QP does not come back: 0, and it stays where it is */
    else if (!(mask & IBV_QP_STATE) && !(mask & ~(CM_MASK | ALWAYS)))
        r = 0; /* the CM's mask for RTS, and access flags at any time */
    else if (!mask_ok(from, to, mask))
        r = EINVAL;
    if (!r && (mask & IBV_QP_STATE))
        r = move_locked(qp, to, &w);
    if (!r)
        keep_locked(qp, attr, mask);
out:
    lock_put(&qp->sq_lock);
    iw_qp_settle(qp, &w);
    iw_wakes_fire(&w);
    return r;
}

void iw_qp_query(struct iw_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
    lock_get(&qp->sq_lock);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = qp->state;
    attr->cap = qp->cap;
    attr->port_num = 1;
    if (!attr->path_mtu)
        attr->path_mtu = IBV_MTU_4096;
    if (qp->was_linked) {
        attr->max_rd_atomic = (uint8_t)qp->ord.limit;
        attr->max_dest_rd_atomic = (uint8_t)qp->ird.limit;
    }
    *init = (struct ibv_qp_init_attr){
        .qp_context = qp->pub.qp_context,
        .send_cq = qp->pub.send_cq,
        .recv_cq = qp->pub.recv_cq,
        .srq = qp->pub.srq,
        .cap = qp->cap,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = qp->sq.sig_all,
    };
    lock_put(&qp->sq_lock);
}

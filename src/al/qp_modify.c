/* SPDX-License-Identifier: BSD-2-Clause */
/* Transitions of queue pairs. */
#include "al/qp_modify.h"

#include "al/access.h"
#include "al/av.h"
#include "al/ca.h"
#include "al/status.h"

#include <errno.h>

/* What is asked for, in the words of the verbs. */
struct change {
    struct ibv_qp_attr attr;
    int mask;
    const ib_av_attr_t *av;
};

/* ---- INIT ---- */

static ib_api_status_t set_pkey(const struct al_qp *qp, uint16_t index, struct change *c)
{
    __be16 pkey;
    if (ibv_query_pkey(qp->verbs->context, AL_PORT, index, &pkey) != 0)
        return IB_INVALID_PKEY;
    c->attr.pkey_index = index;
    c->mask |= IBV_QP_PKEY_INDEX;
    return IB_SUCCESS;
}

static ib_api_status_t set_access(ib_access_t access, struct change *c)
{
    if (access & ~(AL_AC_REMOTE | IB_AC_LOCAL_WRITE | IB_AC_MW_BIND))
        return IB_INVALID_SETTING;
    c->attr.qp_access_flags = (unsigned)al_access_to_verbs(access & ~(ib_access_t)IB_AC_MW_BIND);
    c->mask |= IBV_QP_ACCESS_FLAGS;
    return IB_SUCCESS;
}

static ib_api_status_t to_init(struct al_qp *qp, const ib_qp_mod_t *mod, struct change *c)
{
    if (mod->state.init.primary_port != AL_PORT)
        return IB_INVALID_SETTING;
    c->attr.port_num = AL_PORT;
    c->mask |= IBV_QP_PORT;
    ib_api_status_t status = set_pkey(qp, mod->state.init.pkey_index, c);
    return status == IB_SUCCESS ? set_access(mod->state.init.access_ctrl, c) : status;
}

/* ---- RTR and RTS ---- */

/* What no queue pair here can be asked for. */
static ib_api_status_t refuse(ib_qp_opts_t opts)
{
    if (opts & IB_MOD_QP_APM_STATE)
        return IB_INVALID_APM_STATE;
    if (opts & (IB_MOD_QP_ALTERNATE_AV | IB_MOD_QP_SQ_DEPTH | IB_MOD_QP_RQ_DEPTH))
        return IB_UNSUPPORTED;
    return IB_SUCCESS;
}

static ib_api_status_t to_rtr(struct al_qp *qp, const ib_qp_mod_t *mod, struct change *c)
{
    ib_api_status_t status = refuse(mod->state.rtr.opts);
    if (status == IB_SUCCESS && mod->state.rtr.opts & IB_MOD_QP_PKEY)
        status = set_pkey(qp, mod->state.rtr.pkey_index, c);
    if (status == IB_SUCCESS && mod->state.rtr.opts & IB_MOD_QP_ACCESS_CTRL)
        status = set_access(mod->state.rtr.access_ctrl, c);
    if (status != IB_SUCCESS)
        return status;
    if (!al_av_to_verbs(qp->verbs->context, &mod->state.rtr.primary_av, &c->attr.ah_attr))
        return IB_INVALID_SETTING;
    c->av = &mod->state.rtr.primary_av;
    c->attr.path_mtu = (enum ibv_mtu)c->av->conn.path_mtu;
    c->attr.dest_qp_num = CL_NTOH32(mod->state.rtr.dest_qp);
    c->attr.rq_psn = CL_NTOH32(mod->state.rtr.rq_psn);
    c->mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->type != IB_QPT_RELIABLE_CONN)
        return IB_SUCCESS;
    c->attr.max_dest_rd_atomic = mod->state.rtr.resp_res;
    c->attr.min_rnr_timer = mod->state.rtr.rnr_nak_timeout;
    c->mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return IB_SUCCESS;
}

/* From RTR all of these count, later only those that are chosen. */
static void set_reliability(const ib_qp_mod_t *mod, ib_qp_opts_t opts, struct change *c)
{
    const struct _qp_rts *rts = &mod->state.rts;
    if (opts & IB_MOD_QP_INIT_DEPTH) {
        c->attr.max_rd_atomic = rts->init_depth;
        c->mask |= IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (opts & IB_MOD_QP_RETRY_CNT) {
        c->attr.retry_cnt = rts->retry_cnt;
        c->mask |= IBV_QP_RETRY_CNT;
    }
    if (opts & IB_MOD_QP_RNR_RETRY_CNT) {
        c->attr.rnr_retry = rts->rnr_retry_cnt;
        c->mask |= IBV_QP_RNR_RETRY;
    }
    if (opts & IB_MOD_QP_LOCAL_ACK_TIMEOUT) {
        c->attr.timeout = rts->local_ack_timeout;
        c->mask |= IBV_QP_TIMEOUT;
    }
    if (opts & IB_MOD_QP_RNR_NAK_TIMEOUT) {
        c->attr.min_rnr_timer = rts->rnr_nak_timeout;
        c->mask |= IBV_QP_MIN_RNR_TIMER;
    }
    if (opts & IB_MOD_QP_RESP_RES) {
        c->attr.max_dest_rd_atomic = rts->resp_res;
        c->mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
    }
}

static ib_api_status_t to_rts(struct al_qp *qp, const ib_qp_mod_t *mod, struct change *c)
{
    const ib_qp_opts_t all = IB_MOD_QP_INIT_DEPTH | IB_MOD_QP_RETRY_CNT | IB_MOD_QP_RNR_RETRY_CNT |
                             IB_MOD_QP_LOCAL_ACK_TIMEOUT;
    ib_qp_opts_t opts = mod->state.rts.opts;
    ib_api_status_t status = refuse(opts);
    if (status == IB_SUCCESS && opts & IB_MOD_QP_ACCESS_CTRL)
        status = set_access(mod->state.rts.access_ctrl, c);
    if (status != IB_SUCCESS)
        return status;
    if (al_qp_state(qp) == IB_QPS_RTR) {
        c->attr.sq_psn = CL_NTOH32(mod->state.rts.sq_psn);
        c->mask |= IBV_QP_SQ_PSN;
        opts |= all;
    }
    if (qp->type == IB_QPT_RELIABLE_CONN)
        set_reliability(mod, opts, c);
    return IB_SUCCESS;
}

static ib_api_status_t to_sqd(struct al_qp *qp, const ib_qp_mod_t *mod, struct change *c)
{
    (void)qp;
    c->attr.en_sqd_async_notify = !!mod->state.sqd.sqd_event;
    c->mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
    return IB_SUCCESS;
}

/* What can be asked for, from which states, and what is set besides; NULL: nothing. */
static const struct {
    ib_qp_state_t state;
    enum ibv_qp_state verbs;
    ib_qp_state_t from;
    ib_api_status_t (*fill)(struct al_qp *qp, const ib_qp_mod_t *mod, struct change *c);
} targets[] = {
    {IB_QPS_RESET, IBV_QPS_RESET, ~0U, NULL},
    {IB_QPS_INIT, IBV_QPS_INIT, IB_QPS_RESET | IB_QPS_INIT, to_init},
    {IB_QPS_RTR, IBV_QPS_RTR, IB_QPS_INIT, to_rtr},
    {IB_QPS_RTS, IBV_QPS_RTS, IB_QPS_RTR | IB_QPS_RTS | IB_QPS_SQD | IB_QPS_SQERR, to_rts},
    {IB_QPS_SQD, IBV_QPS_SQD, IB_QPS_RTS | IB_QPS_SQD, to_sqd},
    {IB_QPS_ERROR, IBV_QPS_ERR, ~0U, NULL},
};

static ib_api_status_t modify_locked(struct al_qp *qp, const ib_qp_mod_t *mod)
{
    struct change c = {.mask = IBV_QP_STATE};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (targets[i].state != mod->req_state)
            continue;
        if (!(al_qp_state(qp) & targets[i].from))
            return IB_INVALID_QP_STATE;
        c.attr.qp_state = targets[i].verbs;
        ib_api_status_t status = targets[i].fill ? targets[i].fill(qp, mod, &c) : IB_SUCCESS;
        if (status == IB_SUCCESS)
            status = al_status(ibv_modify_qp(qp->verbs, &c.attr, c.mask), IB_INVALID_SETTING);
        if (status == IB_SUCCESS && c.av)
            qp->av = *c.av;
        return status == IB_INSUFFICIENT_MEMORY ? IB_INSUFFICIENT_RESOURCES : status;
    }
    return IB_INVALID_SETTING;
}

ib_api_status_t ib_modify_qp(const ib_qp_handle_t h_qp, const ib_qp_mod_t *const p_qp_mod)
{
    struct al_qp *qp = al_get(&al_qp_kind, h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_api_status_t status = IB_INVALID_PARAMETER;
    if (p_qp_mod) {
        pthread_mutex_lock(&qp->lock);
        status = modify_locked(qp, p_qp_mod);
        pthread_mutex_unlock(&qp->lock);
    }
    al_put(&qp->o);
    return status;
}

/* ---- for connections ---- */

ib_api_status_t al_qp_prepare(struct al_qp *qp)
{
    const ib_qp_mod_t mod = {
        .req_state = IB_QPS_INIT,
        .state.init = {.primary_port = AL_PORT, .access_ctrl = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE},
    };
    pthread_mutex_lock(&qp->lock);
    ib_qp_state_t state = al_qp_state(qp);
    ib_api_status_t status = state == IB_QPS_RESET  ? modify_locked(qp, &mod)
                             : state == IB_QPS_INIT ? IB_SUCCESS
                                                    : IB_INVALID_QP_STATE;
    pthread_mutex_unlock(&qp->lock);
    return status;
}

ib_api_status_t al_qp_allow(struct al_qp *qp, ib_access_t access)
{
    struct change c = {.mask = 0};
    ib_api_status_t status = access ? set_access(access, &c) : IB_SUCCESS;
    if (status == IB_SUCCESS && access)
        status = al_status(ibv_modify_qp(qp->verbs, &c.attr, c.mask), IB_INVALID_SETTING);
    return status;
}

bool al_qp_is_moved(const struct al_qp *qp)
{
    return qp->verbs->context->device->transport_type == IBV_TRANSPORT_IWARP;
}

int al_qp_connect(struct al_qp *qp, struct rdma_cm_id *id)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_RTR, IBV_QPS_RTS};
    int error = 0;
    pthread_mutex_lock(&qp->lock);
    for (size_t i = 0; i < sizeof states / sizeof *states && !error; i++) {
        struct ibv_qp_attr attr = {.qp_state = states[i]};
        int mask;
        error = rdma_init_qp_attr(id, &attr, &mask) != 0 ? errno
                                                         : ibv_modify_qp(qp->verbs, &attr, mask);
    }
    pthread_mutex_unlock(&qp->lock);
    return error;
}

void al_qp_disconnect(struct al_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (al_qp_is_moved(qp))
        return;
    pthread_mutex_lock(&qp->lock);
    ibv_modify_qp(qp->verbs, &attr, IBV_QP_STATE);
    pthread_mutex_unlock(&qp->lock);
}

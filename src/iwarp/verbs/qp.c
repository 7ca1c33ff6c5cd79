/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs. Posting is in post.c. */
#include "qp/qp.h"
#include "advice/life.h"
#include "advice/shadow.h"
#include "device/context.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "faults/plight.h"
#include "observe/record.h"
#include "qp/rx_late.h"
#include "qpn/dial.h"
#include "ud/ud.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/late_recv.h"
#include "verbs/ops.h"

static struct iw_qp *create_connected(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                                      struct iw_dial *dial)
{
    struct iw_qp *qp = iw_qp_create(iw_pd(pd), attr, dial ? iw_dial_number(dial) : 0, NULL);
    if (qp && dial)
        iw_dial_attach(dial, qp);
    return qp;
}

static struct iw_qp *create_ud(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_port_attr port;
    iw_device_query_port(iw_device(pd->context->device), 1, &port);
    struct iw_ud *ud = iw_ud_new(128u << port.active_mtu);
    if (!ud)
        return NULL;
    struct iw_qp *qp = iw_qp_create(iw_pd(pd), attr, ud->number.qpn, &ud->datagrams);
    if (!qp) {
        int error = errno;
        iw_ud_free(ud);
        return null_errno(error);
    }
    iw_ud_attach(ud, qp);
    return qp;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                              struct iw_dial *dial)
{
    int r = iw_like_qp(attr);
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_CREATE_QP, NULL))
        return null_errno(ENOMEM);
    const struct ibv_qp_init_attr asked = *attr;
    struct iw_qp *qp =
        attr->qp_type == IBV_QPT_UD ? create_ud(pd, attr) : create_connected(pd, attr, dial);
    if (!qp)
        return NULL;
    if (iw_chaos_on())
        iw_late_init(qp);
    verbs_check_qp(qp, &asked);
    iw_plight_born(&qp->pub, "qp");
    return &qp->pub;
}

struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct iw_dial *dial)
{
    struct iw_recorded r =
        iw_record(CREATE_QP, 0, attr->qp_type, (uintptr_t)attr->send_cq, (uintptr_t)attr->recv_cq,
                  attr->cap.max_send_wr, attr->cap.max_recv_wr);
    struct ibv_qp *qp = make_qp(pd, attr, dial);
    iw_record_made(r, qp, qp ? qp->qp_num : 0, errno);
    return qp;
}

VERBS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init_attr)
{
    if (!pd || !init_attr)
        return null_errno(iw_refuse("ibv_create_qp", ARGUMENT));
    if (init_attr->qp_type == IBV_QPT_UD)
        return create_qp(pd, init_attr, NULL);
    struct iw_dial *dial = iw_dial_new(true);
    if (!dial)
        return null_errno(ENOMEM);
    struct ibv_qp *qp = create_qp(pd, init_attr, dial);
    if (!qp)
        iw_dial_free(dial);
    return qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    if (!qp || !attr)
        return iw_refuse("ibv_modify_qp", ARGUMENT);
    if (iw_chaos(IW_FAULT_MODIFY_QP, NULL))
        return ENOMEM;
    int r = iw_life_over(qp, "ibv_modify_qp");
    if (r)
        return r;
    struct iw_dial *dial = iw_qp(qp)->dial;
    r = iw_dial_check(dial, attr, attr_mask);
    if (r)
        return r;
    bool reset = (attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
    if (reset)
        iw_dial_stop(dial);
    else /* what it flushes may be all that the program waits for, to destroy it */
        atomic_fetch_add(&iw_qp(qp)->pins, 1);
    r = iw_qp_modify(iw_qp(qp), attr, attr_mask);
    if (!r && (attr_mask & IBV_QP_STATE))
        iw_shadow_moved(iw_qp(qp)->shadow, attr->qp_state);
    if (!r && iw_qp(qp)->datagrams)
        r = iw_ud_moved(iw_ud(iw_qp(qp)));
    else if (reset)
        iw_dial_renew(dial);
    else if (!r)
        iw_dial_moved(dial, attr, attr_mask);
    if (!reset)
        atomic_fetch_sub(&iw_qp(qp)->pins, 1);
    return r;
}

VERBS_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    struct iw_recorded r;
    if (qp && attr && (attr_mask & IBV_QP_STATE))
        r = iw_record(MODIFY_QP_STATE, qp->qp_num, (uint32_t)attr_mask, attr->qp_state);
    else
        r = iw_record(MODIFY_QP, qp ? qp->qp_num : 0, (uint32_t)attr_mask);
    return iw_record_end(r, modify_qp(qp, attr, attr_mask));
}

VERBS_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                              struct ibv_qp_init_attr *init_attr)
{
    struct ibv_qp_init_attr unwanted;
    (void)attr_mask; /* more than asked for is always allowed */
    if (!qp || !attr)
        return iw_refuse("ibv_query_qp", ARGUMENT);
    if (iw_chaos(IW_FAULT_QUERY_QP, NULL))
        return ENOMEM;
    int r = iw_life_over(qp, "ibv_query_qp");
    if (r)
        return r;
    iw_qp_query(iw_qp(qp), attr, init_attr ? init_attr : &unwanted);
    return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
    if (!qp)
        return iw_refuse("ibv_destroy_qp", ARGUMENT);
    int r = iw_life_over(qp, "ibv_destroy_qp");
    if (r)
        return r;
    struct iw_dial *dial = iw_qp(qp)->dial;
    struct iw_ud *ud = iw_qp(qp)->datagrams ? iw_ud(iw_qp(qp)) : NULL;
    if (iw_chaos_on())
        late_recv_forget(qp);
    iw_dial_stop(dial);
    iw_ud_stop(ud);
    iw_qp_stop(iw_qp(qp));
    iw_dial_free(dial);
    /* Also those that the close itself raised. */
    settle_async_events(qp->context, qp,
                        &(struct async_acks){.call = "ibv_destroy_qp",
                                             .read = &iw_qp(qp)->async_events_read,
                                             .completed = &qp->events_completed,
                                             .mutex = &qp->mutex,
                                             .cond = &qp->cond});
    iw_qp_free(iw_qp(qp));
    iw_ud_free(ud);
    return 0;
}

VERBS_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct iw_recorded r = iw_record(DESTROY_QP, qp ? qp->qp_num : 0);
    return iw_record_end(r, destroy_qp(qp));
}

VERBS_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return qp && iw_qp(qp)->builder ? &iw_qp(qp)->pub_ex : NULL;
}

VERBS_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
                                            uint32_t flags)
{
    (void)qp, (void)op, (void)flags;
    return 0;
}

VERBS_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return errno = iw_refuse(__func__, OFFERED);
}

VERBS_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return errno = iw_refuse(__func__, OFFERED);
}

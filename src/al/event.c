/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/event.h"

#include "al/ca.h"
#include "al/cq.h"
#include "al/qp.h"
#include "al/srq.h"
#include "compat/element.h"

#include <stddef.h>

static const struct {
    enum ibv_event_type from;
    ib_async_event_t to;
} codes[] = {
    {IBV_EVENT_CQ_ERR, IB_AE_CQ_ERROR},
    {IBV_EVENT_QP_FATAL, IB_AE_QP_FATAL},
    {IBV_EVENT_QP_REQ_ERR, IB_AE_WQ_REQ_ERROR},
    {IBV_EVENT_QP_ACCESS_ERR, IB_AE_WQ_ACCESS_ERROR},
    {IBV_EVENT_COMM_EST, IB_AE_QP_COMM},
    {IBV_EVENT_SQ_DRAINED, IB_AE_SQ_DRAINED},
    {IBV_EVENT_PATH_MIG, IB_AE_QP_APM},
    {IBV_EVENT_PATH_MIG_ERR, IB_AE_QP_APM_ERROR},
    {IBV_EVENT_DEVICE_FATAL, IB_AE_LOCAL_FATAL},
    {IBV_EVENT_PORT_ACTIVE, IB_AE_PORT_ACTIVE},
    {IBV_EVENT_PORT_ERR, IB_AE_PORT_DOWN},
    {IBV_EVENT_CLIENT_REREGISTER, IB_AE_CLIENT_REREGISTER},
    {IBV_EVENT_SRQ_ERR, IB_AE_SRQ_CATAS_ERROR},
    {IBV_EVENT_SRQ_LIMIT_REACHED, IB_AE_SRQ_LIMIT_REACHED},
    {IBV_EVENT_QP_LAST_WQE_REACHED, IB_AE_SRQ_QP_LAST_WQE_REACHED},
};

static ib_async_event_t code_of(enum ibv_event_type type)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].from == type)
            return codes[i].to;
    }
    return IB_AE_UNKNOWN;
}

static void tell(struct al_object *o, ib_pfn_event_cb_t cb, enum ibv_event_type type)
{
    ib_async_event_rec_t rec = {
        .code = code_of(type),
        .vendor_specific = type,
        .context = (void *)(uintptr_t)o->context,
        .handle.h_ca = o->handle,
    };
    if (cb && o->open)
        cb(&rec);
    al_put(o);
}

static void tell_qp(void *handle, enum ibv_event_type type)
{
    struct al_qp *qp = al_get(&al_qp_kind, handle);
    if (qp)
        tell(&qp->o, qp->event_cb, type);
}

static void tell_cq(void *handle, enum ibv_event_type type)
{
    struct al_cq *cq = al_get(&al_cq_kind, handle);
    if (cq)
        tell(&cq->o, cq->event_cb, type);
}

static void tell_srq(void *handle, enum ibv_event_type type)
{
    struct al_srq *srq = al_get(&al_srq_kind, handle);
    if (srq)
        tell(&srq->o, srq->event_cb, type);
}

static void tell_cas(const struct al_device *d, enum ibv_event_type type)
{
    uint32_t position = 0;
    struct al_ca *ca;
    while ((ca = al_next(&al_ca_kind, &position))) {
        if (ca->device == d)
            tell(&ca->o, ca->event_cb, type);
        else
            al_put(&ca->o);
    }
}

void al_event(struct al_device *d, const struct ibv_async_event *event)
{
    switch (event_element(event->event_type)) {
    case ELEMENT_CQ:
        tell_cq(event->element.cq->cq_context, event->event_type);
        break;
    case ELEMENT_QP:
        tell_qp(event->element.qp->qp_context, event->event_type);
        break;
    case ELEMENT_SRQ:
        tell_srq(event->element.srq->srq_context, event->event_type);
        break;
    case ELEMENT_PORT:
        tell_cas(d, event->event_type);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/srq.h"

#include "al/pd.h"
#include "al/status.h"
#include "al/work.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    const struct al_srq *srq = container_of(o, struct al_srq, o);
    if (srq->verbs)
        ibv_destroy_srq(srq->verbs);
}

const struct al_kind al_srq_kind = {
    .type = AL_SRQ,
    .invalid = IB_INVALID_SRQ_HANDLE,
    .release = release,
};

static ib_api_status_t check(struct ibv_context *verbs, const ib_srq_attr_t *attr)
{
    struct ibv_device_attr device;
    if (ibv_query_device(verbs, &device) != 0)
        return IB_ERROR;
    if (attr->max_wr == 0 || attr->max_wr > (uint32_t)device.max_srq_wr)
        return IB_INVALID_MAX_WRS;
    if (attr->max_sge > (uint32_t)device.max_srq_sge || attr->max_sge > AL_MAX_SGE)
        return IB_INVALID_MAX_SGE;
    return IB_SUCCESS;
}

static ib_api_status_t create(struct al_pd *pd, const ib_srq_attr_t *attr, const void *context,
                              ib_pfn_event_cb_t event_cb, ib_srq_handle_t *handle)
{
    if (!attr || !handle)
        return IB_INVALID_PARAMETER;
    ib_api_status_t status = check(pd->verbs->context, attr);
    if (status != IB_SUCCESS)
        return status;
    struct al_srq *srq = calloc(1, sizeof *srq);
    if (srq) {
        srq->event_cb = event_cb;
        srq->sge = attr->max_sge;
    }
    status = al_add(srq ? &srq->o : NULL, &al_srq_kind, &pd->o, context);
    if (status != IB_SUCCESS)
        return status;
    struct ibv_srq_init_attr init = {
        .srq_context = srq->o.handle,
        .attr = {.max_wr = attr->max_wr, .max_sge = attr->max_sge, .srq_limit = attr->srq_limit},
    };
    srq->verbs = ibv_create_srq(pd->verbs, &init);
    if (!srq->verbs) {
        status = al_status(errno, IB_INVALID_SETTING);
        al_fail(&srq->o);
        return status;
    }
    *handle = srq->o.handle;
    al_put(&srq->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_create_srq(const ib_pd_handle_t h_pd, const ib_srq_attr_t *const p_srq_attr,
                              const void *const srq_context,
                              const ib_pfn_event_cb_t pfn_srq_event_cb,
                              ib_srq_handle_t *const ph_srq)
{
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    ib_api_status_t status = create(pd, p_srq_attr, srq_context, pfn_srq_event_cb, ph_srq);
    al_put(&pd->o);
    return status;
}

ib_api_status_t ib_query_srq(const ib_srq_handle_t h_srq, ib_srq_attr_t *const p_srq_attr)
{
    struct al_srq *srq = al_get(&al_srq_kind, h_srq);
    if (!srq)
        return IB_INVALID_SRQ_HANDLE;
    struct ibv_srq_attr attr;
    int error = p_srq_attr ? ibv_query_srq(srq->verbs, &attr) : EINVAL;
    if (!error)
        *p_srq_attr = (ib_srq_attr_t){attr.max_wr, attr.max_sge, attr.srq_limit};
    al_put(&srq->o);
    return al_status(error, IB_INVALID_PARAMETER);
}

ib_api_status_t ib_modify_srq(const ib_srq_handle_t h_srq, const ib_srq_attr_t *const p_srq_attr,
                              const ib_srq_attr_mask_t srq_attr_mask)
{
    struct al_srq *srq = al_get(&al_srq_kind, h_srq);
    if (!srq)
        return IB_INVALID_SRQ_HANDLE;
    ib_api_status_t status = IB_INVALID_PARAMETER;
    if (p_srq_attr) {
        struct ibv_srq_attr attr = {
            .max_wr = p_srq_attr->max_wr,
            .srq_limit = p_srq_attr->srq_limit,
        };
        unsigned mask = srq_attr_mask & IB_SRQ_MAX_WR ? IBV_SRQ_MAX_WR : 0;
        mask |= srq_attr_mask & IB_SRQ_LIMIT ? IBV_SRQ_LIMIT : 0;
        status = al_status(ibv_modify_srq(srq->verbs, &attr, (int)mask), IB_INVALID_SETTING);
    }
    al_put(&srq->o);
    return status;
}

ib_api_status_t ib_destroy_srq(const ib_srq_handle_t h_srq,
                               const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&al_srq_kind, h_srq, pfn_destroy_cb);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues of ids. */
#include "cma.h"

#define CALL "rdma_create_srq"

static int create_srq_locked(struct cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
    struct rdma_cm_id *pub = &id->pub;
    if (!pub->verbs || pub->srq || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
        return -iw_refuse(CALL, VALUE, "an id without device, or with an SRQ, or no srq_type");
    if (attr->srq_type != IBV_SRQT_BASIC)
        return -iw_refuse(CALL, ATTRIBUTE, "srq_type: no XRC, no tags");
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
        attr->pd = pub->pd;
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    if (attr->pd->context != pub->verbs)
        return -iw_refuse(CALL, OTHER_CONTEXT, "the protection domain");
    struct ibv_srq *srq = ibv_create_srq_ex(pub->verbs, attr);
    if (!srq)
        return -errno;
    pub->srq = srq;
    return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *pub, struct ibv_srq_init_attr_ex *attr)
{
    if (!attr)
        return cma_no_handle(__func__);
    struct cma_id *id = cma_enter(pub, CMA_CALL_CREATE_SRQ);
    return id ? cma_leave(id, create_srq_locked(id, attr)) : cma_refused(pub);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (!id || !attr)
        return cma_no_handle(__func__);
    struct ibv_srq_init_attr_ex ex = {
        .srq_context = attr->srq_context,
        .attr = attr->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = pd,
    };
    int r = rdma_create_srq_ex(id, &ex);
    if (r == 0)
        attr->attr = ex.attr;
    return r;
}

void rdma_destroy_srq(struct rdma_cm_id *pub)
{
    if (!pub)
        return;
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    struct ibv_srq *srq = pub->srq;
    pub->srq = NULL;
    lock_put(&id->lock);
    if (srq)
        ibv_destroy_srq(srq);
}

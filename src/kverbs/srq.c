/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/srq.h"

#include <errno.h>
#include <stdlib.h>

#include "kverbs/census.h"
#include "kverbs/context.h"
#include "kverbs/pd.h"

void kv_srq_event(struct kv_srq *srq, struct ib_event *e)
{
    e->element.srq = &srq->ib;
    if (!srq->ib.event_handler)
        return;
    kv_interrupt_begin(srq);
    srq->ib.event_handler(e, srq->ib.srq_context);
    kv_interrupt_end();
}

struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init)
{
    might_sleep();
    if (init->srq_type != IB_SRQT_BASIC)
        return ERR_PTR(-EOPNOTSUPP);
    struct kv_srq *srq = calloc(1, sizeof *srq);
    if (!srq)
        return ERR_PTR(-ENOMEM);
    struct ibv_srq_init_attr v = {
        .srq_context = srq,
        .attr = {.max_wr = init->attr.max_wr,
                 .max_sge = init->attr.max_sge,
                 .srq_limit = init->attr.srq_limit},
    };
    srq->verb = ibv_create_srq(kv_pd(pd)->verb, &v);
    if (!srq->verb) {
        free(srq);
        return ERR_PTR(-errno);
    }
    init->attr.max_wr = v.attr.max_wr;
    init->attr.max_sge = v.attr.max_sge;
    srq->ib.device = pd->device;
    srq->ib.pd = pd;
    srq->ib.event_handler = init->event_handler;
    srq->ib.srq_context = init->srq_context;
    kv_pd_use(pd, 1);
    kv_count(KV_SRQ, 1);
    return &srq->ib;
}

int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask)
{
    struct ibv_srq_attr v = {
        .max_wr = attr->max_wr, .max_sge = attr->max_sge, .srq_limit = attr->srq_limit};
    return -ibv_modify_srq(kv_srq(srq)->verb, &v, (int)mask);
}

int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
    struct ibv_srq_attr v;
    int e = ibv_query_srq(kv_srq(srq)->verb, &v);
    if (e)
        return -e;
    *attr =
        (struct ib_srq_attr){.max_wr = v.max_wr, .max_sge = v.max_sge, .srq_limit = v.srq_limit};
    return 0;
}

int ib_destroy_srq(struct ib_srq *ib)
{
    might_sleep();
    struct kv_srq *srq = kv_srq(ib);
    if (atomic_read(&ib->usecnt) > 0)
        return -EBUSY;
    if (kv_interrupted_for() == srq) {
        printk(KERN_ERR "%s: an SRQ's handler destroys the SRQ\n", ib->device->name);
        return -EDEADLK;
    }
    int e = ibv_destroy_srq(srq->verb);
    if (e)
        return -e;
    kv_pd_use(ib->pd, -1);
    free(srq);
    kv_count(KV_SRQ, -1);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion counters. */
#include "cq/counter.h"
#include "env/limits.h"
#include "qp/qp.h"
#include "verbs/export.h"

#include <string.h>

/** Callers newer than we are have a larger struct: what we do not know in it is zero. */
VERBS_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *context,
                                           struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
    const struct ibv_comp_cntr_caps known = {
        .max_value = UINT64_MAX,
        .max_counters = IW_MAX_COUNTER,
        .supported_qp_attach_ops = IW_COUNTER_OPS,
    };
    if (!context || !caps)
        return iw_refuse(__func__, ARGUMENT);
    memset(caps, 0, caps_size);
    memcpy(caps, &known, caps_size < sizeof(known) ? caps_size : sizeof(known));
    return 0;
}

VERBS_EXPORT struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
                                                        struct ibv_comp_cntr_init_attr *cc_attr)
{
    if (!context || !cc_attr)
        return null_errno(iw_refuse(__func__, ARGUMENT));
    struct iw_counter *c = iw_counter_create(context, cc_attr);
    return c ? &c->pub : NULL;
}

VERBS_EXPORT int ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr)
{
    return comp_cntr ? iw_counter_destroy(iw_counter(comp_cntr)) : iw_refuse(__func__, ARGUMENT);
}

VERBS_EXPORT int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
                                         struct ibv_qp_attach_comp_cntr_attr *attr)
{
    if (!qp || !comp_cntr || !attr)
        return iw_refuse(__func__, ARGUMENT);
    if (attr->comp_mask)
        return iw_refuse(__func__, VALUE, "a comp_mask");
    return iw_qp_count(iw_qp(qp), iw_counter(comp_cntr), attr->op_mask);
}

VERBS_EXPORT int ibv_set_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
    if (!comp_cntr)
        return iw_refuse(__func__, ARGUMENT);
    atomic_store(&iw_counter(comp_cntr)->done, value);
    return 0;
}

VERBS_EXPORT int ibv_set_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
    if (!comp_cntr)
        return iw_refuse(__func__, ARGUMENT);
    atomic_store(&iw_counter(comp_cntr)->failed, value);
    return 0;
}

VERBS_EXPORT int ibv_inc_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
    if (!comp_cntr)
        return iw_refuse(__func__, ARGUMENT);
    atomic_fetch_add(&iw_counter(comp_cntr)->done, amount);
    return 0;
}

VERBS_EXPORT int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
    if (!comp_cntr)
        return iw_refuse(__func__, ARGUMENT);
    atomic_fetch_add(&iw_counter(comp_cntr)->failed, amount);
    return 0;
}

VERBS_EXPORT int ibv_read_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
    if (!comp_cntr || !value)
        return iw_refuse(__func__, ARGUMENT);
    *value = atomic_load(&iw_counter(comp_cntr)->done);
    return 0;
}

VERBS_EXPORT int ibv_read_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
    if (!comp_cntr || !value)
        return iw_refuse(__func__, ARGUMENT);
    *value = atomic_load(&iw_counter(comp_cntr)->failed);
    return 0;
}

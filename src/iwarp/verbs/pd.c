/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains. Thread domains and parent domains are in td.c. */
#include "mem/pd.h"
#include "advice/life.h"
#include "device/context.h"
#include "faults/chaos.h"
#include "observe/record.h"
#include "verbs/export.h"

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
    if (!context)
        return null_errno(iw_refuse("ibv_alloc_pd", ARGUMENT));
    if (iw_chaos(IW_FAULT_ALLOC_PD, NULL))
        return null_errno(ENOMEM);
    struct iw_pd *pd = iw_pd_alloc(context);
    if (!pd)
        return NULL;
    atomic_fetch_add(&iw_context(context)->users, 1);
    iw_life_begin(&pd->pub, "protection domain");
    return &pd->pub;
}

VERBS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct iw_recorded r = iw_record(ALLOC_PD, 0);
    struct ibv_pd *pd = alloc_pd(context);
    iw_record_made(r, pd, (uintptr_t)pd, errno);
    return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    if (!pd)
        return iw_refuse("ibv_dealloc_pd", ARGUMENT);
    int r = iw_life_over(pd, "ibv_dealloc_pd");
    if (r)
        return r;
    struct iw_context *ctx = iw_context(pd->context);
    r = iw_pd_dealloc(iw_pd(pd));
    if (!r)
        iw_context_put(ctx);
    return r;
}

VERBS_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct iw_recorded r = iw_record(DEALLOC_PD, (uintptr_t)pd);
    return iw_record_end(r, dealloc_pd(pd));
}

VERBS_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context, (void)pd_handle;
    return null_errno(iw_refuse("ibv_import_pd", OFFERED));
}

VERBS_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread domains and parent domains. */
#include "device/context.h"
#include "env/later.h"
#include "mem/pd.h"
#include "verbs/export.h"
#include "verbs/ops.h"

#include <stdlib.h>

#define PARENT "ibv_alloc_parent_domain"

struct ibv_td *op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (!attr || attr->comp_mask)
        return null_errno(iw_refuse("ibv_alloc_td", VALUE, "no attributes, or a comp_mask"));
    struct iw_td *td = calloc(1, sizeof(*td));
    if (!td)
        return null_errno(ENOMEM);
    td->pub.context = context;
    atomic_fetch_add(&iw_context(context)->users, 1);
    return &td->pub;
}

int op_dealloc_td(struct ibv_td *td)
{
    struct iw_context *ctx = iw_context(td->context);
    unsigned users = atomic_load(&iw_td(td)->users);
    if (users)
        return iw_refuse("ibv_dealloc_td", IN_USE, users, "parent domains");
    free(iw_td(td));
    iw_context_put(ctx);
    return 0;
}

/*
 * Allocators would never be called: nothing here lives in memory that a program could choose. What
 * allows memory that is not protected from the host is no demand for it.
 */
struct ibv_pd *op_alloc_parent_domain(struct ibv_context *context,
                                      struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                           IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                           IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC;
    if (!attr || !attr->pd || (attr->comp_mask & ~known) ||
        iw_pd(attr->pd)->root != iw_pd(attr->pd))
        return null_errno(
            iw_refuse(PARENT, VALUE, "no pd, a parent domain as pd, or this comp_mask"));
    if (attr->pd->context != context || (attr->td && attr->td->context != context))
        return null_errno(iw_refuse(PARENT, OTHER_CONTEXT, "the protection or thread domain"));
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS)
        return null_errno(iw_refuse(PARENT, ATTRIBUTE, "comp_mask: allocators"));
    struct iw_pd *pd = iw_pd_alloc_parent(iw_pd(attr->pd), attr->td ? iw_td(attr->td) : NULL);
    if (!pd)
        return NULL;
    atomic_fetch_add(&iw_context(context)->users, 1);
    return &pd->pub;
}

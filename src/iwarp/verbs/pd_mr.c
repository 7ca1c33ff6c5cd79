/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and memory regions. */
#include "rnic/context.h"
#include "rnic/region.h"
#include "verbs/export.h"

#include <unistd.h>

VERBS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    if (!context)
        return null_errno(EINVAL);
    struct iw_pd *pd = iw_pd_alloc(context);
    if (!pd)
        return NULL;
    atomic_fetch_add(&iw_context(context)->users, 1);
    return &pd->pub;
}

VERBS_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    if (!pd)
        return EINVAL;
    struct iw_context *ctx = iw_context(pd->context);
    int r = iw_pd_dealloc(iw_pd(pd));
    if (!r)
        atomic_fetch_sub(&ctx->users, 1);
    return r;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned access)
{
    if (!pd)
        return null_errno(EINVAL);
    struct iw_mr *mr = iw_mr_reg(iw_pd(pd), addr, length, iova, access);
    return mr ? &mr->pub : NULL;
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                             uint64_t iova, unsigned access)
{
    /* As the kernel has it: both addresses stand at the same place in their pages. */
    if ((iova ^ (uintptr_t)addr) & ((uint64_t)sysconf(_SC_PAGESIZE) - 1))
        return null_errno(EINVAL);
    return reg(pd, addr, length, iova, access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                            uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

VERBS_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    return mr ? iw_mr_dereg(container_of(mr, struct iw_mr, pub)) : EINVAL;
}

/** Not supported, in the one way that says that the old region is still valid. */
VERBS_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                              size_t length, int access)
{
    (void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

VERBS_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                              uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context, (void)pd_handle;
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

VERBS_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd, (void)mr_handle;
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

VERBS_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context, (void)dm_handle;
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

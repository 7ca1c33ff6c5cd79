/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include "mem/mr.h"
#include "advice/life.h"
#include "faults/chaos.h"
#include "mem/probe.h"
#include "observe/record.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/ops.h"

#include <unistd.h>

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access)
{
    if (!pd)
        return null_errno(iw_refuse("ibv_reg_mr", ARGUMENT));
    if (iw_chaos(IW_FAULT_REG_MR, NULL))
        return null_errno(ENOMEM);
    struct iw_mr *mr = iw_mr_reg(iw_pd(pd), addr, length, iova, access);
    if (!mr)
        return NULL;
    iw_life_begin(&mr->pub, "memory region");
    return &mr->pub;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned access)
{
    struct iw_recorded r = iw_record(REG_MR, 0, (uintptr_t)pd, (uintptr_t)addr, length, access);
    struct ibv_mr *mr = reg_mr(pd, addr, length, iova, access);
    iw_record_made(r, mr, mr ? mr->lkey : 0, errno);
    return mr;
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
        return null_errno(iw_refuse("ibv_reg_mr_iova", IOVA));
    return reg(pd, addr, length, iova, access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                            uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

static int dereg_mr(struct ibv_mr *mr)
{
    if (!mr)
        return iw_refuse("ibv_dereg_mr", ARGUMENT);
    int r = iw_life_over(mr, "ibv_dereg_mr");
    if (r)
        return r;
    verbs_check_dereg(mr);
    return iw_mr_dereg(container_of(mr, struct iw_mr, pub));
}

VERBS_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct iw_recorded r = iw_record(DEREG_MR, mr ? mr->lkey : 0);
    return iw_record_end(r, dereg_mr(mr));
}

/** Everything is checked before anything changes: whatever fails, the old region is valid. */
static int rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                    int access)
{
    if (mr && iw_chaos(IW_FAULT_REREG_MR, NULL)) {
        errno = ENOMEM;
        return IBV_REREG_MR_ERR_CMD;
    }
    int err = mr ? iw_mr_rereg(container_of(mr, struct iw_mr, pub), (unsigned)flags,
                               pd ? iw_pd(pd) : NULL, addr, length, (unsigned)access)
                 : iw_refuse("ibv_rereg_mr", ARGUMENT);
    if (!err)
        return 0;
    errno = err;
    return IBV_REREG_MR_ERR_INPUT;
}

VERBS_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                              size_t length, int access)
{
    struct iw_recorded r =
        iw_record(REREG_MR, mr ? mr->lkey : 0, (uint32_t)flags, (uintptr_t)addr, length);
    int result = rereg_mr(mr, flags, pd, addr, length, access);
    iw_record_end(r, result ? errno : 0);
    return result;
}

struct ibv_mr *op_alloc_null_mr(struct ibv_pd *pd)
{
    struct iw_mr *mr = iw_mr_null(iw_pd(pd));
    return mr ? &mr->pub : NULL;
}

static int prefetch(struct iw_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge)
{
    bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    uint8_t *p;
    int r = iw_region_advised(sge->lkey, pd, write, sge->addr, sge->length, &p);
    if (r || !p || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return r;
    return iw_prefetch(p, sge->length, write);
}

/** The advice is taken before the call returns, with IBV_ADVISE_MR_FLAG_FLUSH or without. */
int op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                 struct ibv_sge *sg_list, uint32_t num_sge)
{
    int r = 0;
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !sg_list || !num_sge)
        return iw_refuse("ibv_advise_mr", VALUE, "these flags, or no entries");
    if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
        advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return iw_refuse("ibv_advise_mr", ATTRIBUTE, "the kinds of advice");
    for (uint32_t i = 0; i < num_sge && !r; i++)
        r = prefetch(iw_pd(pd)->root, advice, &sg_list[i]);
    return r;
}

VERBS_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                              uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    return null_errno(iw_refuse("ibv_reg_dmabuf_mr", OFFERED));
}

VERBS_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd, (void)mr_handle;
    return null_errno(iw_refuse("ibv_import_mr", OFFERED));
}

VERBS_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

VERBS_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context, (void)dm_handle;
    return null_errno(iw_refuse("ibv_import_dm", OFFERED));
}

VERBS_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

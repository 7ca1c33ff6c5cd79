/* SPDX-License-Identifier: BSD-2-Clause */
/* What wants hardware, or a transport, that is not there. */
#include "kverbs/qp.h"

#include <errno.h>
#include <string.h>

struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags, struct ib_fmr_attr *fmr_attr)
{
    (void)pd, (void)mr_access_flags, (void)fmr_attr;
    return ERR_PTR(-EOPNOTSUPP);
}

int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova)
{
    (void)fmr, (void)page_list, (void)list_len, (void)iova;
    return -EOPNOTSUPP;
}

int ib_unmap_fmr(struct list_head *fmr_list)
{
    return list_empty(fmr_list) ? 0 : -EOPNOTSUPP;
}

int ib_dealloc_fmr(struct ib_fmr *fmr)
{
    (void)fmr;
    return -EOPNOTSUPP;
}

struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device)
{
    (void)device;
    return ERR_PTR(-EOPNOTSUPP);
}

int ib_dealloc_xrcd(struct ib_xrcd *xrcd)
{
    (void)xrcd;
    return -EOPNOTSUPP;
}

struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *qp_open_attr)
{
    (void)xrcd, (void)qp_open_attr;
    return ERR_PTR(-EOPNOTSUPP);
}

int ib_close_qp(struct ib_qp *qp)
{
    (void)qp;
    return -EOPNOTSUPP;
}

int ib_check_mr_status(struct ib_mr *mr, u32 check_mask, struct ib_mr_status *mr_status)
{
    (void)mr, (void)check_mask, (void)mr_status;
    return -EOPNOTSUPP;
}

/* The kernel's own rule comes first: a queue pair for datagrams, a group's GID. */
static int of_group(const struct ib_qp *qp, const union ib_gid *gid, union ibv_gid *v)
{
    if (qp->qp_type != IB_QPT_UD || gid->raw[0] != 0xff)
        return -EINVAL;
    memcpy(v->raw, gid->raw, sizeof v->raw);
    return 0;
}

int ib_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
    union ibv_gid v;
    int ret = of_group(qp, gid, &v);
    return ret ? ret : -ibv_attach_mcast(kv_qp(qp)->verb, &v, lid);
}

int ib_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
    union ibv_gid v;
    int ret = of_group(qp, gid, &v);
    return ret ? ret : -ibv_detach_mcast(kv_qp(qp)->verb, &v, lid);
}

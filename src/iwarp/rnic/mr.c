/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/probe.h"
#include "rnic/region.h"
#include "wire/range.h"

#include <errno.h>
#include <stdlib.h>

#define NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN                                                                                      \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |  \
     IBV_ACCESS_OPTIONAL_RANGE)

static int check(const void *addr, size_t len, uint64_t iova, unsigned access)
{
    if (access & ~(unsigned)KNOWN)
        return EINVAL;
    if ((access & NEEDS_LOCAL_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if (len == 0 || range_wraps((uintptr_t)addr, len) || range_wraps(iova, len))
        return EINVAL;
    return iw_probe(addr, len, access & IBV_ACCESS_LOCAL_WRITE);
}

struct iw_mr *iw_mr_reg(struct iw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
    int err = check(addr, len, iova, access);
    struct iw_mr *mr = err ? NULL : calloc(1, sizeof(*mr));
    if (!mr) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    mr->region = (struct iw_region){
        .pd = pd,
        .addr = addr,
        .base = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
        .len = len,
        .access = access,
    };
    err = iw_region_publish(&mr->region);
    if (err) {
        free(mr);
        errno = err;
        return NULL;
    }
    atomic_fetch_add(&pd->users, 1);
    mr->pub = (struct ibv_mr){
        .context = pd->pub.context,
        .pd = &pd->pub,
        .addr = addr,
        .length = len,
        .handle = mr->region.stag,
        .lkey = mr->region.stag,
        .rkey = mr->region.stag,
    };
    return mr;
}

int iw_mr_dereg(struct iw_mr *mr)
{
    struct iw_pd *pd = mr->region.pd;
    iw_region_revoke(&mr->region);
    free(mr);
    atomic_fetch_sub(&pd->users, 1);
    return 0;
}

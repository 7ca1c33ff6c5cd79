/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/mr.h"

#include "advice/life.h"
#include "env/guard.h"
#include "env/refuse.h"
#include "mem/probe.h"
#include "observe/stats.h"
#include "wire/range.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REREG             "ibv_rereg_mr"
#define NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN                                                                                      \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |  \
     IBV_ACCESS_OPTIONAL_RANGE)

static int check(const char *call, const void *addr, size_t len, uint64_t iova, unsigned access)
{
    bool write = access & IBV_ACCESS_LOCAL_WRITE;
    unsigned long long at = (uintptr_t)addr;
    if (access & ~(unsigned)(KNOWN | IBV_ACCESS_ON_DEMAND))
        return iw_refuse(call, ACCESS_FLAGS, access);
    if ((access & NEEDS_LOCAL_WRITE) && !write)
        return iw_refuse(call, ACCESS_LOCAL);
    if (access & IBV_ACCESS_ON_DEMAND)
        return iw_refuse(call, ON_DEMAND);
    if (len == 0)
        return iw_refuse(call, EMPTY);
    if (range_wraps((uintptr_t)addr, len) || range_wraps(iova, len))
        return iw_refuse(call, WRAPS, at, len);
    if (iw_probe(addr, len, write))
        return iw_refuse(call, UNMAPPED, len, at, write ? "can be written" : "can be read");
    return 0;
}

/** A region comes (@p n is 1) or goes (-1). The null region has no memory. */
static void count(const struct iw_region *r, int n)
{
    iw_stats_gauge(STATS_mr, n);
    if (r->kind == IW_REGION_MEMORY)
        iw_stats_gauge(STATS_mr_bytes, n * (int64_t)r->grant.len);
}

/** Gives @p g, but for its STag. @return NULL and errno ENOMEM */
static struct iw_region *make(struct iw_pd *pd, enum iw_region_kind kind, const struct iw_grant *g)
{
    struct iw_region *r = calloc(1, sizeof(*r));
    if (!r) {
        errno = ENOMEM;
        return NULL;
    }
    r->pd = pd->root;
    r->kind = kind;
    r->grant = *g;
    return r;
}

/** Makes @p g, but for its STag, known under a new one. @return NULL and errno ENOMEM, EIO */
static struct iw_region *publish(struct iw_pd *pd, enum iw_region_kind kind,
                                 const struct iw_grant *g)
{
    struct iw_region *r = make(pd, kind, g);
    int err = r ? iw_region_publish(r) : 0;
    if (err) {
        free(r);
        errno = err;
        return NULL;
    }
    if (r)
        count(r, 1);
    return r;
}

static void revoke(struct iw_region *r)
{
    iw_region_revoke(r);
    count(r, -1);
    if (r->kind == IW_REGION_NULL)
        munmap(r->grant.addr, IW_NULL_BYTES);
    free(r);
}

/** Gives @p mr the region @p r, and the program its keys. */
static void adopt(struct iw_mr *mr, struct iw_pd *pd, struct iw_region *r)
{
    atomic_fetch_add(&pd->users, 1);
    mr->region = r;
    mr->pub.context = pd->pub.context;
    mr->pub.pd = &pd->pub;
    mr->pub.handle = mr->pub.lkey = mr->pub.rkey = r->grant.stag;
}

static struct iw_mr *create(struct iw_pd *pd, enum iw_region_kind kind, const struct iw_grant *g,
                            uint64_t iova)
{
    struct iw_mr *mr = calloc(1, sizeof(*mr));
    if (!mr) {
        errno = ENOMEM;
        return NULL;
    }
    struct iw_region *r = publish(pd, kind, g);
    if (!r) {
        free(mr);
        return NULL;
    }
    mr->iova = iova;
    adopt(mr, pd, r);
    return mr;
}

static struct iw_grant grant(void *addr, size_t len, uint64_t iova, unsigned access)
{
    return (struct iw_grant){
        .access = access,
        .addr = addr,
        .base = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
        .len = len,
    };
}

struct iw_mr *iw_mr_reg(struct iw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
    int err = check("ibv_reg_mr", addr, len, iova, access);
    if (err) {
        errno = err;
        return NULL;
    }
    iw_guard_install();
    struct iw_grant g = grant(addr, len, iova, access);
    struct iw_mr *mr = create(pd, IW_REGION_MEMORY, &g, iova);
    if (mr) {
        mr->pub.addr = addr;
        mr->pub.length = len;
    }
    return mr;
}

/* The zeros are the system's one zero page, mapped as often as somebody reads; no memory is used.
 */
struct iw_mr *iw_mr_null(struct iw_pd *pd)
{
    struct iw_grant g = {.access = IBV_ACCESS_LOCAL_WRITE, .len = UINT64_MAX};
    void *zeros =
        mmap(NULL, IW_NULL_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) {
        errno = ENOMEM;
        return NULL;
    }
    g.addr = zeros;
    struct iw_mr *mr = create(pd, IW_REGION_NULL, &g, 0);
    if (!mr) {
        int err = errno;
        munmap(zeros, IW_NULL_BYTES);
        errno = err;
        return NULL;
    }
    mr->pub.length = SIZE_MAX;
    return mr;
}

int iw_mr_rereg(struct iw_mr *mr, unsigned flags, struct iw_pd *pd, void *addr, size_t len,
                unsigned access)
{
    struct iw_region *old = mr->region;
    struct iw_pd *old_pd = iw_pd(mr->pub.pd);
    uint64_t iova = (uintptr_t)addr;
    if (flags == 0 || (flags & ~(unsigned)IBV_REREG_MR_FLAGS_SUPPORTED) ||
        old->kind == IW_REGION_NULL)
        return iw_refuse(REREG, REREG_FLAGS, flags);
    if (!(flags & IBV_REREG_MR_CHANGE_PD))
        pd = old_pd;
    else if (!pd || pd->pub.context != old_pd->pub.context)
        return iw_refuse(REREG, OTHER_CONTEXT, "the protection domain, if there is one,");
    if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        addr = mr->pub.addr;
        len = mr->pub.length;
        iova = mr->iova;
    } else if (!addr) {
        return iw_refuse(REREG, ARGUMENT);
    }
    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        if (access)
            return iw_refuse(REREG, REREG_FLAGS, flags);
        access = old->grant.access;
    }
    int err = check(REREG, addr, len, iova, access);
    if (err)
        return err;
    struct iw_grant g = grant(addr, len, iova, access);
    struct iw_region *r = make(pd, IW_REGION_MEMORY, &g);
    if (!r)
        return errno;
    if (!iw_region_close(old) && !iw_region_is_dead(old)) {
        free(r);
        return iw_refuse(REREG, HAS_WINDOWS);
    }
    iw_region_replace(old, r);
    count(old, -1);
    count(r, 1);
    free(old);
    adopt(mr, pd, r);
    atomic_fetch_sub(&old_pd->users, 1);
    mr->pub.addr = addr;
    mr->pub.length = len;
    mr->iova = iova;
    return 0;
}

int iw_mr_dereg(struct iw_mr *mr)
{
    struct iw_pd *pd = iw_pd(mr->pub.pd);
    if (!iw_region_close(mr->region) && !iw_region_is_dead(mr->region))
        return iw_refuse("ibv_dereg_mr", HAS_WINDOWS);
    revoke(mr->region);
    iw_life_end(mr);
    atomic_fetch_sub(&pd->users, 1);
    return 0;
}

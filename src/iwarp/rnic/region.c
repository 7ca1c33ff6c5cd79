/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/region.h"

#include "rnic/qp.h"
#include "rnic/stag.h"
#include "wire/range.h"

#include <inttypes.h>
#include <stdio.h>

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/** What each use needs, and how it calls what is refused. */
static const struct {
    unsigned right;
    enum iw_err stag, stream, access, wrap, bounds;
    const char *name;
} uses[] = {
    [IW_USE_GATHER] = {0, IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT,
                       IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT, "local source"},
    [IW_USE_SCATTER] = {IBV_ACCESS_LOCAL_WRITE, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK,
                        IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK, "local sink"},
    [IW_USE_WRITE] = {IBV_ACCESS_REMOTE_WRITE, IW_ERR_TAGGED_STAG, IW_ERR_TAGGED_STREAM,
                      IW_ERR_TAGGED_ACCESS, IW_ERR_TAGGED_WRAP, IW_ERR_TAGGED_BOUNDS, "RDMA Write"},
    [IW_USE_READ] = {IBV_ACCESS_REMOTE_READ, IW_ERR_READ_STAG, IW_ERR_READ_STREAM,
                     IW_ERR_READ_ACCESS, IW_ERR_READ_WRAP, IW_ERR_READ_BOUNDS, "RDMA Read"},
    [IW_USE_ATOMIC] = {IBV_ACCESS_REMOTE_ATOMIC, IW_ERR_READ_STAG, IW_ERR_READ_STREAM,
                       IW_ERR_READ_ACCESS, IW_ERR_READ_WRAP, IW_ERR_READ_BOUNDS, "atomic"},
};

static bool is_dead(const struct iw_region *r)
{
    return atomic_load_explicit(&r->dead, memory_order_acquire);
}

enum iw_err iw_region_check(uint32_t stag, const struct iw_pd *pd, enum iw_use use, uint64_t to,
                            uint64_t len, uint8_t **ptr)
{
    struct iw_region *r;
    *ptr = NULL;
    if (len == 0)
        return IW_OK;
    enum iw_stag_found found = iw_stag_find(stag, pd, &r);
    if (found == IW_STAG_FOREIGN)
        return uses[use].stream;
    if (found == IW_STAG_NONE || is_dead(r))
        return uses[use].stag;
    if ((r->access & uses[use].right) != uses[use].right)
        return uses[use].access;
    if (range_wraps(to, len))
        return uses[use].wrap;
    if (!range_inside(r->base, r->len, to, len))
        return uses[use].bounds;
    *ptr = r->addr + (to - r->base);
    return IW_OK;
}

/* ---- explanation ---- */

static const struct {
    unsigned bit;
    const char *name;
} rights[] = {
    {IBV_ACCESS_LOCAL_WRITE, "local write"},
    {IBV_ACCESS_REMOTE_WRITE, "remote write"},
    {IBV_ACCESS_REMOTE_READ, "remote read"},
    {IBV_ACCESS_REMOTE_ATOMIC, "remote atomic"},
};

static void name_rights(char *buf, size_t size, unsigned access)
{
    size_t used = 0;
    snprintf(buf, size, "no rights");
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
        if (access & rights[i].bit)
            used += (size_t)snprintf(buf + used, size - used, used ? ", %s" : "%s", rights[i].name);
}

/* The end of a range is said as its last byte: behind it there may be no address any more. */
void iw_region_explain(char *buf, size_t size, uint32_t stag, const struct iw_pd *pd,
                       enum iw_use use, uint64_t to, uint64_t len)
{
    struct iw_region *r;
    char asked[96], have[64];
    enum iw_stag_found found = iw_stag_find(stag, pd, &r);
    snprintf(asked, sizeof(asked), "%s of %" PRIu64 " bytes at 0x%" PRIx64 ", key 0x%08x",
             uses[use].name, len, to, stag);
    if (found == IW_STAG_NONE) {
        snprintf(buf, size, "%s: no such key", asked);
    } else if (found == IW_STAG_FOREIGN) {
        snprintf(buf, size, "%s: the key is of another protection domain", asked);
    } else {
        name_rights(have, sizeof(have), r->access);
        snprintf(buf, size, "%s: %s 0x%" PRIx64 " to 0x%" PRIx64 ", %s", asked,
                 is_dead(r) ? "invalidated, was" : "registered", r->base, r->base + (r->len - 1),
                 have);
    }
}

/* ---- life ---- */

enum iw_err iw_region_invalidate(uint32_t stag, const struct iw_pd *pd)
{
    struct iw_region *r;
    enum iw_stag_found found = iw_stag_find(stag, pd, &r);
    if (found == IW_STAG_FOREIGN)
        return IW_ERR_INVALIDATE_STREAM;
    if (found == IW_STAG_NONE || !(r->access & REMOTE) || atomic_exchange(&r->dead, true))
        return IW_ERR_INVALIDATE;
    return IW_OK;
}

int iw_region_publish(struct iw_region *r)
{
    atomic_init(&r->dead, false);
    return iw_stag_insert(r);
}

void iw_region_revoke(struct iw_region *r)
{
    struct iw_pd *pd = r->pd;
    atomic_store(&r->dead, true);
    iw_stag_hide(r);
    lock_get(&pd->lock);
    list_for_each (link, &pd->qps) {
        struct iw_qp *qp = container_of(link, struct iw_qp, pd_link);
        lock_get(&qp->rx_lock);
        lock_put(&qp->rx_lock);
        lock_get(&qp->sq_lock);
        lock_put(&qp->sq_lock);
    }
    lock_put(&pd->lock);
    iw_stag_release(r);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/region.h"
#include "mem/gone.h"

#include "cq/visibility.h"
#include "mem/gone.h"
#include "mem/mw.h"
#include "mem/quiesce.h"
#include "mem/stag.h"
#include "wire/range.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/** Why an access is refused, in the order of the checks. */
enum refusal { GRANTED, BAD_STAG, BAD_STREAM, BAD_ACCESS, BAD_WRAP, BAD_BOUNDS };

/** What each use needs, and how it calls what is refused. */
static const struct {
    unsigned right;
    bool remote;
    enum iw_err err[BAD_BOUNDS + 1];
    const char *name;
} uses[] = {
    [IW_USE_GATHER] = {0,
                       false,
                       {IW_OK, IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT,
                        IW_ERR_LOCAL_PROT, IW_ERR_LOCAL_PROT},
                       "local source"},
    [IW_USE_SCATTER] = {IBV_ACCESS_LOCAL_WRITE,
                        false,
                        {IW_OK, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK,
                         IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK},
                        "local sink"},
    [IW_USE_RECEIVE] = {IBV_ACCESS_LOCAL_WRITE,
                        false,
                        {IW_OK, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK,
                         IW_ERR_LOCAL_SINK, IW_ERR_LOCAL_SINK},
                        "local sink"},
    [IW_USE_WRITE] = {IBV_ACCESS_REMOTE_WRITE,
                      true,
                      {IW_OK, IW_ERR_TAGGED_STAG, IW_ERR_TAGGED_STREAM, IW_ERR_TAGGED_ACCESS,
                       IW_ERR_TAGGED_WRAP, IW_ERR_TAGGED_BOUNDS},
                      "RDMA Write"},
    [IW_USE_READ] = {IBV_ACCESS_REMOTE_READ,
                     true,
                     {IW_OK, IW_ERR_READ_STAG, IW_ERR_READ_STREAM, IW_ERR_READ_ACCESS,
                      IW_ERR_READ_WRAP, IW_ERR_READ_BOUNDS},
                     "RDMA Read"},
    [IW_USE_ATOMIC] = {IBV_ACCESS_REMOTE_ATOMIC,
                       true,
                       {IW_OK, IW_ERR_READ_STAG, IW_ERR_READ_STREAM, IW_ERR_READ_ACCESS,
                        IW_ERR_READ_WRAP, IW_ERR_READ_BOUNDS},
                       "atomic"},
};

/**
 * A copy of the grant that holds together. A window may be bound anew meanwhile; then its old STag
 * is void, and nobody has been told of the new one yet.
 * @return false if that is so, or if the grant is not of @p stag
 */
static inline bool grant_of(const struct iw_region *r, uint32_t stag, struct iw_grant *g)
{
    unsigned before = atomic_load_explicit(&r->changes, memory_order_acquire);
    g->stag = __atomic_load_n(&r->grant.stag, __ATOMIC_ACQUIRE);
    g->access = __atomic_load_n(&r->grant.access, __ATOMIC_ACQUIRE);
    g->addr = __atomic_load_n(&r->grant.addr, __ATOMIC_ACQUIRE);
    g->base = __atomic_load_n(&r->grant.base, __ATOMIC_ACQUIRE);
    g->len = __atomic_load_n(&r->grant.len, __ATOMIC_ACQUIRE);
    g->only = __atomic_load_n(&r->grant.only, __ATOMIC_ACQUIRE);
    /* The last look stays behind the loads above, as these acquire. */
    return before % 2 == 0 && g->stag == stag &&
           atomic_load_explicit(&r->changes, memory_order_relaxed) == before;
}

/** In a section of @p pd; @p by is NULL for ibv_advise_mr(). */
static inline enum refusal look(uint32_t stag, const struct iw_pd *pd, const struct iw_accessor *by,
                                enum iw_use use, uint64_t to, uint64_t len, uint8_t **ptr)
{
    struct iw_region *r;
    struct iw_grant g;
    *ptr = NULL;
    if (len == 0)
        return GRANTED;
    assert_copying(pd);
    enum iw_stag_found found = iw_stag_find(stag, pd, &r);
    if (found == IW_STAG_FOREIGN)
        return BAD_STREAM;
    if (found == IW_STAG_NONE || iw_region_is_dead(r) || !grant_of(r, stag, &g) || g.len == 0)
        return BAD_STAG;
    if (r->kind == IW_REGION_WINDOW && !uses[use].remote)
        return BAD_STAG;
    if (g.only && g.only != by)
        return BAD_STREAM;
    if ((g.access & uses[use].right) != uses[use].right)
        return BAD_ACCESS;
    if (range_wraps(to, len))
        return BAD_WRAP;
    if (!range_inside(g.base, g.len, to, len))
        return BAD_BOUNDS;
    if (r->kind != IW_REGION_NULL)
        *ptr = g.addr + (to - g.base);
    else if (use == IW_USE_GATHER)
        *ptr = g.addr;
    return GRANTED;
}

enum iw_err iw_region_check(uint32_t stag, const struct iw_accessor *by, enum iw_use use,
                            uint64_t to, uint64_t len, uint8_t **ptr)
{
    return uses[use].err[look(stag, iw_region_pd(by, use), by, use, to, len, ptr)];
}

int iw_region_advised(uint32_t lkey, struct iw_pd *pd, bool write, uint64_t to, uint64_t len,
                      uint8_t **ptr)
{
    static const int err[] = {[GRANTED] = 0,        [BAD_STAG] = EFAULT, [BAD_STREAM] = EPERM,
                              [BAD_ACCESS] = EPERM, [BAD_WRAP] = EFAULT, [BAD_BOUNDS] = EFAULT};
    struct iw_region *r;
    iw_copy_begin(pd);
    bool window = iw_stag_find(lkey, pd, &r) == IW_STAG_OWN && r->kind == IW_REGION_WINDOW;
    int e = err[look(lkey, pd, NULL, write ? IW_USE_SCATTER : IW_USE_GATHER, to, len, ptr)];
    iw_copy_end();
    return window ? EINVAL : e;
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

/** The end of a range is said as its last byte: behind it there may be no address any more. */
static void describe(char *buf, size_t size, const struct iw_region *r, uint32_t stag,
                     const struct iw_accessor *by)
{
    struct iw_grant g;
    char have[64];
    if (!grant_of(r, stag, &g) || g.len == 0) {
        snprintf(buf, size, "memory window, not bound");
    } else if (g.only && g.only != by) {
        snprintf(buf, size, "memory window of another QP");
    } else {
        name_rights(have, sizeof(have), g.access);
        snprintf(buf, size, "%s 0x%" PRIx64 " to 0x%" PRIx64 ", %s",
                 iw_region_is_dead(r)          ? "invalidated, was"
                 : r->kind == IW_REGION_WINDOW ? "window"
                                               : "registered",
                 g.base, g.base + (g.len - 1), have);
    }
}

void iw_region_explain(char *buf, size_t size, uint32_t stag, const struct iw_accessor *by,
                       enum iw_use use, uint64_t to, uint64_t len)
{
    struct iw_region *r;
    char asked[96], is[128];
    assert_copying(iw_region_pd(by, use));
    enum iw_stag_found found = iw_stag_find(stag, iw_region_pd(by, use), &r);
    snprintf(asked, sizeof(asked), "%s of %" PRIu64 " bytes at 0x%" PRIx64 ", key 0x%08x",
             uses[use].name, len, to, stag);
    if (found == IW_STAG_OWN)
        describe(is, sizeof(is), r, stag, by);
    else
        snprintf(is, sizeof(is), "%s",
                 found == IW_STAG_FOREIGN ? "the key is of another protection domain"
                 : iw_gone_lately(stag)   ? "no such key any more: it was deregistered lately"
                                          : "no such key");
    snprintf(buf, size, "%s: %s", asked, is);
}

/* ---- life ---- */

bool iw_region_is_dead(const struct iw_region *r)
{
    return atomic_load_explicit(&r->windows, memory_order_acquire) < 0;
}

bool iw_region_pin(struct iw_region *r)
{
    int n = atomic_load(&r->windows);
    while (n >= 0)
        if (atomic_compare_exchange_weak(&r->windows, &n, n + 1))
            return true;
    return false;
}

void iw_region_unpin(struct iw_region *r)
{
    atomic_fetch_sub(&r->windows, 1);
}

bool iw_region_close(struct iw_region *r)
{
    int none = 0;
    return atomic_compare_exchange_strong(&r->windows, &none, IW_REGION_DEAD);
}

static enum iw_err invalidate(const struct iw_accessor *by, uint32_t stag, bool windows_only)
{
    struct iw_region *r;
    enum iw_err err = IW_OK;
    lock_get(&by->pd->grants);
    enum iw_stag_found found = iw_stag_find(stag, by->pd, &r);
    if (found == IW_STAG_FOREIGN)
        err = IW_ERR_INVALIDATE_STREAM;
    else if (found == IW_STAG_NONE)
        err = IW_ERR_INVALIDATE;
    else if (r->kind == IW_REGION_WINDOW)
        err = iw_mw_invalidate_locked(r, stag, by);
    else if (windows_only || !iw_region_close(r))
        err = IW_ERR_INVALIDATE;
    lock_put(&by->pd->grants);
    return err;
}

enum iw_err iw_region_invalidate(const struct iw_accessor *by, uint32_t stag)
{
    return invalidate(by, stag, false);
}

enum iw_err iw_region_invalidate_by_peer(const struct iw_accessor *by, uint32_t stag)
{
    return invalidate(by, stag, true);
}

static void init(struct iw_region *r)
{
    atomic_init(&r->windows, 0);
    atomic_init(&r->changes, 0);
    if (r->grant.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND))
        iw_visibility_expose();
}

int iw_region_publish(struct iw_region *r)
{
    init(r);
    return iw_stag_insert(r);
}

/** From now on nobody finds it, and nobody who has found it is copying. */
static void take_away(struct iw_region *r)
{
    struct iw_pd *pd = r->pd;
    lock_get(&pd->grants);
    atomic_store(&r->windows, IW_REGION_DEAD);
    iw_stag_hide(r);
    lock_put(&pd->grants);
    iw_quiesce(pd);
}

void iw_region_revoke(struct iw_region *r)
{
    take_away(r);
    iw_gone_note(r->grant.stag);
    iw_stag_release(r);
}

void iw_region_replace(struct iw_region *old, struct iw_region *r)
{
    init(r);
    iw_stag_keep(old);
    take_away(old);
    iw_stag_inherit(r, old);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/mw.h"

#include "advice/life.h"
#include "env/refuse.h"
#include "mem/stag.h"
#include "observe/stats.h"
#include "wire/range.h"

#include <errno.h>
#include <stdlib.h>

#define WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define GIVES  (WRITES | IBV_ACCESS_REMOTE_READ)

struct iw_mw *iw_mw_alloc(struct iw_pd *pd, enum ibv_mw_type type)
{
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        errno = iw_refuse("ibv_alloc_mw", WINDOW_TYPE, type);
        return NULL;
    }
    struct iw_mw *mw = calloc(1, sizeof(*mw));
    if (!mw) {
        errno = ENOMEM;
        return NULL;
    }
    mw->region.pd = pd->root;
    mw->region.kind = IW_REGION_WINDOW;
    int err = iw_region_publish(&mw->region);
    if (err) {
        free(mw);
        errno = err;
        return NULL;
    }
    mw->pub.context = pd->pub.context;
    mw->pub.pd = &pd->pub;
    mw->pub.rkey = mw->pub.handle = mw->region.grant.stag;
    mw->pub.type = type;
    atomic_fetch_add(&pd->users, 1);
    iw_stats_gauge(STATS_mw, 1);
    lock_get(&pd->root->lock);
    list_add_tail(&pd->root->windows, &mw->pd_link);
    lock_put(&pd->root->lock);
    return mw;
}

/**
 * The fields one by one, for readers without a lock: grant_of() in region.c. Each is released, so
 * that who sees one of them sees the odd count, too.
 */
static void change_locked(struct iw_mw *mw, const struct iw_grant *g, struct iw_region *memory)
{
    struct iw_region *r = &mw->region;
    assert_held(&r->pd->grants);
    atomic_fetch_add(&r->changes, 1);
    __atomic_store_n(&r->grant.stag, g->stag, __ATOMIC_RELEASE);
    __atomic_store_n(&r->grant.access, g->access, __ATOMIC_RELEASE);
    __atomic_store_n(&r->grant.addr, g->addr, __ATOMIC_RELEASE);
    __atomic_store_n(&r->grant.base, g->base, __ATOMIC_RELEASE);
    __atomic_store_n(&r->grant.len, g->len, __ATOMIC_RELEASE);
    __atomic_store_n(&r->grant.only, g->only, __ATOMIC_RELEASE);
    atomic_fetch_add(&r->changes, 1);
    if (mw->memory)
        iw_region_unpin(mw->memory);
    mw->memory = memory;
}

static void unbind_locked(struct iw_mw *mw)
{
    change_locked(mw, &(struct iw_grant){.stag = mw->region.grant.stag}, NULL);
}

void iw_mw_dealloc(struct iw_mw *mw)
{
    struct iw_pd *pd = iw_pd(mw->pub.pd);
    lock_get(&pd->root->lock);
    list_del(&mw->pd_link);
    lock_put(&pd->root->lock);
    lock_get(&pd->root->grants);
    iw_region_close(&mw->region); /* a bind that comes now fails */
    unbind_locked(mw);
    lock_put(&pd->root->grants);
    iw_region_revoke(&mw->region);
    iw_life_end(mw);
    iw_stats_gauge(STATS_mw, -1);
    atomic_fetch_sub(&pd->users, 1);
}

/* ---- bind ---- */

int iw_mw_check_wr(const struct iw_pd *pd, const struct ibv_send_wr *wr, enum ibv_mw_type type,
                   const char *call)
{
    const struct ibv_mw *mw = wr->bind_mw.mw;
    const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
    const bool whole = info->mr && info->length;
    if (!mw || mw->type != type)
        return iw_refuse(call, BIND_TYPE);
    if ((mw->rkey ^ wr->bind_mw.rkey) >> 8)
        return iw_refuse(call, BIND_KEY);
    if (!whole && (type == IBV_MW_TYPE_2 || info->length))
        return iw_refuse(call, BIND_RANGE);
    if (info->mw_access_flags & ~(unsigned)(GIVES | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED))
        return iw_refuse(call, BIND_RIGHTS, info->mw_access_flags);
    if (iw_pd(mw->pd)->root != pd || (info->mr && iw_pd(info->mr->pd)->root != pd))
        return iw_refuse(call, BIND_PD);
    return 0;
}

/** What a bind to the memory of @p r gives. @return false if it may not be bound so */
static bool grant_from(const struct iw_region *r, const struct iw_bind *b, struct iw_grant *g)
{
    const struct iw_grant *m = &r->grant;
    if (r->kind != IW_REGION_MEMORY || !(m->access & IBV_ACCESS_MW_BIND))
        return false;
    if ((b->access & WRITES) && !(m->access & IBV_ACCESS_LOCAL_WRITE))
        return false;
    if (range_wraps(b->addr, b->length) || !range_inside(m->base, m->len, b->addr, b->length))
        return false;
    g->access = b->access & GIVES;
    g->addr = m->addr + (b->addr - m->base);
    g->base = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
    g->len = b->length;
    return true;
}

static enum iw_err bind_locked(const struct iw_accessor *by, uint32_t rkey, const struct iw_bind *b,
                               bool *was_bound)
{
    struct iw_region *window, *memory = NULL;
    struct iw_grant g = {.stag = rkey};
    assert_held(&by->pd->grants);
    if (iw_stag_find_any_key(rkey, by->pd, &window) != IW_STAG_OWN ||
        window->kind != IW_REGION_WINDOW || iw_region_is_dead(window))
        return IW_ERR_LOCAL_MW_BIND;
    struct iw_mw *mw = container_of(window, struct iw_mw, region);
    bool type2 = mw->pub.type == IBV_MW_TYPE_2;
    if (type2 && mw->memory)
        return IW_ERR_LOCAL_MW_BIND;
    if (b->length && (iw_stag_find(b->lkey, by->pd, &memory) != IW_STAG_OWN ||
                      !grant_from(memory, b, &g) || !iw_region_pin(memory)))
        return IW_ERR_LOCAL_MW_BIND;
    *was_bound = mw->memory;
    g.only = type2 ? by : NULL;
    change_locked(mw, &g, memory);
    iw_stag_rename(window);
    return IW_OK;
}

enum iw_err iw_mw_bind(const struct iw_accessor *by, uint32_t rkey, const struct iw_bind *b,
                       bool *was_bound)
{
    *was_bound = false;
    lock_get(&by->pd->grants);
    enum iw_err err = bind_locked(by, rkey, b, was_bound);
    lock_put(&by->pd->grants);
    return err;
}

/* ---- unbind ---- */

enum iw_err iw_mw_invalidate_locked(struct iw_region *r, uint32_t stag,
                                    const struct iw_accessor *by)
{
    struct iw_mw *mw = container_of(r, struct iw_mw, region);
    assert_held(&r->pd->grants);
    if (mw->pub.type != IBV_MW_TYPE_2 || !mw->memory || r->grant.stag != stag)
        return IW_ERR_INVALIDATE;
    if (r->grant.only != by)
        return IW_ERR_INVALIDATE_STREAM;
    unbind_locked(mw);
    return IW_OK;
}

void iw_mw_leave(const struct iw_accessor *by)
{
    lock_get(&by->pd->lock);
    lock_get(&by->pd->grants);
    list_for_each (link, &by->pd->windows) {
        struct iw_mw *mw = container_of(link, struct iw_mw, pd_link);
        if (mw->memory && mw->region.grant.only == by)
            unbind_locked(mw);
    }
    lock_put(&by->pd->grants);
    lock_put(&by->pd->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: remote access to a part of a memory region, given and taken away by work
 * requests.
 *
 * A window is a region of its own, with one index for life and a key that changes with each bind.
 * While it is bound it pins the memory region below it (iw_region_pin), which can then neither be
 * deregistered nor reregistered nor invalidated.
 *
 * Binding happens when the work request reaches the head of the send queue, under the QP's tx.lock
 * and pd->grants; the window and the memory region are looked up by their keys there and then, so
 * that a work request never keeps an object alive. iw_region_check() reads the binding without a
 * lock: a change is seen as a whole or as an STag that is not valid. What was bound before may be
 * copied until a grace period has passed (quiesce.h); the work request completes then.
 *
 * Type 1 belongs to the protection domain and is bound again at will, type 2 belongs to the QP that
 * bound it and is bound only while it is free; it becomes free when it is invalidated, and when
 * that QP is destroyed.
 */
#ifndef ANYWARP_MEM_MW_H
#define ANYWARP_MEM_MW_H

#include "mem/region.h"

struct iw_mw {
    struct ibv_mw pub;
    struct iw_region region;
    struct list pd_link;      /* pd->windows */
    struct iw_region *memory; /* pinned while bound, else NULL; under pd->grants, as the binding */
};

static inline struct iw_mw *iw_mw(struct ibv_mw *m)
{
    return container_of(m, struct iw_mw, pub);
}

/** @return NULL and errno: EINVAL (type), ENOMEM, EIO (no random STag) */
struct iw_mw *iw_mw_alloc(struct iw_pd *pd, enum ibv_mw_type type);
/** Unbinds and frees; afterwards nobody accesses memory through it. */
void iw_mw_dealloc(struct iw_mw *mw);

/** What a window is bound to. */
struct iw_bind {
    uint64_t addr, length;
    uint32_t lkey;
    unsigned access;
};

/**
 * Whether a bind of a window of @p type may be posted to a QP of domain @p pd.
 * @return 0; EINVAL (another type, a key of another index, no memory region or length for type 2,
 *         access flags), EPERM (domains differ)
 */
int iw_mw_check_wr(const struct iw_pd *pd, const struct ibv_send_wr *wr, enum ibv_mw_type type,
                   const char *call);

/**
 * Carries a bind out. tx.lock.
 * @param rkey       the window's new one
 * @param was_bound  [out] copies through the window may still go where it was bound before
 * @return IW_OK, or LOCAL_MW_BIND, and then nothing has changed
 */
enum iw_err iw_mw_bind(const struct iw_accessor *by, uint32_t rkey, const struct iw_bind *b,
                       bool *was_bound);

/**
 * Frees a window of type 2 that is bound for @p by. pd->grants.
 * @return IW_OK, INVALIDATE (type 1, not bound), INVALIDATE_STREAM (of another QP)
 */
enum iw_err iw_mw_invalidate_locked(struct iw_region *r, uint32_t stag,
                                    const struct iw_accessor *by);

/** Frees the windows of type 2 bound to a QP that is being destroyed. Call with no lock held. */
void iw_mw_leave(const struct iw_accessor *by);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region is what one STag stands for: a memory region or a memory window. iw_region_check() is
 * the only place in the project that turns an STag into a pointer.
 *
 * Lifetime of memory: whoever checks a region and then copies does both in one section of its
 * domain, see quiesce.h. Revoking marks the region dead, then lets a grace period pass: after that
 * nobody can still be copying. A pointer must not be kept past the section.
 *
 * Who looks a region up to change what it gives (a bind, an invalidation) holds pd->grants instead,
 * which revoking takes once, too.
 *
 * A window pins the region of its memory: while it is bound, that region is neither revoked nor
 * invalidated. When it is unbound a copy through it may still run on another QP; the grace period
 * that precedes the end of the memory waits for that copy too, as both are of one domain.
 */
#ifndef ANYWARP_MEM_REGION_H
#define ANYWARP_MEM_REGION_H

#include "mem/pd.h"
#include "wire/error.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_stag_slot;

enum iw_region_kind {
    IW_REGION_MEMORY,
    IW_REGION_NULL, /* gives zeros, takes anything: addr is IW_NULL_BYTES of zeros */
    IW_REGION_WINDOW,
};

#define IW_NULL_BYTES ((uint64_t)UINT32_MAX) /* the longest SGE */

struct iw_accessor;

/** What an STag allows. */
struct iw_grant {
    uint32_t stag;
    unsigned access; /* IBV_ACCESS_* */
    uint8_t *addr;   /* first byte */
    uint64_t base;   /* its tagged offset: virtual address, iova, or 0 if zero-based */
    uint64_t len;    /* 0: a window that is not bound */
    const struct iw_accessor *only; /* may use it; for comparison only; NULL: all of the PD */
};

struct iw_region {
    struct iw_stag_slot *slot; /* where it stands in the STag table */
    struct iw_pd *pd;          /* a root */
    enum iw_region_kind kind;
    atomic_int windows;    /* bound to it, or IW_REGION_DEAD: invalidated, or being revoked */
    atomic_uint changes;   /* of the grant; odd while one is under way. Never of an MR */
    struct iw_grant grant; /* of a window: read by iw_region_check(), changed by mem/mw.c */
};

#define IW_REGION_DEAD (-1)

/** Of an MR it is constant; of a window it may be bound anew: grant_of() looks whether it is. */
static inline uint32_t iw_region_stag(const struct iw_region *r)
{
    return __atomic_load_n(&r->grant.stag, __ATOMIC_RELAXED);
}

/** Who wants to use a region: decides which right is needed and how a refusal is called. */
enum iw_use {
    IW_USE_GATHER,  /* local source of a Send or Write: no right needed; LOCAL_PROT */
    IW_USE_SCATTER, /* local sink of a read or atomic: LOCAL_WRITE; LOCAL_SINK */
    IW_USE_RECEIVE, /* of a receive: the same, but in the PD of the SRQ if there is one */
    IW_USE_WRITE,   /* RDMA Write of the peer: REMOTE_WRITE; TAGGED_* */
    IW_USE_READ,    /* RDMA Read of the peer: REMOTE_READ; READ_* */
    IW_USE_ATOMIC,  /* atomic of the peer: REMOTE_ATOMIC; READ_* */
};

/** A QP, as far as it accesses memory. Its address stands for it where a window is its own. */
struct iw_accessor {
    struct iw_pd *pd;      /* a root */
    struct iw_pd *recv_pd; /* of its receives: that of the SRQ if there is one; a root */
};

/** The domain in which an access is looked up. */
static inline const struct iw_pd *iw_region_pd(const struct iw_accessor *by, enum iw_use use)
{
    return use == IW_USE_RECEIVE ? by->recv_pd : by->pd;
}

/**
 * State, PD, QP, rights, base, bounds and wrap of one access, in that order.
 *
 * @param stag  lkey or rkey; the STag of a window is no lkey
 * @param by    whose stream or work request asks; in a section of iw_region_pd()
 * @param to    tagged offset of the first byte, @p len bytes; len 0 checks nothing and gives NULL
 * @param ptr   [out] where the bytes are; valid in this section. NULL with IW_OK and a local sink:
 *              they are thrown away
 * @return IW_OK or the error that fits @p use
 */
enum iw_err iw_region_check(uint32_t stag, const struct iw_accessor *by, enum iw_use use,
                            uint64_t to, uint64_t len, uint8_t **ptr);

/**
 * Where the memory of one entry of ibv_advise_mr() is. Call with no lock held; the memory may be
 * gone at once, so that the result is good for madvise() only.
 * @return 0, EINVAL (a window), EPERM (another PD's, or not writable), EFAULT (no such key, or
 *         outside its bounds)
 */
int iw_region_advised(uint32_t lkey, struct iw_pd *pd, bool write, uint64_t to, uint64_t len,
                      uint8_t **ptr);

/**
 * English facts about a refusal for the log: key, asked and registered range, rights, PD. In a
 * section of iw_region_pd().
 */
void iw_region_explain(char *buf, size_t size, uint32_t stag, const struct iw_accessor *by,
                       enum iw_use use, uint64_t to, uint64_t len);

/**
 * Invalidates @p stag for a work request: a memory region without a window bound to it, or a window
 * as iw_mw_invalidate_locked() says. Copies that run may go on until a grace period of the QP's
 * domain has passed.
 * @return IW_OK, INVALIDATE, INVALIDATE_STREAM
 */
enum iw_err iw_region_invalidate(const struct iw_accessor *by, uint32_t stag);

/**
 * The same for the receiver of a Send with Invalidate: windows only, as a memory region is not one
 * peer's, and others may use it. With the QP's rx.lock and tx.lock nobody copies through the window
 * of this QP, and no grace period is due.
 */
enum iw_err iw_region_invalidate_by_peer(const struct iw_accessor *by, uint32_t stag);

/** A window is bound to @p r (found under pd->grants), and pins it. @return false if r is dead */
bool iw_region_pin(struct iw_region *r);
void iw_region_unpin(struct iw_region *r);
/** Marks @p r dead. @return false if a window is bound to it, or if it was dead before */
bool iw_region_close(struct iw_region *r);
bool iw_region_is_dead(const struct iw_region *r);

/** Puts a region, else filled in, under a fresh random STag into the table. @return 0 or a positive
 * errno */
int iw_region_publish(struct iw_region *r);
/** Marks dead, unlinks, and waits until no copy is running. Call with no lock held. */
void iw_region_revoke(struct iw_region *r);
/** As that, and then @p r, else filled in, has the STag of @p old. */
void iw_region_replace(struct iw_region *old, struct iw_region *r);

#endif

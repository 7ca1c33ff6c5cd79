/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions and the STag table.
 *
 * A region is what one STag stands for: a memory region, later a memory window. iw_region_check()
 * is the only place in the project that turns an STag into a pointer.
 *
 * Lifetime of memory: whoever checks a region and then copies does both under one of the QP's locks
 * (rx or sq). Revoking marks the region dead, then takes and releases the locks of every QP of the
 * protection domain once: after that nobody can still be copying, and no lock or counter is touched
 * on the data path. A pointer must not be kept past the lock.
 *
 * pd->lock is held meanwhile, so that no QP goes away: it is taken before any QP lock, never with
 * one held.
 */
#ifndef ANYWARP_RNIC_REGION_H
#define ANYWARP_RNIC_REGION_H

#include "common/list.h"
#include "common/lock.h"
#include "wire/error.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_pd {
    struct ibv_pd pub;
    struct lock lock;  /* qps; above the QP locks */
    struct list qps;   /* struct iw_qp.pd_link */
    atomic_uint users; /* MRs, QPs, SRQs: EBUSY for dealloc */
};

static inline struct iw_pd *iw_pd(struct ibv_pd *p)
{
    return container_of(p, struct iw_pd, pub);
}

struct iw_stag_slot;

struct iw_region {
    struct iw_stag_slot *slot; /* where it stands in the STag table */
    uint32_t stag;
    _Atomic bool dead; /* revoked; set before the grace period */
    struct iw_pd *pd;
    uint8_t *addr; /* first byte */
    uint64_t base; /* its tagged offset: the virtual address, iova, or 0 if zero-based */
    uint64_t len;
    unsigned access; /* IBV_ACCESS_* */
};

struct iw_mr {
    struct ibv_mr pub;
    struct iw_region region;
};

/** Who wants to use a region: decides which right is needed and how a refusal is called. */
enum iw_use {
    IW_USE_GATHER,  /* local source of a Send or Write: no right needed; LOCAL_PROT */
    IW_USE_SCATTER, /* local sink of a receive or read: LOCAL_WRITE; LOCAL_SINK */
    IW_USE_WRITE,   /* RDMA Write of the peer: REMOTE_WRITE; TAGGED_* */
    IW_USE_READ,    /* RDMA Read of the peer: REMOTE_READ; READ_* */
    IW_USE_ATOMIC,  /* atomic of the peer: REMOTE_ATOMIC; READ_* */
};

/**
 * State, PD, rights, base, bounds and wrap of one access, in that order.
 *
 * @param stag  lkey or rkey
 * @param to    tagged offset of the first byte, @p len bytes; len 0 checks nothing and gives NULL
 * @param ptr   [out] where the bytes are; valid while the caller holds the QP lock
 * @return IW_OK or the error that fits @p use
 */
enum iw_err iw_region_check(uint32_t stag, const struct iw_pd *pd, enum iw_use use, uint64_t to,
                            uint64_t len, uint8_t **ptr);

/** English facts about a refusal for the log: key, asked and registered range, rights, PD. */
void iw_region_explain(char *buf, size_t size, uint32_t stag, const struct iw_pd *pd,
                       enum iw_use use, uint64_t to, uint64_t len);

/**
 * The receiver of a Send with Invalidate revokes @p stag; no grace period is needed as the caller
 * holds the QP's rx lock, but other QPs may finish a copy that runs. Only a region with a remote
 * right can be invalidated: the peer was never told of the others.
 * @return IW_OK, INVALIDATE, INVALIDATE_STREAM
 */
enum iw_err iw_region_invalidate(uint32_t stag, const struct iw_pd *pd);

/** Puts a region, else filled in, under a fresh random STag into the table. @return 0 or a positive
 * errno */
int iw_region_publish(struct iw_region *r);
/** Marks dead, unlinks, and waits until no copy is running. Call with no QP lock held. */
void iw_region_revoke(struct iw_region *r);

struct iw_pd *iw_pd_alloc(struct ibv_context *ctx);
/** @return 0 or EBUSY */
int iw_pd_dealloc(struct iw_pd *pd);

/**
 * A QP begins or ends to use the regions of @p pd: from add to remove, revoking waits for it. Both
 * count as a user. Remove last of all before freeing, when nothing can copy any more; call both
 * with no lock held.
 * @param link  struct iw_qp.pd_link
 */
void iw_pd_add_qp(struct iw_pd *pd, struct list *link);
void iw_pd_remove_qp(struct iw_pd *pd, struct list *link);

/**
 * Registers memory. Nothing is pinned and no byte is touched; see probe.h for what is looked at.
 * @param iova  tagged offset of the first byte, unless IBV_ACCESS_ZERO_BASED makes it 0
 * @return NULL and errno: EINVAL (zero length, wrap, REMOTE_WRITE or REMOTE_ATOMIC without
 *         LOCAL_WRITE, unknown or on-demand flags), EFAULT (not mapped, or not writable where
 *         LOCAL_WRITE is asked), ENOMEM, EIO (no random STag)
 */
struct iw_mr *iw_mr_reg(struct iw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access);
/** @return 0 */
int iw_mr_dereg(struct iw_mr *mr);

#endif

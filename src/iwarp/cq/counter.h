/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion counters: how many operations of the QPs that a counter is attached to have completed,
 * or how many bytes, and how many failed, without a completion for each.
 *
 * A counter has no lock: its values are changed atomically, by whoever completes the operation,
 * under the lock of that half of the QP. Who reads a value sees what the operations did that are in
 * it. A QP's set of counters only grows while the QP lives.
 */
#ifndef ANYWARP_CQ_COUNTER_H
#define ANYWARP_CQ_COUNTER_H

#include "common/list.h"
#include "env/later.h"

#include <stdatomic.h>
#include <stdbool.h>

/* All that there is but the peer's reads, whose end is that of the transmission. */
#define IW_COUNTER_OPS                                                                             \
    (IBV_QP_ATTACH_COMP_CNTR_OP_SEND | IBV_QP_ATTACH_COMP_CNTR_OP_RECV |                           \
     IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ | IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE |                \
     IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE)

struct iw_counter {
    struct ibv_comp_cntr pub;
    bool bytes;        /* counted instead of operations; constant */
    atomic_uint users; /* QPs, once for each kind of operation: EBUSY for destroy */
    _Atomic uint64_t done, failed;
};

/** Of one QP, by the number of the bit in enum ibv_qp_attach_comp_cntr_op. */
struct iw_counters {
    _Atomic(struct iw_counter *) of[6];
};

static inline struct iw_counter *iw_counter(struct ibv_comp_cntr *c)
{
    return container_of(c, struct iw_counter, pub);
}

/** @return NULL and errno: EINVAL (comp_mask, flags, type), ENOMEM (also beyond IW_MAX_COUNTER) */
struct iw_counter *iw_counter_create(struct ibv_context *ctx,
                                     const struct ibv_comp_cntr_init_attr *attr);
/** @return 0, or EBUSY while it is attached */
int iw_counter_destroy(struct iw_counter *c);

/**
 * From now on @p c counts the operations @p ops of a QP, which has this @p set; the caller
 * serialises. IW_COUNTER_OPS.
 * @return 0, EBUSY (one of them is counted already), ENOMEM; then nothing has changed
 */
int iw_counter_attach(_Atomic(struct iw_counters *) *set, struct iw_counter *c, uint32_t ops);
/** The QP is destroyed: detaches all. */
void iw_counters_end(struct iw_counters *set);

/** What iw_counted() does for a QP with counters. */
void iw_counters_add(struct iw_counters *set, enum ibv_qp_attach_comp_cntr_op op, bool failed,
                     uint64_t bytes);

/** An operation of the QP with this @p set has completed, and had @p bytes. */
static inline void iw_counted(_Atomic(struct iw_counters *) *set,
                              enum ibv_qp_attach_comp_cntr_op op, bool failed, uint64_t bytes)
{
    struct iw_counters *s = atomic_load_explicit(set, memory_order_acquire);
    if (__builtin_expect(s != NULL, 0))
        iw_counters_add(s, op, failed, bytes);
}

#endif

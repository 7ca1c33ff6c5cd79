/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue, between tx_queue.c and the other files. Locks: the QP's tx.lock. */
#ifndef ANYWARP_QP_TX_QUEUE_H
#define ANYWARP_QP_TX_QUEUE_H

#include "qp/qp.h"

/** @return 0 or ENOMEM; iw_sq_fini() is due after both */
int iw_sq_init(struct iw_sq *sq, const struct ibv_qp_cap *cap, bool sig_all, bool datagrams);
void iw_sq_fini(struct iw_sq *sq);

/** The completion opcode of a work request. */
enum ibv_wc_opcode iw_sq_wc_opcode(const struct iw_sqe *e);

/** Transmits what waited for a poll, or corks it: run() of qp->tx.deferred. */
void iw_sq_run_deferred(struct iw_deferred *d);

/**
 * Completes, in posting order, what is done (RFC 5040 rule 15: also behind outstanding reads); with
 * the last one before SQD the queue is drained.
 */
void iw_sq_retire_locked(struct iw_qp *qp, struct iw_wakes *w);

/** Before a flush: completes a local work request at sq.cut that nobody has to wait for any more.
 */
void iw_sq_finish_local_locked(struct iw_qp *qp, struct iw_wakes *w);

/** The oldest work request, if there is one, is going to be flushed with this status. */
void iw_sq_blame_locked(struct iw_sq *sq, enum ibv_wc_status status);

/**
 * As iw_sq_blame_locked(), of the work request whose bytes stand at @p offset of the stream, or are
 * the next to be sent.
 */
void iw_sq_blame_at_locked(struct iw_sq *sq, uint64_t offset, enum ibv_wc_status status);

/** Whether a program polls, and does not wait for events of the QP's CQs. */
bool iw_qp_is_polled(const struct iw_qp *qp);

/** Completes everything left: the work request at fault with its status, the others flushed. */
void iw_sq_flush_locked(struct iw_qp *qp, struct iw_wakes *w);

/** Of UC, with no connection: all that is posted is sent, as far as anybody can tell. */
void iw_sq_lose_locked(struct iw_qp *qp, struct iw_wakes *w);

/** Whether it waits for a response: a read or an atomic. */
static inline bool iw_sqe_is_request(const struct iw_sqe *e)
{
    return e->opcode == IBV_WR_RDMA_READ || e->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           e->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/** Whether it puts nothing on the wire: a local invalidate or a bind. */
static inline bool iw_sqe_is_local(const struct iw_sqe *e)
{
    return e->opcode == IBV_WR_LOCAL_INV || e->opcode == IBV_WR_BIND_MW;
}

/** The entry of index @p i, which runs freely, as in the next two. */
static inline struct iw_sqe *iw_sq_at(const struct iw_sq *sq, uint32_t i)
{
    return &sq->ring[i & sq->mask];
}

static inline struct ibv_sge *iw_sq_sge(const struct iw_sq *sq, uint32_t i)
{
    return sq->sge + (size_t)(i & sq->mask) * sq->max_sge;
}

static inline uint8_t *iw_sq_inline(const struct iw_sq *sq, uint32_t i)
{
    return sq->inline_data + (size_t)(i & sq->mask) * sq->max_inline;
}

#endif

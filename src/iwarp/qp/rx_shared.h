/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: a struct iw_rq of their own, and the QPs that wait for a receive from it,
 * in the order in which they began to wait. Who got one waits for the next behind the others, and
 * who does not wait yet overtakes none of them: so a QP with much to receive stops no other.
 */
#ifndef ANYWARP_QP_RX_SHARED_H
#define ANYWARP_QP_RX_SHARED_H

#include "qp/qp.h"

struct iw_srq {
    struct ibv_srq pub;
    struct iw_pd *pd;
    struct iw_rq rq;
    atomic_uint users;          /* QPs: EBUSY for destroy */
    unsigned async_events_read; /* by the program; under the context's lock */
};

static inline struct iw_srq *iw_srq(struct ibv_srq *s)
{
    return container_of(s, struct iw_srq, pub);
}

/**
 * Creates one and writes the true values back to @p attr.
 * @return NULL and errno: EINVAL (no WRs, over a limit, srq_limit above max_wr), ENOMEM
 */
struct iw_srq *iw_srq_create(struct iw_pd *pd, struct ibv_srq_init_attr *attr);

/** Frees it; its asynchronous events are settled. @return 0, or EBUSY while QPs use it */
int iw_srq_destroy(struct iw_srq *srq);

/**
 * Sets the limit; 0 disarms. It fires at the next consumption that leaves fewer receives than it.
 * @return 0, EINVAL (above max_wr), EOPNOTSUPP (another attribute)
 */
int iw_srq_modify(struct iw_srq *srq, const struct ibv_srq_attr *attr, int mask);
void iw_srq_query(struct iw_srq *srq, struct ibv_srq_attr *attr);

/** @return 0; EINVAL (too many SGEs), ENOMEM (full); *bad_wr is set then */
int iw_srq_post(struct iw_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif

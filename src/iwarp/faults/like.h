/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ANYWARP_LIKE: what the adapter of that name would refuse is refused, and the log says why.
 * Nothing here is called for one that is not set, but for a look at iw_conf()->like where objects
 * are made.
 */
#ifndef ANYWARP_FAULTS_LIKE_H
#define ANYWARP_FAULTS_LIKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/** Lowers what the device advertises to what the adapter has. */
void iw_like_attr(struct ibv_device_attr *attr);

/* Each returns 0, or the errno with which the adapter's driver refuses: EINVAL for a size,
 * EOPNOTSUPP for an object that it does not have. */

int iw_like_qp(const struct ibv_qp_init_attr *attr);
/** @param ops  IBV_QP_EX_WITH_*, for the functions ibv_wr_*() */
int iw_like_ops(uint64_t ops);
int iw_like_cq(int64_t cqe);
int iw_like_srq(const struct ibv_srq_attr *attr);
int iw_like_mw(void);
int iw_like_mcast(void);
int iw_like_send(const struct ibv_send_wr *wr);

#endif

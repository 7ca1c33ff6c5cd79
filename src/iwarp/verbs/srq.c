/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: not offered, max_srq is 0. */
#include "verbs/export.h"
#include "verbs/ops.h"

VERBS_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    (void)pd, (void)attr;
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    (void)srq, (void)attr, (void)mask;
    return EOPNOTSUPP;
}

VERBS_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    (void)srq, (void)attr;
    return EOPNOTSUPP;
}

VERBS_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    (void)srq;
    return EOPNOTSUPP;
}

int op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    (void)srq;
    *bad_wr = wr;
    return EOPNOTSUPP;
}

int op_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
    (void)srq;
    *bad_op = op;
    return EOPNOTSUPP;
}

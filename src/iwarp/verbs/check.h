/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What "anywarp check" looks at in the verbs: other functions in the op slots of a context, and
 * what the calls on objects tell. Without a check each is a look at iw_advice_on().
 */
#ifndef ANYWARP_VERBS_CHECK_H
#define ANYWARP_VERBS_CHECK_H

#include "cq/cq.h"
#include "qp/qp.h"

/** Puts them in place of those that @p v has, if there is a check. */
void verbs_check_fill_ops(struct verbs_context *v);

/** A QP, or CQ, is made. @param asked  what the program asked for */
void verbs_check_qp(struct iw_qp *qp, const struct ibv_qp_init_attr *asked);
void verbs_check_cq(struct iw_cq *cq);

/** A list of work requests of the extended view is going to be posted. */
void verbs_check_send(struct iw_qp *qp, const struct ibv_send_wr *wr);
/** It was not: the call failed. */
void verbs_check_unsent(struct iw_qp *qp, const struct ibv_send_wr *wr);

/** A completion is polled; what is undefined of a failed one gets values that mean nothing. */
void verbs_check_completed(struct iw_cq *cq, struct ibv_wc *wc);

/** A region is going to be deregistered. */
void verbs_check_dereg(const struct ibv_mr *mr);

#endif

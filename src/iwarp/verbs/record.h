/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the flight recorder keeps of the data path: other functions in the op slots of a context.
 * Without a record each of the others is a look at iw_record_on().
 */
#ifndef ANYWARP_VERBS_RECORD_H
#define ANYWARP_VERBS_RECORD_H

#include <infiniband/verbs.h>

/** Puts them in place of those that @p v has, if there is a record. Call behind others who do. */
void verbs_record_fill_ops(struct verbs_context *v);

/** A list of work requests of the extended view is going to be posted. */
void verbs_record_send(struct ibv_qp *qp, const struct ibv_send_wr *wr);

/** A completion is polled. */
void verbs_record_completion(const struct ibv_cq *cq, const struct ibv_wc *wc);

#endif

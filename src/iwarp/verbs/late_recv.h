/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that are late: posted some milliseconds after the program has posted them, as if it had
 * been slow. They are posted in order, so those behind one that is late are late, too.
 */
#ifndef ANYWARP_VERBS_LATE_RECV_H
#define ANYWARP_VERBS_LATE_RECV_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/**
 * Keeps the receives for a while if @p late, or if some are kept already.
 * @return whether it does; else they are to be posted now
 */
bool late_recv_keep(struct ibv_qp *qp, const struct ibv_recv_wr *wr, bool late);

/** The QP goes: what is kept for it is forgotten. */
void late_recv_forget(struct ibv_qp *qp);

#endif

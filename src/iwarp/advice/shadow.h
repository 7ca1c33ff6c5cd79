/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of QPs and CQs as the program can know them: work is outstanding from its posting
 * until the program polls a completion that covers it. Verbs tell what is called; what is wrong
 * with it is told as findings.
 *
 * All functions may be called by any thread, with no lock held but the program's; with NULL for a
 * queue pair or CQ they do nothing.
 */
#ifndef ANYWARP_ADVICE_SHADOW_H
#define ANYWARP_ADVICE_SHADOW_H

#include "advice/advice.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_shadow_cq;
struct iw_shadow_qp;

/** @return NULL if no check is going on, or there is no memory */
struct iw_shadow_cq *iw_shadow_cq_new(const struct ibv_cq *cq);
void iw_shadow_cq_free(struct iw_shadow_cq *cq);
/** It holds @p cqe completions now. */
void iw_shadow_cq_resized(struct iw_shadow_cq *cq, int cqe);

/** @return NULL if no check is going on, or there is no memory */
struct iw_shadow_qp *iw_shadow_qp_new(const struct ibv_qp *qp, const struct ibv_qp_cap *cap,
                                      bool sig_all, struct iw_shadow_cq *send_cq,
                                      struct iw_shadow_cq *recv_cq);
void iw_shadow_qp_free(struct iw_shadow_qp *qp);
/**
 * The program moves it there: to RESET, in which nothing is outstanding, to RTS, also out of SQE, or
 * into error.
 */
void iw_shadow_moved(struct iw_shadow_qp *qp, enum ibv_qp_state state);

/** As "QP 0x01c2d3"; constant. */
const char *iw_shadow_name(const struct iw_shadow_qp *qp);

/**
 * Before work is posted. @param heard  how much has come in on this QP, a number that only grows
 */
void iw_shadow_send(struct iw_shadow_qp *qp, const struct ibv_send_wr *wr, uint64_t heard);
void iw_shadow_recv(struct iw_shadow_qp *qp, const struct ibv_recv_wr *wr);

/** The last one was not posted: the call failed. */
void iw_shadow_unsent(struct iw_shadow_qp *qp);
void iw_shadow_unreceived(struct iw_shadow_qp *qp);

/**
 * Where the work request was posted, a receive or another, that is outstanding.
 * @return NULL if it is not known; any lock
 */
const struct iw_stack *iw_shadow_posted(struct iw_shadow_qp *qp, bool receive, uint64_t wr_id);

/** A completion, as the device has it, is polled. */
void iw_shadow_completed(struct iw_shadow_qp *qp, const struct ibv_wc *wc, uint64_t heard);

/** A poll of @p cq asked for @p asked completions, and got @p got, each of which was told. */
void iw_shadow_polled(struct iw_shadow_cq *cq, int asked, int got);
void iw_shadow_armed(struct iw_shadow_cq *cq);
/** A thread is going to wait for an event of @p channel. */
void iw_shadow_sleeps(const struct ibv_comp_channel *channel);

/** What the module does about fork(); see process/atfork.h. */
void iw_shadow_fork(enum fork_step step);

#endif

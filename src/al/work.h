/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests, on their way to the verbs. */
#ifndef ANYWARP_AL_WORK_H
#define ANYWARP_AL_WORK_H

#include "al/qp.h"

/** Pieces of memory of one work request: more than an adapter has. */
enum { AL_MAX_SGE = 64 };

/** As enum ibv_send_flags. */
unsigned al_send_flags(ib_send_opt_t opt);

/** As ib_post_recv(). */
ib_api_status_t al_post_recv(const struct al_qp *qp, ib_recv_wr_t *list, ib_recv_wr_t **failure);

/** What it means that the verbs refused a work request to the send queue. */
ib_api_status_t al_post_status(int error, const struct al_qp *qp);

#endif

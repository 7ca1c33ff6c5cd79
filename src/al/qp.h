/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: made, asked and destroyed; qp_modify.h has them moved, work.h has their work. */
#ifndef ANYWARP_AL_QP_H
#define ANYWARP_AL_QP_H

#include "al/object.h"

#include <infiniband/verbs.h>
#include <pthread.h>

/* Whom a queue pair depends on: the holds of its object. */
enum { AL_QP_SQ_CQ, AL_QP_RQ_CQ, AL_QP_SRQ };

struct al_qp {
    struct al_object o; /* the parent is a struct al_pd */
    ib_pfn_event_cb_t event_cb;
    struct ibv_qp *verbs;
    ib_qp_type_t type;
    uint32_t sq_sge, rq_sge;
    bool sq_signaled;
    pthread_mutex_t lock; /* one transition at a time; of what follows */
    ib_av_attr_t av;      /* the last that it was given */
};

extern const struct al_kind al_qp_kind;

/** @return IB_QPS_*, as the verbs have it now */
ib_qp_state_t al_qp_state(const struct al_qp *qp);

#endif

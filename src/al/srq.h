/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#ifndef ANYWARP_AL_SRQ_H
#define ANYWARP_AL_SRQ_H

#include "al/object.h"

#include <infiniband/verbs.h>

struct al_srq {
    struct al_object o; /* the parent is a struct al_pd */
    ib_pfn_event_cb_t event_cb;
    struct ibv_srq *verbs;
    uint32_t sge;
};

extern const struct al_kind al_srq_kind;

#endif

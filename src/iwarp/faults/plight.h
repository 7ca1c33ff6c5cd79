/* SPDX-License-Identifier: BSD-2-Clause */
/* What is going to happen to a CQ, or at a QP, for verbs/chaos.c. */
#ifndef ANYWARP_FAULTS_PLIGHT_H
#define ANYWARP_FAULTS_PLIGHT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_plight {
    struct iw_plight *next;
    const void *object;
    pthread_mutex_t mutex; /* of all below */
    uint64_t taken;        /* completions, ever */
    uint64_t decided;      /* what happens to those up to this one */
    unsigned hold;         /* polls that find nothing, though something is there */
    unsigned burst;        /* that ends when so many are there */
    unsigned single;       /* completions that come alone */
    bool kept_back;        /* since the CQ was armed: whoever arms it must hear of that */
    bool spurious;         /* the next one who arms it gets an event */
    enum ibv_wc_status status, recv_status; /* of the QP's first send or receive that is flushed */
};

/** That of @p object. @return NULL if there is no memory */
struct iw_plight *iw_plight(const void *object);

/** A new object, numbered as by iw_chaos_born(): nothing is going to happen to it yet. */
void iw_plight_born(const void *object, const char *kind);

#endif

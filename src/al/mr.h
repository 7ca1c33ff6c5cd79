/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: registered, shared, changed. */
#ifndef ANYWARP_AL_MR_H
#define ANYWARP_AL_MR_H

#include "al/object.h"
#include "al/shmid.h"

#include <infiniband/verbs.h>
#include <pthread.h>

struct al_mr {
    struct al_object o; /* the parent is a struct al_pd */
    pthread_mutex_t lock;
    struct ibv_mr *verbs; /* the lock, as all that follows */
    ib_access_t access;
    struct al_shared shared; /* the memory, if it is of ib_reg_shmid() */
};

extern const struct al_kind al_mr_kind;

#endif

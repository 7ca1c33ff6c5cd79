/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains. */
#ifndef ANYWARP_AL_PD_H
#define ANYWARP_AL_PD_H

#include "al/object.h"

#include <infiniband/verbs.h>

struct al_pd {
    struct al_object o; /* the parent is a struct al_ca */
    struct ibv_pd *verbs;
};

extern const struct al_kind al_pd_kind;

#endif

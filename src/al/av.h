/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: what the program says of a path, and what the verbs make of it. */
#ifndef ANYWARP_AL_AV_H
#define ANYWARP_AL_AV_H

#include <iba/ib_types.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

/** @return false: the adapter has no such port, or GID, or knows nobody by that LID */
bool al_av_to_verbs(struct ibv_context *verbs, const ib_av_attr_t *av, struct ibv_ah_attr *ah);

#endif

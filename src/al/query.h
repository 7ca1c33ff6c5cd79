/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes of an adapter. */
#ifndef ANYWARP_AL_QUERY_H
#define ANYWARP_AL_QUERY_H

#include <iba/ib_types.h>
#include <infiniband/verbs.h>

/**
 * What an adapter is, tables behind it: ib_query_ca().
 * @param attr room for *size bytes; NULL: none
 * @param size out: the bytes it takes
 */
ib_api_status_t al_query(struct ibv_context *verbs, ib_ca_attr_t *attr, uint32_t *size);

#endif

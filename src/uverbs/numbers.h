/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of all contexts by their numbers: with one, rdma_cm commands name what to
 * connect. */
#ifndef ANYWARP_UVERBS_NUMBERS_H
#define ANYWARP_UVERBS_NUMBERS_H

#include "uverbs/context.h"

void uv_number_add(struct uv_object *qp);

/** Before the queue pair is destroyed; waits for who uses it. */
void uv_number_remove(struct uv_object *qp);

/**
 * Finds a queue pair that stays until uv_number_done(), which is always to be called.
 *
 * @return NULL: @p device has none of this number
 */
struct ibv_qp *uv_number_use(const struct ibv_device *device, uint32_t number);

void uv_number_done(void);

/** In a child of fork(): there is none. */
void uv_number_forked(void);

#endif

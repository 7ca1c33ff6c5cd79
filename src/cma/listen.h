/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_CMA_LISTEN_H
#define ANYWARP_CMA_LISTEN_H

struct rdma_cm_id;

/**
 * Before rdma_listen() of an id with a context: who connects and does not speak MPA is told of by
 * @p take, which gets the socket and returns 0, or another value if it does not want it. It runs in
 * whatever thread makes progress, with no lock held, and never after rdma_destroy_id().
 */
void cma_take_strangers(struct rdma_cm_id *id, int (*take)(void *context, int fd));

#endif

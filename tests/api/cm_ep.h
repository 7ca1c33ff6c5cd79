/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints for tests, on 127.0.0.1. Everything fails the test if it fails. */
#ifndef ANYWARP_TESTS_CM_EP_H
#define ANYWARP_TESTS_CM_EP_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/** 8 work requests of 2 SGEs and 16 bytes inline each way, all signaled. */
struct ibv_qp_init_attr ep_small_qp(void);

/** rdma_getaddrinfo() of a literal address. @param port  network order; @param flags  RAI_* */
struct rdma_addrinfo *ep_look_up(const char *node, uint16_t port, int flags);

/** Listens. @param attr  for the QP of each request, or NULL */
struct rdma_cm_id *ep_passive(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/** On its way to that listener. */
struct rdma_cm_id *ep_active(struct rdma_cm_id *listener, struct ibv_pd *pd,
                             struct ibv_qp_init_attr *attr);

/** Body of a thread: rdma_connect(), with EP_CONNECT_DATA. @param id  a struct rdma_cm_id */
void *ep_connect(void *id);
#define EP_CONNECT_DATA " and program"

/** Connects an endpoint to a listener that makes QPs. @return the other end */
struct rdma_cm_id *ep_join(struct rdma_cm_id *listener, struct rdma_cm_id *a);

#endif

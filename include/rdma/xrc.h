/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC as OFED 1.x had it: eight calls that <infiniband/verbs.h> no longer declares, so that
 * programs which name them still build and load. An iWARP device has no XRC: called with a NULL
 * where an object belongs they fail with EINVAL, else with ENOSYS; pointers are NULL with errno
 * set, integers are the positive errno. Nothing they take is changed.
 */
#ifndef RDMA_XRC_H
#define RDMA_XRC_H

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** There is never one. */
struct ibv_xrc_domain;

struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);
int ibv_close_xrc_domain(struct ibv_xrc_domain *d);

struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
                                   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *srq_init_attr);

int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
                          struct ibv_qp_attr *attr, int attr_mask);
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
                         struct ibv_qp_attr *attr, int attr_mask,
                         struct ibv_qp_init_attr *init_attr);
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

#ifdef __cplusplus
}
#endif

#ifdef RDMA_AIX_ERRORS
#include <rdma/rdma_aix_verbs.h>
#endif

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions behind the op slots of a context, which programs reach through inlines. */
#ifndef ANYWARP_VERBS_OPS_H
#define ANYWARP_VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stddef.h>

struct iw_dial;

/** Fills the op slots of a new context. */
void verbs_fill_ops(struct verbs_context *v);

/* device.c */
int op_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                  size_t attr_len);
int op_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t attr_size);

/* post.c */
int op_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int op_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/** As op_post_send(), for ANYWARP_LIKE: what the adapter does not do ends the list with EINVAL. */
int op_post_send_like(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* cq.c */
/** @return 0, EINVAL (nothing asked for), EOPNOTSUPP (another attribute), errno of the timer's
 * start */
int op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/* cq_ex.c */
struct ibv_cq_ex *op_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
/** The raw clock is CLOCK_MONOTONIC. */
int op_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* qp.c */
/** @param dial  how it is reached by number, which is its own from then on; NULL: not at all, or it
 * is of type UD */
struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct iw_dial *dial);

/* qp_ex.c */
struct ibv_qp *op_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* mr.c */
struct ibv_mr *op_alloc_null_mr(struct ibv_pd *pd);
int op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                 struct ibv_sge *sg_list, uint32_t num_sge);

/* mw.c */
struct ibv_mw *op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int op_dealloc_mw(struct ibv_mw *mw);

/* td.c */
struct ibv_td *op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int op_dealloc_td(struct ibv_td *td);
struct ibv_pd *op_alloc_parent_domain(struct ibv_context *context,
                                      struct ibv_parent_domain_init_attr *attr);

/* acks.c */

/** How an object counts its asynchronous events: read by the program, acknowledged by it. */
struct async_acks {
    const char *call;     /* that waits */
    const unsigned *read; /* under the context's lock */
    const uint32_t *completed;
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
};

/** Drops asynchronous events about @p element nobody has read; waits for the acks of the others. */
void settle_async_events(struct ibv_context *context, const void *element,
                         const struct async_acks *acks);

/* srq.c */
struct ibv_srq *op_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int op_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs of <rdma/rdma_aix.h>, for files that include <rdma/verbs.h> alone. The names below
 * stand for functions that
 * - take no null pointer where AIX takes none (EINVAL), also in those verbs that
 *   <infiniband/verbs.h> has as inlines, which no library can guard, and no list of
 *   scatter/gather entries that is not there;
 * - fail in ibv_post_send() with ENOTSUP for all but Send, RDMA Write and RDMA Read;
 * - fail with ENOSYS where AIX has the name only;
 * - have another word for a value that has no name.
 */
#ifndef RDMA_AIX_VERBS_H
#define RDMA_AIX_VERBS_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int rdma_aix_query_port(struct ibv_context *context, uint8_t port_num,
                                      struct ibv_port_attr *port_attr)
{
    return context && port_attr ? ibv_query_port(context, port_num, port_attr) : EINVAL;
}

static inline int rdma_aix_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    return qp && qp->context && attr ? ibv_modify_qp(qp, attr, attr_mask) : EINVAL;
}

static inline int rdma_aix_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
    return cq && cq->context ? ibv_poll_cq(cq, num_entries, wc) : -EINVAL;
}

static inline int rdma_aix_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return cq && cq->context ? ibv_req_notify_cq(cq, solicited_only) : EINVAL;
}

/* Lists are posted one by one, so that all before the wrong one are posted. */

static inline int rdma_aix_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                                     struct ibv_recv_wr **bad_wr)
{
    int ret = wr ? 0 : EINVAL;
    for (; wr && !ret; wr = wr->next) {
        struct ibv_recv_wr one = *wr, *bad;
        one.next = NULL;
        ret = qp && qp->context && one.sg_list ? ibv_post_recv(qp, &one, &bad) : EINVAL;
        if (ret)
            *bad_wr = wr;
    }
    return ret;
}

static inline int rdma_aix_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                                     struct ibv_send_wr **bad_wr)
{
    int ret = wr ? 0 : EINVAL;
    for (; wr && !ret; wr = wr->next) {
        struct ibv_send_wr one = *wr, *bad;
        one.next = NULL;
        if (!qp || !qp->context || !one.sg_list)
            ret = EINVAL;
        else if (one.opcode != IBV_WR_SEND && one.opcode != IBV_WR_RDMA_WRITE &&
                 one.opcode != IBV_WR_RDMA_READ)
            ret = ENOTSUP;
        else
            ret = ibv_post_send(qp, &one, &bad);
        if (ret)
            *bad_wr = wr;
    }
    return ret;
}

/* ---- Names of values ---- */

static inline const char *rdma_aix_known_(const char *name)
{
    return strcmp(name, "unknown") ? name : "<<unknown>>";
}

static inline const char *rdma_aix_event_type_str(enum ibv_event_type event_type)
{
    return rdma_aix_known_(ibv_event_type_str(event_type));
}

static inline const char *rdma_aix_node_type_str(enum ibv_node_type node_type)
{
    return rdma_aix_known_(ibv_node_type_str(node_type));
}

static inline const char *rdma_aix_port_state_str(enum ibv_port_state port_state)
{
    return rdma_aix_known_(ibv_port_state_str(port_state));
}

/* ---- Names without a function ---- */

static inline int rdma_aix_resize_cq(struct ibv_cq *cq, int cqe)
{
    (void)cq, (void)cqe;
    return ENOSYS;
}

static inline int rdma_aix_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                                    struct ibv_qp_init_attr *init_attr)
{
    (void)qp, (void)attr, (void)attr_mask, (void)init_attr;
    return ENOSYS;
}

static inline int rdma_aix_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return ENOSYS;
}

static inline int rdma_aix_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return ENOSYS;
}

static inline int rdma_aix_fork_init(void)
{
    return ENOSYS;
}

#undef ibv_query_port /* a macro of <infiniband/verbs.h> */

#define ibv_query_port     rdma_aix_query_port
#define ibv_modify_qp      rdma_aix_modify_qp
#define ibv_poll_cq        rdma_aix_poll_cq
#define ibv_req_notify_cq  rdma_aix_req_notify_cq
#define ibv_post_recv      rdma_aix_post_recv
#define ibv_post_send      rdma_aix_post_send
#define ibv_event_type_str rdma_aix_event_type_str
#define ibv_node_type_str  rdma_aix_node_type_str
#define ibv_port_state_str rdma_aix_port_state_str
#define ibv_resize_cq      rdma_aix_resize_cq
#define ibv_query_qp       rdma_aix_query_qp
#define ibv_attach_mcast   rdma_aix_attach_mcast
#define ibv_detach_mcast   rdma_aix_detach_mcast
#define ibv_fork_init      rdma_aix_fork_init

#ifdef __cplusplus
}
#endif

#endif

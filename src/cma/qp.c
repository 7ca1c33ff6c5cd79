/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of ids. From INIT on the transport moves those of connections, on connect and accept.
 */
#include "cma.h"

#include <string.h>

#define CREATE "rdma_create_qp"

static void destroy_cq(struct ibv_cq *cq, struct ibv_comp_channel *channel)
{
    if (cq)
        ibv_destroy_cq(cq);
    if (channel)
        ibv_destroy_comp_channel(channel);
}

/* A CQ with its own channel; rdma_get_send_comp() needs the id as its context. */
static int create_cq(struct cma_id *id, uint32_t cqe, struct ibv_cq **cq,
                     struct ibv_comp_channel **channel)
{
    *channel = ibv_create_comp_channel(id->pub.verbs);
    if (!*channel)
        return -errno;
    *cq = ibv_create_cq(id->pub.verbs, (int)cqe, &id->pub, *channel, 0);
    if (*cq)
        return 0;
    int r = -errno;
    ibv_destroy_comp_channel(*channel);
    *channel = NULL;
    return r;
}

/* The CQs that the program did not give, taken from the id. Only there after success. */
static int complete_cqs(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct rdma_cm_id *pub = &id->pub;
    bool send = !attr->send_cq && !pub->send_cq && attr->cap.max_send_wr > 0;
    bool recv = !attr->recv_cq && !pub->recv_cq && attr->cap.max_recv_wr > 0;
    int r = 0;
    if (send)
        r = create_cq(id, attr->cap.max_send_wr, &pub->send_cq, &pub->send_cq_channel);
    if (r == 0 && recv)
        r = create_cq(id, attr->cap.max_recv_wr, &pub->recv_cq, &pub->recv_cq_channel);
    if (r < 0)
        return r;
    if (!attr->send_cq)
        attr->send_cq = pub->send_cq;
    if (!attr->recv_cq)
        attr->recv_cq = pub->recv_cq;
    return 0;
}

/* What an id has beside its QP. */
struct cqs {
    struct ibv_cq *send, *recv;
    struct ibv_comp_channel *send_channel, *recv_channel;
};

static void put_cqs_locked(struct rdma_cm_id *pub, struct cqs cqs)
{
    pub->send_cq = cqs.send;
    pub->recv_cq = cqs.recv;
    pub->send_cq_channel = cqs.send_channel;
    pub->recv_cq_channel = cqs.recv_channel;
}

static struct cqs get_cqs_locked(const struct rdma_cm_id *pub)
{
    return (struct cqs){pub->send_cq, pub->recv_cq, pub->send_cq_channel, pub->recv_cq_channel};
}

/* A program may have put one CQ in both places. */
static void destroy_cqs(struct cqs cqs)
{
    if (cqs.recv == cqs.send)
        cqs.recv = NULL;
    if (cqs.recv_channel == cqs.send_channel)
        cqs.recv_channel = NULL;
    destroy_cq(cqs.recv, NULL);
    destroy_cq(cqs.send, cqs.send_channel);
    destroy_cq(NULL, cqs.recv_channel);
}

#define ATTR "rdma_init_qp_attr"

static enum ibv_mtu path_mtu(const struct cma_id *id)
{
    struct ibv_port_attr port;
    return ibv_query_port(id->pub.verbs, id->pub.port_num, &port) ? IBV_MTU_1024 : port.active_mtu;
}

/* As the kernel's CM on a RoCE device. */
static int init_ib_attr_locked(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state to = attr->qp_state;
    bool knows = id->ib.peer_qpn && (id->state == CMA_CONN_RECV || id->state == CMA_CONNECT);
    if (to != IBV_QPS_INIT && !(knows && (to == IBV_QPS_RTR || to == IBV_QPS_RTS)))
        return -iw_refuse(ATTR, VALUE,
                          "a qp_state other than INIT, or RTR and RTS of an id that "
                          "does not know its peer");
    memset(attr, 0, sizeof *attr);
    attr->qp_state = to;
    attr->port_num = id->pub.port_num;
    if (to == IBV_QPS_INIT) {
        attr->qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        *mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    } else if (to == IBV_QPS_RTR) {
        iw_cm_will_move(id->cm);
        union ibv_gid peer = cma_gid_of(&id->pub.route.addr.dst_addr);
        cma_address_vector(id, &peer, &attr->ah_attr);
        attr->path_mtu = path_mtu(id);
        attr->dest_qp_num = id->ib.peer_qpn;
        attr->max_dest_rd_atomic = id->responder_resources;
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    } else {
        attr->timeout = id->ack_timeout ? id->ack_timeout : IW_RETRY_TIMEOUT;
        attr->retry_cnt = id->ib.retry_count;
        attr->rnr_retry = id->ib.rnr_retry;
        attr->max_rd_atomic = id->initiator_depth;
        *mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return 0;
}

static int init_datagram_attr_locked(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state to = attr->qp_state;
    if ((unsigned)to > IBV_QPS_ERR)
        return -iw_refuse(ATTR, VALUE, "such a qp_state");
    *attr =
        (struct ibv_qp_attr){.qp_state = to, .port_num = id->pub.port_num, .qkey = cma_qkey(id)};
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    return 0;
}

static int init_qp_attr_locked(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (id->pub.verbs && cma_datagrams(id))
        return init_datagram_attr_locked(id, attr, mask);
    if (id->ib.on && id->pub.verbs)
        return init_ib_attr_locked(id, attr, mask);
    enum ibv_qp_state to = attr->qp_state;
    bool connection = id->state == CMA_CONN_RECV || id->state == CMA_CONNECT;
    if (!id->pub.verbs || (unsigned)to > IBV_QPS_ERR)
        return -iw_refuse(ATTR, VALUE, "an id without device, or such a qp_state");
    if (connection && to != IBV_QPS_INIT && to != IBV_QPS_RTR && to != IBV_QPS_RTS)
        return -iw_refuse(ATTR, VALUE, "a qp_state other than INIT, RTR, RTS");

    memset(attr, 0, sizeof *attr);
    attr->qp_state = to;
    attr->port_num = id->pub.port_num;
    if (connection && to == IBV_QPS_RTS) {
        *mask = IBV_QP_PORT; /* only the transport can move it there */
        return 0;
    }
    if (connection)
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    *mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
    return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *attr, int *mask)
{
    if (!attr || !mask)
        iw_refuse(ATTR, ARGUMENT);
    struct cma_id *id = attr && mask ? cma_enter(pub, CMA_CALL_INIT_QP_ATTR) : NULL;
    return id ? cma_leave(id, init_qp_attr_locked(id, attr, mask)) : cma_refused(pub);
}

/* To INIT, so that receives can be posted; for datagrams nothing else is to come. */
static int init_qp(struct cma_id *id, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT}, rtr = {.qp_state = IBV_QPS_RTR},
                       rts = {.qp_state = IBV_QPS_RTS};
    int mask, r = init_qp_attr_locked(id, &attr, &mask);
    if (r == 0)
        r = -ibv_modify_qp(qp, &attr, mask);
    if (r == 0 && cma_datagrams(id))
        r = -ibv_modify_qp(qp, &rtr, IBV_QP_STATE);
    if (r == 0 && cma_datagrams(id))
        r = -ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return r;
}

/* The PD, SRQ and CQs of the id go where the program left a gap. */
static int complete_attr(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
    const struct rdma_cm_id *pub = &id->pub;
    if (!pub->verbs)
        return -iw_refuse(CREATE, NO_DEVICE);
    if (pub->qp)
        return -iw_refuse(CREATE, HAS_QP);
    if (cma_datagrams(id) != (attr->qp_type == IBV_QPT_UD))
        return -iw_refuse(CREATE, VALUE, "datagrams and a connection together");
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
        attr->pd = pub->pd;
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    if (attr->pd->context != pub->verbs)
        return -iw_refuse(CREATE, OTHER_CONTEXT, "the protection domain");
    if ((attr->send_cq && pub->send_cq && attr->send_cq != pub->send_cq) ||
        (attr->recv_cq && pub->recv_cq && attr->recv_cq != pub->recv_cq))
        return -iw_refuse(CREATE, ID_CQ);
    if (!attr->srq)
        attr->srq = pub->srq;
    return complete_cqs(id, attr);
}

static int create_qp_locked(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct rdma_cm_id *pub = &id->pub;
    int r = complete_attr(id, attr);
    if (r < 0)
        return r;
    struct ibv_qp *qp =
        cma_datagrams(id) ? ibv_create_qp_ex(pub->verbs, attr) : iw_cm_create_qp(pub->verbs, attr);
    if (!qp)
        return -errno;
    r = init_qp(id, qp);
    if (r < 0) {
        ibv_destroy_qp(qp);
        return r;
    }
    pub->qp = qp;
    pub->pd = qp->pd;
    return 0;
}

/* What was there before a QP failed is not destroyed with it. */
static void keep(const struct ibv_cq *had, struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
    if (*cq == had) {
        *cq = NULL;
        *channel = NULL;
    }
}

int rdma_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *attr)
{
    struct cma_id *id = attr ? cma_enter(pub, CMA_CALL_CREATE_QP) : NULL;
    if (!id)
        return attr ? cma_refused(pub) : cma_no_handle(__func__);
    struct ibv_cq *send = attr->send_cq, *recv = attr->recv_cq;
    struct cqs had = get_cqs_locked(pub), made = {0};
    struct iw_recorded recorded = cma_recorded(id);
    int r = create_qp_locked(id, attr);
    if (r < 0) {
        made = get_cqs_locked(pub);
        put_cqs_locked(pub, had);
        keep(had.send, &made.send, &made.send_channel);
        keep(had.recv, &made.recv, &made.recv_channel);
        attr->send_cq = send;
        attr->recv_cq = recv;
    }
    lock_put(&id->lock);
    destroy_cqs(made);
    iw_cm_record_end(recorded, -r);
    return cma_result(r);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (!id || !attr) {
        iw_refuse(CREATE, ARGUMENT);
        return cma_no_handle(__func__);
    }
    struct ibv_qp_init_attr_ex ex = {0};
    /* struct ibv_qp_init_attr is how the extended one begins; its padding covers comp_mask. */
    memcpy(&ex, attr, sizeof *attr);
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    ex.pd = pd;
    int r = rdma_create_qp_ex(id, &ex);
    if (r == 0)
        memcpy(attr, &ex, sizeof *attr);
    return r;
}

void rdma_destroy_qp(struct rdma_cm_id *pub)
{
    if (!pub)
        return;
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    struct ibv_qp *qp = pub->qp;
    struct cqs cqs = {0};
    pub->qp = NULL;
    if (qp) {
        cqs = get_cqs_locked(pub);
        put_cqs_locked(pub, (struct cqs){0});
    }
    lock_put(&id->lock);

    /* These may wait for acknowledgements of the program: not with the lock. */
    if (qp)
        ibv_destroy_qp(qp);
    destroy_cqs(cqs);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of ids. */
#include "cma.h"

#include <string.h>

static const struct rdma_conn_param defaults = {
    .responder_resources = RDMA_MAX_RESP_RES,
    .initiator_depth = RDMA_MAX_INIT_DEPTH,
    .retry_count = IW_TERMS_RETRY_MAX,
    .rnr_retry_count = IW_TERMS_RETRY_MAX,
};

bool cma_connects(const struct cma_id *id)
{
    return cma_datagrams(id) || id->pub.ps == RDMA_PS_TCP || id->pub.ps == RDMA_PS_IB;
}

/* A depth asked for; 0xff asks for all that the device can and the peer offers. */
static int depth(const char *call, const char *name, uint8_t asked, int device, uint8_t offered,
                 uint8_t *out)
{
    if (asked == RDMA_MAX_RESP_RES)
        *out = device < offered ? (uint8_t)device : offered;
    else if (asked > device)
        return -iw_refuse(call, DEPTH, name, asked, device);
    else
        *out = asked;
    return 0;
}

static int check_data(const char *call, const void *data, size_t own, size_t more, unsigned max)
{
    if (own + more > max)
        return -iw_refuse(call, PRIVATE_DATA, own + more, max);
    return more > 0 && !data ? -iw_refuse(call, ARGUMENT) : 0;
}

static uint8_t up_to_max(uint8_t count)
{
    return count < IW_TERMS_RETRY_MAX ? count : IW_TERMS_RETRY_MAX;
}

/* What is said to the peer. The private data of the id goes first; @p data is room for both. */
static int fill_param(const struct cma_id *id, const char *call, const struct rdma_conn_param *conn,
                      uint8_t *data, struct iw_cm_param *param)
{
    size_t own = id->connect_data_len;
    struct ibv_device_attr device;
    int r = check_data(call, conn->private_data, own, conn->private_data_len,
                       iw_cm_private_data_max(id->ib.on));
    if (r < 0)
        return r;
    if (!id->pub.verbs)
        return -iw_refuse(call, NO_DEVICE);
    if (id->pub.qp && id->pub.qp->context->device != id->pub.verbs->device)
        return -iw_refuse(call, OTHER_CONTEXT, "the queue pair");
    r = ibv_query_device(id->pub.verbs, &device);
    if (r)
        return -r;
    if (own > 0)
        memcpy(data, id->connect_data, own);
    if (conn->private_data_len > 0)
        memcpy(data + own, conn->private_data, conn->private_data_len);
    *param = (struct iw_cm_param){
        .private_data = data,
        .private_data_len = (uint8_t)(own + conn->private_data_len),
        .ctx = id->pub.verbs,
        .ack_timeout = id->ack_timeout,
        .qp = id->pub.qp,
        .qp_num = id->pub.qp ? id->pub.qp->qp_num : conn->qp_num,
        .ib = id->ib.on,
        .terms = {.rnr_retry = up_to_max(conn->rnr_retry_count),
                  .retry_count = up_to_max(conn->retry_count),
                  .srq = id->pub.qp ? id->pub.qp->srq != NULL : conn->srq},
    };
    r = depth(call, "responder_resources", conn->responder_resources, device.max_qp_rd_atom,
              id->responder_resources, &param->responder_resources);
    if (r < 0)
        return r;
    return depth(call, "initiator_depth", conn->initiator_depth, device.max_qp_init_rd_atom,
                 id->initiator_depth, &param->initiator_depth);
}

/* The port may have been changed for one that this connection has to itself. */
static void note_port(struct cma_id *id)
{
    struct sockaddr_storage local;
    iw_cm_addresses(id->cm, &local, NULL);
    if (local.ss_family != AF_UNSPEC) /* else it is over already */
        addr_set_port(&id->pub.route.addr.src_addr, addr_port((struct sockaddr *)&local));
}

/* An id for datagrams asks, or answers. */
static int resolve_locked(struct cma_id *id, const struct rdma_conn_param *conn, enum cma_call call)
{
    bool answers = call == CMA_CALL_ACCEPT;
    if (iw_cm_chaos(answers ? IW_FAULT_ACCEPT : IW_FAULT_CONNECT, NULL))
        return -ENOMEM;
    int r = answers ? cma_answer_locked(id, conn) : cma_ask_locked(id, conn);
    if (r == 0)
        cma_set_state(id, call);
    return r;
}

static int begin_locked(struct cma_id *id, const struct rdma_conn_param *conn, enum cma_call call)
{
    uint8_t data[CMA_PRIVATE_DATA_MAX];
    struct iw_cm_param param;
    if (!cma_connects(id))
        return -iw_refuse(cma_call_name(call), SERVICE);
    if (cma_datagrams(id))
        return resolve_locked(id, conn, call);
    int r = fill_param(id, cma_call_name(call), conn, data, &param);
    if (r < 0)
        return r;
    if (iw_cm_chaos(call == CMA_CALL_ACCEPT ? IW_FAULT_ACCEPT : IW_FAULT_CONNECT, NULL))
        return -ENOMEM;
    r = cma_event_reserve(id, true); /* no more come: the outcome, and the end */
    if (r < 0)
        return r;
    id->moves = !id->pub.qp;
    if (call == CMA_CALL_CONNECT)
        id->ib.retry_count = param.terms.retry_count;
    if (call == CMA_CALL_ACCEPT)
        r = iw_cm_accept(id->cm, &param);
    else
        r = iw_cm_connect(id->cm, &id->pub.route.addr.dst_addr, &param);
    if (r < 0) {
        cma_event_unreserve(id);
        return r;
    }
    if (call == CMA_CALL_CONNECT)
        note_port(id);
    cma_set_state(id, call);
    return 0;
}

static int begin(struct rdma_cm_id *pub, const struct rdma_conn_param *conn, enum cma_call call)
{
    if (!conn && pub && !pub->qp)
        return cma_fail(iw_refuse(cma_call_name(call), NO_QP));
    struct cma_id *id = cma_enter(pub, call);
    if (!id)
        return cma_refused(pub);
    int r = begin_locked(id, conn ? conn : &defaults, call);
    /* Who answers for datagrams has nothing to wait for. */
    bool over = cma_datagrams(id) && call == CMA_CALL_ACCEPT;
    return over ? cma_leave(id, r) : cma_complete(id, r);
}

int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *conn)
{
    return begin(pub, conn, CMA_CALL_CONNECT);
}

int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *conn)
{
    return begin(pub, conn, CMA_CALL_ACCEPT);
}

static int reject_locked(struct cma_id *id, const void *private_data, uint8_t private_data_len)
{
    int r = check_data(cma_call_name(CMA_CALL_REJECT), private_data, 0, private_data_len,
                       IW_CM_PRIVATE_DATA_MAX);
    return r < 0 ? r : iw_cm_reject(id->cm, private_data, private_data_len);
}

int rdma_reject(struct rdma_cm_id *pub, const void *private_data, uint8_t private_data_len)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_REJECT);
    if (!id)
        return cma_refused(pub);
    int r = -ENOMEM;
    if (!iw_cm_chaos(IW_FAULT_REJECT, NULL))
        r = cma_datagrams(id) ? cma_turn_down_locked(id, private_data, private_data_len)
                              : reject_locked(id, private_data, private_data_len);
    if (r == 0)
        cma_set_state(id, CMA_CALL_REJECT);
    return cma_leave(id, r);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return rdma_reject(id, private_data, private_data_len);
}

/* With InfiniBand manners, and for datagrams, the end of the connection is not that of the QP. */
static void fail_qp(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int rdma_disconnect(struct rdma_cm_id *pub)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_DISCONNECT);
    if (!id)
        return cma_refused(pub);
    if (iw_cm_chaos(IW_FAULT_DISCONNECT, NULL))
        return cma_leave(id, -ENOMEM);
    bool datagrams = cma_datagrams(id);
    bool connected = !datagrams && (id->state == CMA_CONNECT || id->state == CMA_CLOSING);
    if ((id->ib.on || datagrams) && pub->qp)
        fail_qp(pub->qp);
    int r = connected ? iw_cm_disconnect(id->cm) : 0;
    if (r == 0)
        cma_set_state(id, CMA_CALL_DISCONNECT);
    /* Without a connection, or with its last event taken, there is nothing to wait for. */
    return connected ? cma_complete(id, r) : cma_leave(id, r);
}

/* For a QP that the program moves itself: the transport has moved it, so that nothing is left. */
int rdma_establish(struct rdma_cm_id *pub)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_ESTABLISH);
    if (!id)
        return cma_refused(pub);
    bool own = !pub->qp && id->established;
    return cma_leave(
        id,
        own ? 0 : -iw_refuse(__func__, VALUE, "an id with a queue pair, or without a connection"));
}

int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
    (void)event; /* TCP has told the transport all that it could say */
    struct cma_id *id = cma_enter(pub, CMA_CALL_NOTIFY);
    return id ? cma_leave(id, 0) : cma_refused(pub);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id)
        return cma_no_handle(__func__);
    if (!ece || id->qp || !ece->vendor_id || ece->comp_mask)
        return cma_fail(
            iw_refuse(__func__, VALUE, "no vendor_id, a comp_mask, or an id with a queue pair"));
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id)
        return cma_no_handle(__func__);
    if (!ece || id->qp)
        return cma_fail(iw_refuse(__func__, VALUE, "no ece, or an id with a queue pair"));
    memset(ece, 0, sizeof *ece); /* MPA carries none */
    return 0;
}

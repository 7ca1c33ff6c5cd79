/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of ids. */
#include "cma.h"

#include <string.h>

/* An id that connects gets at most two events from its handler: the outcome, and the end. */
#define EVENTS_OF_A_CONNECTION 2

static const struct rdma_conn_param defaults = {
    .responder_resources = RDMA_MAX_RESP_RES,
    .initiator_depth = RDMA_MAX_INIT_DEPTH,
};

bool cma_connects(const struct cma_id *id)
{
    return id->pub.ps == RDMA_PS_TCP || id->pub.ps == RDMA_PS_IB;
}

/* A depth asked for; 0xff asks for all that the device can and the peer offers. */
static int depth(uint8_t asked, int device, uint8_t offered, uint8_t *out)
{
    if (asked == RDMA_MAX_RESP_RES)
        *out = device < offered ? (uint8_t)device : offered;
    else if (asked > device)
        return -EINVAL;
    else
        *out = asked;
    return 0;
}

/* What is said to the peer, apart from private data. */
static int fill_param(struct cma_id *id, const struct rdma_conn_param *conn,
                      uint8_t responder_resources, uint8_t initiator_depth,
                      struct iw_cm_param *param)
{
    struct ibv_device_attr device;
    if (!id->pub.verbs)
        return -EINVAL;
    int r = ibv_query_device(id->pub.verbs, &device);
    if (r)
        return -r;
    param->ctx = id->pub.verbs;
    param->ack_timeout = id->ack_timeout;
    param->qp = id->pub.qp;
    param->qp_num = id->pub.qp ? id->pub.qp->qp_num : conn->qp_num;
    r = depth(conn->responder_resources, device.max_qp_rd_atom, responder_resources,
              &param->responder_resources);
    if (r < 0)
        return r;
    return depth(conn->initiator_depth, device.max_qp_init_rd_atom, initiator_depth,
                 &param->initiator_depth);
}

/* The port may have been changed for one that this connection has to itself. */
static void note_port(struct cma_id *id)
{
    struct sockaddr_storage local;
    iw_cm_addresses(id->cm, &local, NULL);
    if (local.ss_family != AF_UNSPEC) /* else it is over already */
        cma_addr_set_port(&id->pub.route.addr.src_addr, cma_addr_port((struct sockaddr *)&local));
}

static int connect_locked(struct cma_id *id, const struct rdma_conn_param *conn)
{
    uint8_t data[CMA_PRIVATE_DATA_MAX];
    size_t own = id->connect_data_len, len = own + conn->private_data_len;
    struct iw_cm_param param = {.private_data = data};

    int r = cma_may(id, CMA_CALL_CONNECT);
    if (r < 0)
        return r;
    if (!cma_connects(id))
        return -EOPNOTSUPP;
    if (len > sizeof data)
        return -EINVAL;
    if (own > 0)
        memcpy(data, id->connect_data, own);
    if (conn->private_data_len > 0)
        memcpy(data + own, conn->private_data, conn->private_data_len);
    param.private_data_len = (uint8_t)len;
    r = fill_param(id, conn, UINT8_MAX, UINT8_MAX, &param);
    if (r < 0)
        return r;
    r = cma_event_reserve(id, EVENTS_OF_A_CONNECTION);
    if (r < 0)
        return r;
    r = iw_cm_connect(id->cm, &id->pub.route.addr.dst_addr, &param);
    if (r < 0) {
        cma_event_unreserve(id);
        return r;
    }
    note_port(id);
    cma_set_state(id, CMA_CALL_CONNECT);
    return 0;
}

int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *conn)
{
    if (!pub)
        return cma_no_handle();
    if (!conn && !pub->qp)
        return cma_fail(EINVAL);
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = connect_locked(id, conn ? conn : &defaults);
    return cma_complete_unlock(id, r);
}

static int accept_locked(struct cma_id *id, const struct rdma_conn_param *conn)
{
    struct iw_cm_param param = {
        .private_data = conn->private_data,
        .private_data_len = conn->private_data_len,
    };
    int r = cma_may(id, CMA_CALL_ACCEPT);
    if (r < 0)
        return r;
    r = fill_param(id, conn, id->responder_resources, id->initiator_depth, &param);
    if (r < 0)
        return r;
    r = cma_event_reserve(id, EVENTS_OF_A_CONNECTION);
    if (r < 0)
        return r;
    r = iw_cm_accept(id->cm, &param);
    if (r < 0) {
        cma_event_unreserve(id);
        return r;
    }
    cma_set_state(id, CMA_CALL_ACCEPT);
    return 0;
}

int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *conn)
{
    if (!pub)
        return cma_no_handle();
    if (!conn && !pub->qp)
        return cma_fail(EINVAL);
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = accept_locked(id, conn ? conn : &defaults);
    return cma_complete_unlock(id, r);
}

int rdma_reject(struct rdma_cm_id *pub, const void *private_data, uint8_t private_data_len)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_REJECT);
    if (r == 0)
        r = iw_cm_reject(id->cm, private_data, private_data_len);
    if (r == 0)
        cma_set_state(id, CMA_CALL_REJECT);
    lock_put(&id->lock);
    return cma_result(r);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return rdma_reject(id, private_data, private_data_len);
}

int rdma_disconnect(struct rdma_cm_id *pub)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);
    bool connected = false;

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_DISCONNECT);
    if (r == 0) {
        connected = id->state == CMA_CONNECT || id->state == CMA_CLOSING;
        if (connected)
            r = iw_cm_disconnect(id->cm);
    }
    if (r == 0)
        cma_set_state(id, CMA_CALL_DISCONNECT);
    if (connected)
        return cma_complete_unlock(id, r);
    /* Without a connection, or with its last event taken, there is nothing to wait for. */
    lock_put(&id->lock);
    return cma_result(r);
}

/* For a QP that the program moves itself: the transport has moved it, so that nothing is left. */
int rdma_establish(struct rdma_cm_id *pub)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_ESTABLISH);
    if (r == 0 && (pub->qp || !id->established))
        r = -EINVAL;
    lock_put(&id->lock);
    return cma_result(r);
}

int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
    (void)event; /* TCP has told the transport all that it could say */
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = cma_may(id, CMA_CALL_NOTIFY);
    lock_put(&id->lock);
    return cma_result(r);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id)
        return cma_no_handle();
    if (!ece || id->qp || !ece->vendor_id || ece->comp_mask)
        return cma_fail(EINVAL);
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id)
        return cma_no_handle();
    if (!ece || id->qp)
        return cma_fail(EINVAL);
    memset(ece, 0, sizeof *ece); /* MPA carries none */
    return 0;
}

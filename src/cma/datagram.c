/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids for datagrams: one asks, the other answers with its queue pair's number and Q_Key. */
#include "cma.h"

#include <string.h>

uint32_t cma_qkey(struct cma_id *id)
{
    if (!id->qkey)
        id->qkey = RDMA_UDP_QKEY;
    return id->qkey;
}

static int check_data(const char *call, const void *data, size_t len, unsigned max)
{
    if (len > max)
        return -iw_refuse(call, PRIVATE_DATA, len, max);
    return len > 0 && !data ? -iw_refuse(call, ARGUMENT) : 0;
}

int cma_ask_locked(struct cma_id *id, const struct rdma_conn_param *conn)
{
    const char *call = cma_call_name(CMA_CALL_CONNECT);
    uint8_t data[SIDR_REQUEST_DATA];
    size_t own = id->connect_data_len;
    int r = check_data(call, conn->private_data, own + conn->private_data_len, sizeof data);
    if (r < 0)
        return r;
    if (!id->pub.verbs)
        return -iw_refuse(call, NO_DEVICE);
    r = cma_event_reserve(id, false);
    if (r < 0)
        return r;
    if (own > 0)
        memcpy(data, id->connect_data, own);
    if (conn->private_data_len > 0)
        memcpy(data + own, conn->private_data, conn->private_data_len);
    const struct iw_sidr_param param = {.private_data = data,
                                        .private_data_len = (uint8_t)(own + conn->private_data_len),
                                        .ib = id->ib.on};
    r = iw_sidr_ask(id->sidr, &id->pub.route.addr.dst_addr, &param);
    if (r < 0)
        cma_event_unreserve(id);
    return r;
}

int cma_answer_locked(struct cma_id *id, const struct rdma_conn_param *conn)
{
    const char *call = cma_call_name(CMA_CALL_ACCEPT);
    int r = check_data(call, conn->private_data, conn->private_data_len, SIDR_REPLY_DATA);
    uint32_t qpn = id->pub.qp ? id->pub.qp->qp_num : conn->qp_num;
    if (r < 0)
        return r;
    if (!qpn)
        return -iw_refuse(call, NO_QP);
    const struct iw_sidr_param param = {.private_data = conn->private_data,
                                        .private_data_len = conn->private_data_len,
                                        .qpn = qpn,
                                        .qkey = cma_qkey(id)};
    return iw_sidr_accept(id->sidr, &param);
}

int cma_turn_down_locked(struct cma_id *id, const void *private_data, uint8_t len)
{
    int r = check_data(cma_call_name(CMA_CALL_REJECT), private_data, len, SIDR_REPLY_DATA);
    return r < 0 ? r : iw_sidr_reject(id->sidr, private_data, len);
}

void cma_answered(struct cma_id *id, struct rdma_cm_event *event)
{
    struct rdma_ud_param *said = &event->param.ud;
    union ibv_gid peer = cma_gid_of(&id->pub.route.addr.dst_addr);
    lock_get(&id->lock);
    if (id->qkey && id->qkey != said->qkey) { /* the queue pair cannot have two */
        event->event = RDMA_CM_EVENT_ADDR_ERROR;
        event->status = -iw_refuse(cma_call_name(CMA_CALL_CONNECT), VALUE,
                                   "a Q_Key in the answer other than that of the queue pair");
    } else {
        id->qkey = said->qkey;
        cma_address_vector(id, &peer, &said->ah_attr);
    }
    lock_put(&id->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting, step by step as the CM tells, and what it tells later. */
#include "cma/rs/rs.h"

#define RESOLVE_MS 2000

static void failed(struct rs *rs, int err)
{
    rs->phase = RS_FAILED;
    rs->so_error = rs->err = err;
    if (rs->listener)
        rs_arrived(rs);
}

static void connected(struct rs *rs)
{
    rs->phase = RS_CONNECTED;
    rs->readable = rs->writable = true;
    rs_service_keepalive(rs);
    if (rs->listener)
        rs_arrived(rs);
    else
        rs_give_credits(rs); /* as who connects has to speak first */
}

static void on_route(struct rs *rs)
{
    uint8_t hello[RS_HELLO_SIZE];
    int r = rs_endpoint_create(rs);
    if (r < 0) {
        failed(rs, -r);
        return;
    }
    rs_hello_of(rs, hello);
    struct rdma_conn_param param = {
        .private_data = hello,
        .private_data_len = sizeof hello,
        .initiator_depth = 1,
        .flow_control = 1,
        .retry_count = 7,
        .rnr_retry_count = 7,
    };
    if (rdma_connect(rs->id, &param) < 0)
        failed(rs, errno);
}

static void on_event(struct rs *rs, enum rdma_cm_event_type type, int err,
                     const struct rs_hello *peer, int unusable)
{
    if (rs->phase == RS_FAILED)
        return;
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(rs->id, RESOLVE_MS) < 0)
            failed(rs, errno);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        on_route(rs);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (!rs->peer.credits) { /* we connected */
            if (unusable) {
                rdma_disconnect(rs->id);
                failed(rs, -unusable);
                break;
            }
            rs_meet(rs, peer);
        }
        connected(rs);
        break;
    case RDMA_CM_EVENT_REJECTED: /* ECONNRESET: something is there, but not of RDMA */
        failed(rs, err == ECONNRESET ? ECONNRESET : ECONNREFUSED);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        failed(rs, err ? err : EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        if (rs->phase != RS_CONNECTED) {
            failed(rs, ECONNRESET);
            break;
        }
        /* The receives are flushed next, behind what came before the end and the one at fault. */
        rs_harvest(rs);
        break;
    default: /* hints about the host */
        break;
    }
}

bool rs_step(struct rs *rs)
{
    struct rdma_cm_event *event;
    bool any = false;
    int saved = errno;
    while (rs->id && rdma_get_cm_event(rs->channel, &event) == 0) {
        any = true;
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            rs_take_in(rs, event);
            continue;
        }
        enum rdma_cm_event_type type = event->event;
        int status = event->status;
        struct rs_hello peer = {0};
        int unusable = rs_decode_hello(event->param.conn.private_data,
                                       event->param.conn.private_data_len, &peer);
        rdma_ack_cm_event(event);
        on_event(rs, type, status < 0 ? -status : status, &peer, unusable);
    }
    errno = saved;
    return any;
}

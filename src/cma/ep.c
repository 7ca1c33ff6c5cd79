/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: ids made from a struct rdma_addrinfo in one call, always synchronous. */
#include "cma.h"

#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

/* Keeps what rdma_get_request() needs to make a QP. */
static int open_passive(struct cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                        const struct ibv_qp_init_attr *attr)
{
    if (rdma_bind_addr(&id->pub, res->ai_src_addr))
        return -1;
    if (pd)
        id->pub.pd = pd;
    if (!attr)
        return 0;
    id->request_qp = malloc(sizeof *attr);
    if (!id->request_qp)
        return cma_fail(ENOMEM);
    *id->request_qp = *attr;
    id->request_qp->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    return 0;
}

static int keep_connect_data(struct cma_id *id, const struct rdma_addrinfo *res)
{
    if (!res->ai_connect_len)
        return 0;
    if (res->ai_connect_len > CMA_PRIVATE_DATA_MAX)
        return cma_fail(
            iw_refuse("rdma_create_ep", PRIVATE_DATA, res->ai_connect_len, CMA_PRIVATE_DATA_MAX));
    id->connect_data = malloc(res->ai_connect_len);
    if (!id->connect_data)
        return cma_fail(ENOMEM);
    memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
    id->connect_data_len = (uint8_t)res->ai_connect_len;
    return 0;
}

/* A route that comes with the addresses takes the place of resolution. */
static int open_route(struct cma_id *id, const struct rdma_addrinfo *res)
{
    if (!res->ai_route_len)
        return rdma_resolve_route(&id->pub, RESOLVE_MS);
    if (rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
                        res->ai_route_len))
        return -1;
    lock_get(&id->lock);
    return cma_complete(id, 0);
}

static int open_active(struct cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                       struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *pub = &id->pub;
    if (rdma_resolve_addr(pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
        open_route(id, res) || keep_connect_data(id, res))
        return -1;
    if (!attr)
        return 0;
    attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    return rdma_create_qp(pub, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *pub;
    if (!out || !res)
        return cma_no_handle(__func__);
    if (cma_id_create(NULL, &pub, NULL, (enum rdma_port_space)res->ai_port_space,
                      (enum ibv_qp_type)res->ai_qp_type))
        return -1;
    struct cma_id *id = cma_id(pub);
    int r = res->ai_flags & RAI_PASSIVE ? open_passive(id, res, pd, attr)
                                        : open_active(id, res, pd, attr);
    if (r) {
        int err = errno;
        rdma_destroy_ep(pub);
        return cma_fail(err);
    }
    *out = pub;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (!id)
        return;
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

/* A queue pair for a request, as the listener's endpoint was told. */
static int complete_request(const struct cma_id *listener, struct rdma_cm_id *request)
{
    if (!listener->request_qp)
        return 0;
    struct ibv_qp_init_attr attr = *listener->request_qp;
    return rdma_create_qp(request, listener->pub.pd, &attr);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
    struct rdma_cm_event *event;
    if (!listen || !out)
        return cma_no_handle(__func__);
    struct cma_id *listener = cma_id(listen);
    if (!listener->sync)
        return cma_fail(iw_refuse("rdma_get_request", NOT_SYNCHRONOUS));
    cma_drop_held_event(listener);
    if (rdma_get_cm_event(listen->channel, &event))
        return -1;
    if (cma_event_result(event) || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        int err = event->status ? errno : EINVAL;
        listen->event = event;
        return cma_fail(err);
    }
    struct rdma_cm_id *request = event->id;
    if (complete_request(listener, request)) {
        int err = errno;
        rdma_ack_cm_event(event);
        rdma_destroy_id(request);
        return cma_fail(err);
    }
    cma_event_adopt(event);
    request->event = event;
    *out = request;
    return 0;
}

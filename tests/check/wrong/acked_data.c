/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 6};
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_cm_id *listener;
    struct rdma_cm_event *event;
    must(!rdma_create_id(events, &listener, NULL, RDMA_PS_TCP));
    must(!rdma_bind_addr(listener, (struct sockaddr *)&at) && !rdma_listen(listener, 1));
    at.sin_port = rdma_get_src_port(listener);
    must(!rdma_create_id(NULL, &a.id, NULL, RDMA_PS_TCP));
    must(!rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&at, 2000));
    must(!rdma_resolve_route(a.id, 2000));
    must((a.pd = ibv_alloc_pd(a.id->verbs)));
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = cap};
    must(!rdma_create_qp(a.id, a.pd, &attr));
    must(!rdma_migrate_id(a.id, events) && !rdma_connect(a.id, &param));
    must(!rdma_get_cm_event(events, &event) && event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
    const char *said = event->param.conn.private_data;
    must(!strcmp(said, "hello"));
    must(!rdma_ack_cm_event(event));
    must(said[4] == 'o'); /* wrong */
    return 0;
}

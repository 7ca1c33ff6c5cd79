/* SPDX-License-Identifier: BSD-2-Clause */
#include "child.h"

#include <arpa/inet.h>
#include <string.h>

void child_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type, void *data,
                 size_t len)
{
    struct rdma_cm_event *ev;
    CHECK(!rdma_get_cm_event(ch, &ev));
    CHECK(ev->event == type);
    if (len) {
        CHECK(ev->param.conn.private_data_len >= len);
        memcpy(data, ev->param.conn.private_data, len);
    }
    rdma_ack_cm_event(ev);
}

struct rdma_cm_id *child_resolve(struct rdma_event_channel *ch, int port_fd)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_id *id;
    CHECK(read(port_fd, &to.sin_port, sizeof(to.sin_port)) == sizeof(to.sin_port));
    CHECK(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
    child_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
    CHECK(!rdma_resolve_route(id, 2000));
    child_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, 0);
    return id;
}

int child_send(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq, uint8_t *buf,
               uint32_t number)
{
    struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = 1024, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.wr_id = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_wc wc;
    int n;
    memcpy(buf, &number, sizeof(number));
    CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    return n < 0 || wc.status != IBV_WC_SUCCESS;
}

void child_wait_command(int fd)
{
    char c;
    CHECK(read(fd, &c, 1) == 1);
}

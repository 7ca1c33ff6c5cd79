/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_ep.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct ibv_qp_init_attr ep_small_qp(void)
{
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = 8,
                .max_recv_wr = 8,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 16},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
}

struct rdma_addrinfo *ep_look_up(const char *node, uint16_t port, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST}, *res;
    assert_int_equal(rdma_getaddrinfo(node, "1", &hints, &res), 0);
    struct sockaddr *addr = flags & RAI_PASSIVE ? res->ai_src_addr : res->ai_dst_addr;
    ((struct sockaddr_in *)addr)->sin_port = port;
    return res;
}

struct rdma_cm_id *ep_passive(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id;
    struct rdma_addrinfo *res = ep_look_up("127.0.0.1", 0, RAI_PASSIVE);
    assert_int_equal(rdma_create_ep(&id, res, pd, attr), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_listen(id, 0), 0);
    return id;
}

struct rdma_cm_id *ep_active(struct rdma_cm_id *listener, struct ibv_pd *pd,
                             struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id;
    uint16_t port = rdma_get_src_port(listener);
    struct rdma_addrinfo *res = ep_look_up("127.0.0.1", port, 0);
    assert_int_equal(rdma_create_ep(&id, res, pd, attr), 0);
    rdma_freeaddrinfo(res);
    return id;
}

void *ep_connect(void *arg)
{
    struct rdma_conn_param param = {.private_data = EP_CONNECT_DATA,
                                    .private_data_len = sizeof(EP_CONNECT_DATA) - 1,
                                    .responder_resources = 4,
                                    .initiator_depth = 4};
    assert_int_equal(rdma_connect(arg, &param), 0);
    return NULL;
}

struct rdma_cm_id *ep_join(struct rdma_cm_id *listener, struct rdma_cm_id *a)
{
    struct rdma_cm_id *b;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ep_connect, a), 0);
    assert_int_equal(rdma_get_request(listener, &b), 0);
    assert_non_null(b->qp);
    assert_int_equal(rdma_accept(b, NULL), 0);
    pthread_join(t, NULL);
    return b;
}

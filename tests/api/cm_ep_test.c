/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: rdma_getaddrinfo(), rdma_create_ep(), and what rdma_create_qp() and rdma_create_srq()
 * make for an id.
 */
#include "cm_ep.h"
#include "cm_kit.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- rdma_getaddrinfo() ---- */

static const struct lookup {
    const char *node, *service;
    struct rdma_addrinfo hints;
    int flags, qp_type, port_space;
    const char *addr; /* the one address; NULL: libc's error */
} lookups[] = {
    {"127.0.0.1", "7471", {0}, 0, IBV_QPT_RC, RDMA_PS_TCP, "127.0.0.1"},
    {"::1", "7471", {0}, 0, IBV_QPT_RC, RDMA_PS_TCP, "::1"},
    {"127.0.0.1", NULL, {0}, 0, IBV_QPT_RC, RDMA_PS_TCP, "127.0.0.1"},
    {"127.0.0.1", "7471", {.ai_port_space = RDMA_PS_TCP}, 0, IBV_QPT_RC, RDMA_PS_TCP, "127.0.0.1"},
    {"127.0.0.1",
     "7471",
     {.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_IB},
     0,
     IBV_QPT_RC,
     RDMA_PS_IB,
     "127.0.0.1"},
    {"127.0.0.1", "7471", {.ai_port_space = RDMA_PS_UDP}, 0, IBV_QPT_UD, RDMA_PS_UDP, "127.0.0.1"},
    {"127.0.0.1", "7471", {.ai_qp_type = IBV_QPT_UD}, 0, IBV_QPT_UD, RDMA_PS_UDP, "127.0.0.1"},
    {"127.0.0.1",
     "7471",
     {.ai_qp_type = IBV_QPT_XRC_SEND},
     0,
     IBV_QPT_XRC_SEND,
     RDMA_PS_TCP,
     "127.0.0.1"},
    {NULL,
     "7471",
     {.ai_flags = RAI_PASSIVE, .ai_family = AF_INET},
     RAI_PASSIVE,
     IBV_QPT_RC,
     RDMA_PS_TCP,
     "0.0.0.0"},
    {NULL,
     "7471",
     {.ai_flags = RAI_PASSIVE, .ai_family = AF_INET6},
     RAI_PASSIVE,
     IBV_QPT_RC,
     RDMA_PS_TCP,
     "::"},
    {"127.0.0.1",
     "7471",
     {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST},
     RAI_PASSIVE,
     IBV_QPT_RC,
     RDMA_PS_TCP,
     "127.0.0.1"},
    {NULL, "7471", {.ai_family = AF_INET}, 0, IBV_QPT_RC, RDMA_PS_TCP, "127.0.0.1"},
    /* Of no account without InfiniBand; an address of that kind there is not. */
    {"127.0.0.1",
     "7471",
     {.ai_flags = RAI_NOROUTE | RAI_FAMILY, .ai_family = AF_INET},
     0,
     IBV_QPT_RC,
     RDMA_PS_TCP,
     "127.0.0.1"},
    {"::1", "7471", {.ai_family = AF_IB}, 0, IBV_QPT_RC, RDMA_PS_TCP, "::1"},
    /* Errors of libc. */
    {"localhost", "7471", {.ai_flags = RAI_NUMERICHOST}, 0, 0, 0, NULL},
    {"127.0.0.1", "no-such-service", {0}, 0, 0, 0, NULL},
    {"127.0.0.1", "7471", {.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_UDP}, 0, 0, 0, NULL},
};

static void each_look_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lookups); i++) {
        const struct lookup *l = &lookups[i];
        struct rdma_addrinfo *res = NULL;
        int code = rdma_getaddrinfo(l->node, l->service, &l->hints, &res);
        if (!l->addr) {
            if (code == 0 || code == -1)
                fail_msg("row %zu: %d", i, code);
            assert_string_not_equal(gai_strerror(code), "Unknown error");
            assert_null(res);
            continue;
        }
        if (code)
            fail_msg("row %zu: %s", i, gai_strerror(code));
        struct sockaddr_storage addr;
        bool passive = l->hints.ai_flags & RAI_PASSIVE;
        cm_address(&addr, l->addr, l->service ? htons(7471) : 0);
        assert_int_equal(res->ai_flags, l->flags);
        assert_int_equal(res->ai_family, addr.ss_family);
        assert_int_equal(res->ai_qp_type, l->qp_type);
        assert_int_equal(res->ai_port_space, l->port_space);
        assert_int_equal(passive ? res->ai_dst_len : res->ai_src_len, 0);
        assert_null(passive ? res->ai_dst_addr : res->ai_src_addr);
        assert_memory_equal(passive ? res->ai_src_addr : res->ai_dst_addr, &addr,
                            passive ? res->ai_src_len : res->ai_dst_len);
        assert_null(res->ai_src_canonname);
        assert_null(res->ai_dst_canonname);
        assert_int_equal(res->ai_route_len, 0);
        assert_int_equal(res->ai_connect_len, 0);
        assert_null(res->ai_next); /* one, where libc has several */
        rdma_freeaddrinfo(res);
    }
}

static void no_hints_or_nothing_else(void **state)
{
    struct rdma_addrinfo *res;
    struct sockaddr_storage src, dst;
    (void)state;
    assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &res), 0);
    assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
    assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
    rdma_freeaddrinfo(res);

    cm_address(&src, "127.0.0.2", 0);
    cm_address(&dst, "127.0.0.1", htons(7471));
    struct rdma_addrinfo hints = {
        .ai_flags = RAI_NOROUTE,
        .ai_family = AF_INET,
        .ai_qp_type = IBV_QPT_RC,
        .ai_port_space = RDMA_PS_TCP,
        .ai_src_addr = (struct sockaddr *)&src,
        .ai_src_len = sizeof(struct sockaddr_in),
        .ai_dst_addr = (struct sockaddr *)&dst,
        .ai_dst_len = sizeof(struct sockaddr_in),
    };
    for (int named = 0; named < 2; named++) {
        const char *node = named ? "127.0.0.1" : NULL, *service = named ? "7471" : NULL;
        assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
        assert_int_equal(res->ai_flags, named ? 0 : RAI_NOROUTE);
        assert_int_equal(res->ai_family, AF_INET);
        assert_int_equal(res->ai_src_len, sizeof(struct sockaddr_in));
        assert_memory_equal(res->ai_src_addr, &src, sizeof(struct sockaddr_in));
        assert_memory_equal(res->ai_dst_addr, &dst, sizeof(struct sockaddr_in));
        assert_ptr_not_equal(res->ai_src_addr, &src);
        assert_ptr_not_equal(res->ai_dst_addr, &dst);
        rdma_freeaddrinfo(res);
    }
    rdma_freeaddrinfo(NULL);
}

/* ---- endpoints ---- */

static void endpoints_and_their_objects(void **state)
{
    struct ibv_qp_init_attr attr = ep_small_qp();
    (void)state;
    struct rdma_cm_id *listener = ep_passive(NULL, &attr);
    assert_null(attr.send_cq); /* only kept for the requests */
    assert_non_null(listener->channel);
    attr.qp_type = IBV_QPT_UD; /* the address says what it is */
    struct rdma_cm_id *a = ep_active(listener, NULL, &attr), *b = ep_join(listener, a);
    assert_int_equal(attr.qp_type, IBV_QPT_RC);
    assert_ptr_equal(attr.send_cq, a->send_cq);
    assert_ptr_equal(attr.recv_cq, a->recv_cq);
    assert_true(attr.cap.max_send_wr >= 8);

    struct rdma_cm_id *ids[] = {a, b};
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct rdma_cm_id *id = ids[i];
        assert_int_equal(id->qp->qp_type, IBV_QPT_RC);
        assert_ptr_equal(id->qp->pd, id->pd);
        assert_ptr_equal(id->pd, listener->pd); /* the one default of the device */
        assert_ptr_equal(id->qp->send_cq, id->send_cq);
        assert_ptr_equal(id->qp->recv_cq, id->recv_cq);
        assert_ptr_not_equal(id->send_cq, id->recv_cq);
        assert_ptr_not_equal(id->send_cq_channel, id->recv_cq_channel);
        assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
        assert_ptr_equal(id->recv_cq->channel, id->recv_cq_channel);
        assert_ptr_equal(id->send_cq->cq_context, id);
        assert_ptr_equal(id->recv_cq->cq_context, id);
        assert_true(id->send_cq->cqe >= 8 && id->recv_cq->cqe >= 8);
    }
    rdma_destroy_qp(a);
    assert_null(a->qp);
    assert_null(a->send_cq);
    assert_null(a->recv_cq);
    assert_null(a->send_cq_channel);
    assert_null(a->recv_cq_channel);
    rdma_destroy_qp(a); /* nothing is left */
    rdma_destroy_ep(a);
    rdma_destroy_ep(b);
    rdma_destroy_ep(listener);
}

static void a_protection_domain_of_the_program(void **state)
{
    struct ibv_context **devices = rdma_get_devices(NULL);
    struct ibv_qp_init_attr attr = ep_small_qp();
    (void)state;
    struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
    struct rdma_cm_id *listener = ep_passive(pd, &attr);
    assert_ptr_equal(listener->pd, pd);
    struct rdma_cm_id *a = ep_active(listener, pd, &attr), *b = ep_join(listener, a);
    assert_ptr_equal(a->pd, pd);
    assert_ptr_equal(b->pd, pd);
    assert_ptr_equal(b->qp->pd, pd);
    rdma_destroy_ep(a);
    rdma_destroy_ep(b);
    rdma_destroy_ep(listener);
    assert_int_equal(ibv_dealloc_pd(pd), 0);

    /* One of another context is not to be mixed in. */
    struct ibv_context *own = ibv_open_device(devices[0]->device);
    pd = ibv_alloc_pd(own);
    listener = ep_passive(NULL, NULL);
    a = ep_active(listener, NULL, NULL);
    assert_null(a->qp);
    assert_int_equal(rdma_create_qp(a, pd, &attr), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_ep(a);
    rdma_destroy_ep(listener);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(own), 0);
    rdma_free_devices(devices);
}

static void what_an_address_brings_goes_first(void **state)
{
    struct ibv_qp_init_attr attr = ep_small_qp();
    struct rdma_cm_id *a, *b;
    pthread_t t;
    (void)state;
    struct rdma_cm_id *listener = ep_passive(NULL, &attr);
    struct rdma_addrinfo *res = ep_look_up("127.0.0.1", rdma_get_src_port(listener), 0);
    struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
                                          IBV_PATH_FLAG_BIDIRECTIONAL};
    res->ai_connect = strdup("address");
    res->ai_connect_len = 7;
    res->ai_route = &path;
    res->ai_route_len = sizeof(path);
    assert_int_equal(rdma_create_ep(&a, res, NULL, &attr), 0);
    assert_int_equal(a->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);

    path.flags = 0; /* of no use */
    assert_int_equal(rdma_create_ep(&b, res, NULL, &attr), -1);
    assert_int_equal(errno, EINVAL);
    res->ai_route = NULL;
    rdma_freeaddrinfo(res);

    assert_int_equal(pthread_create(&t, NULL, ep_connect, a), 0);
    assert_int_equal(rdma_get_request(listener, &b), 0);
    assert_int_equal(b->event->param.conn.private_data_len, 19);
    assert_memory_equal(b->event->param.conn.private_data, "address and program", 19);
    assert_int_equal(rdma_accept(b, NULL), 0);
    pthread_join(t, NULL);
    rdma_destroy_ep(a);
    rdma_destroy_ep(b);
    rdma_destroy_ep(listener);
}

static void endpoints_that_cannot_be(void **state)
{
    struct rdma_cm_id *id = NULL;
    struct sockaddr_storage here, nowhere;
    struct ibv_qp_init_attr fine = ep_small_qp(), too_big = fine;
    too_big.cap.max_send_wr = UINT32_MAX;
    (void)state;
    cm_address(&here, "127.0.0.1", htons(7));
    cm_address(&nowhere, "192.0.2.1", htons(7));
    const struct {
        struct rdma_addrinfo ai;
        struct ibv_qp_init_attr *attr;
        int err;
    } rows[] = {
        {{.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, NULL, EINVAL},
        {{.ai_port_space = RDMA_PS_TCP}, NULL, EINVAL},
        {{.ai_dst_addr = (struct sockaddr *)&here}, NULL, EINVAL},
        {{.ai_port_space = RDMA_PS_TCP,
          .ai_flags = RAI_PASSIVE,
          .ai_src_addr = (struct sockaddr *)&nowhere},
         NULL,
         EADDRNOTAVAIL},
        {{.ai_port_space = RDMA_PS_TCP,
          .ai_src_addr = (struct sockaddr *)&nowhere,
          .ai_dst_addr = (struct sockaddr *)&here},
         NULL,
         EADDRNOTAVAIL},
        {{.ai_port_space = RDMA_PS_TCP,
          .ai_qp_type = IBV_QPT_RC,
          .ai_dst_addr = (struct sockaddr *)&here},
         &too_big,
         EINVAL},
        {{.ai_port_space = RDMA_PS_TCP,
          .ai_qp_type = IBV_QPT_XRC_SEND,
          .ai_dst_addr = (struct sockaddr *)&here},
         &fine,
         EOPNOTSUPP},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdma_addrinfo ai = rows[i].ai;
        errno = 0;
        if (rdma_create_ep(&id, &ai, NULL, rows[i].attr) != -1 || errno != rows[i].err)
            fail_msg("row %zu: %s", i, strerror(errno));
        assert_null(id);
    }
}

/* ---- queue pairs and their CQs ---- */

static void completion_queues_of_the_program(void **state)
{
    struct ibv_qp_init_attr attr = ep_small_qp();
    (void)state;
    struct rdma_cm_id *listener = ep_passive(NULL, NULL);
    struct rdma_cm_id *id = ep_active(listener, NULL, NULL);
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    struct ibv_cq *other = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr_ex ex = {
        .cap = attr.cap, .qp_type = IBV_QPT_RC, .send_cq = cq, .sq_sig_all = 1};
    assert_int_equal(rdma_create_qp_ex(id, &ex), 0);
    assert_ptr_equal(id->qp->send_cq, cq);
    assert_null(id->send_cq); /* it is not the id's */
    assert_null(id->send_cq_channel);
    assert_ptr_equal(id->qp->recv_cq, id->recv_cq);
    assert_ptr_equal(ex.recv_cq, id->recv_cq);
    assert_ptr_equal(ex.pd, id->pd);
    assert_int_equal(rdma_create_qp_ex(id, &ex), -1); /* one is enough */
    assert_int_equal(errno, EINVAL);
    rdma_destroy_qp(id);
    assert_int_equal(ibv_destroy_cq(other), 0);

    /* What an id is given by its program it uses, and wants no other. */
    other = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    id->recv_cq = other;
    ex.recv_cq = cq;
    assert_int_equal(rdma_create_qp_ex(id, &ex), -1);
    assert_int_equal(errno, EINVAL);
    ex.recv_cq = NULL;
    assert_int_equal(rdma_create_qp_ex(id, &ex), 0);
    assert_ptr_equal(id->qp->recv_cq, other);
    rdma_destroy_qp(id); /* with the CQ in the id */
    assert_null(id->recv_cq);

    /* After a failure all is as before. */
    ex.recv_cq = NULL;
    ex.cap.max_send_sge = 10000;
    assert_int_equal(rdma_create_qp_ex(id, &ex), -1);
    assert_null(id->qp);
    assert_null(id->recv_cq);
    assert_null(id->recv_cq_channel);
    assert_null(ex.recv_cq);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

static void shared_receive_queues(void **state)
{
    struct ibv_qp_init_attr attr = ep_small_qp();
    struct ibv_wc wc;
    char buf[64] = "";
    (void)state;
    struct rdma_cm_id *listener = ep_passive(NULL, &attr);
    struct rdma_cm_id *a = ep_active(listener, NULL, NULL);
    struct ibv_srq_init_attr want = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_init_attr_ex ex = {.attr = want.attr};
    assert_int_equal(rdma_create_srq_ex(a, &ex), -1); /* of which type? */
    assert_int_equal(errno, EINVAL);
    ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
    ex.srq_type = IBV_SRQT_XRC;
    assert_int_equal(rdma_create_srq_ex(a, &ex), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    ex.srq_type = IBV_SRQT_BASIC;
    assert_int_equal(rdma_create_srq_ex(a, &ex), 0);
    assert_ptr_equal(ex.pd, a->pd);
    rdma_destroy_srq(a);
    assert_null(a->srq);

    struct ibv_pd *id_pd = a->pd, *pd = ibv_alloc_pd(a->verbs);
    assert_int_equal(rdma_create_srq(a, pd, &want), 0);
    assert_ptr_equal(a->srq->pd, pd);
    assert_ptr_equal(a->pd, id_pd);
    rdma_destroy_srq(a);
    assert_int_equal(ibv_dealloc_pd(pd), 0);

    assert_int_equal(rdma_create_srq(a, NULL, &want), 0);
    assert_true(want.attr.max_wr >= 8);
    assert_int_equal(rdma_create_qp(a, NULL, &attr), 0);
    assert_ptr_equal(a->qp->srq, a->srq);
    struct ibv_mr *mr = rdma_reg_msgs(a, buf, sizeof(buf));
    assert_int_equal(rdma_post_recv(a, &wc, buf, sizeof(buf), mr), 0);
    struct rdma_cm_id *b = ep_join(listener, a);
    assert_int_equal(
        rdma_post_send(b, NULL, (void *)(uintptr_t) "shared", 7, NULL, IBV_SEND_INLINE), 0);
    assert_int_equal(rdma_get_recv_comp(a, &wc), 1);
    assert_int_equal(wc.wr_id, (uintptr_t)&wc);
    assert_string_equal(buf, "shared");
    assert_int_equal(rdma_dereg_mr(mr), 0);
    rdma_destroy_ep(a); /* with QP and SRQ */
    rdma_destroy_ep(b);
    rdma_destroy_ep(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_look_up),
        cmocka_unit_test(no_hints_or_nothing_else),
        cmocka_unit_test(endpoints_and_their_objects),
        cmocka_unit_test(a_protection_domain_of_the_program),
        cmocka_unit_test(what_an_address_brings_goes_first),
        cmocka_unit_test(endpoints_that_cannot_be),
        cmocka_unit_test(completion_queues_of_the_program),
        cmocka_unit_test(shared_receive_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

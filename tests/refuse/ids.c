/* SPDX-License-Identifier: BSD-2-Clause */
/* Refused calls of librdmacm; each case returns the errno. */
#include "cases.h"

#include "../api/cm_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOKUPS 1000

static int of_int(int r)
{
    return r ? errno : 0;
}

/** Has an id with its device and queue pair, not connected, for @p then. */
static int with_id(int (*then)(struct rdma_cm_id *id))
{
    struct cm_sides s;
    cm_open(&s, NULL);
    struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
    int r = then(id);
    cm_drop(id);
    cm_close(&s);
    return r;
}

int refused_state(void)
{
    struct rdma_conn_param param = {0};
    return of_int(rdma_connect(w.id, &param));
}

int refused_no_qp(void)
{
    return of_int(rdma_accept(w.id, NULL));
}

static int connect_failed(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {0};
    assert_int_equal(modify(id->qp, IBV_QPS_ERR), 0);
    return of_int(rdma_connect(id, &param));
}

int refused_qp_taken(void)
{
    return with_id(connect_failed);
}

static int create_again(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    return of_int(rdma_create_qp(id, NULL, &attr));
}

int refused_has_qp(void)
{
    return with_id(create_again);
}

/** The call is the peer's; here its request is taken, and no event comes of it. */
int refused_other_kind(void)
{
    static const uint8_t request[] = "MPA ID Req Frame\0\1\0\14AWIB\1\7\7\0\0\1\2";
    struct cm_sides s;
    struct rdma_cm_event *e;
    cm_open(&s, NULL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&s.addr, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(write(fd, request, sizeof(request)), sizeof(request));
    struct pollfd p = {.fd = s.b->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    fcntl(s.b->fd, F_SETFL, O_NONBLOCK);
    assert_int_equal(rdma_get_cm_event(s.b, &e), -1);
    assert_int_equal(errno, EAGAIN);
    close(fd);
    cm_close(&s);
    return ENODEV;
}

int refused_no_device(void)
{
    return create_again(w.id);
}

static int create_otherwise(struct rdma_cm_id *id)
{
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = id->qp;
    id->qp = NULL;
    int r = of_int(rdma_create_qp(id, NULL, &attr));
    id->qp = qp;
    ibv_destroy_cq(cq);
    return r;
}

int refused_id_cq(void)
{
    return with_id(create_otherwise);
}

static int connect_much(struct rdma_cm_id *id)
{
    struct rdma_conn_param none = {.private_data_len = 1};
    struct rdma_conn_param param = {.private_data = w.bytes, .private_data_len = 255};
    assert_int_equal(of_int(rdma_connect(id, &none)), EINVAL);
    return of_int(rdma_connect(id, &param));
}

static int reject_much(void)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(of_int(rdma_reject(b, NULL, 1)), EINVAL);
    int r = of_int(rdma_reject(b, w.bytes, 252));
    assert_int_equal(rdma_reject(b, w.bytes, 251), 0);
    cm_expect(s.a, RDMA_CM_EVENT_REJECTED);
    rdma_destroy_id(b);
    cm_drop(a);
    cm_close(&s);
    return r;
}

int refused_private_data(void)
{
    assert_int_equal(with_id(connect_much), EINVAL);
    return reject_much();
}

static int connect_deep(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.initiator_depth = 254};
    return of_int(rdma_connect(id, &param));
}

int refused_depth(void)
{
    return with_id(connect_deep);
}

int refused_service(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct rdma_cm_id *id;
    const struct rdma_addrinfo res = {.ai_flags = RAI_PASSIVE,
                                      .ai_port_space = RDMA_PS_UDP,
                                      .ai_qp_type = IBV_QPT_RC,
                                      .ai_src_addr = (struct sockaddr *)&any};
    assert_int_equal(rdma_create_ep(&id, (struct rdma_addrinfo *)&res, NULL, NULL), 0);
    int r = of_int(rdma_listen(id, 1));
    rdma_destroy_ep(id);
    return r;
}

int refused_family(void)
{
    struct sockaddr_storage addr = {.ss_family = AF_IB};
    return of_int(rdma_bind_addr(w.id, (struct sockaddr *)&addr));
}

int refused_scope(void)
{
    struct sockaddr_storage addr;
    struct rdma_cm_id *id;
    cm_address(&addr, "fe80::1", htons(1));
    assert_int_equal(rdma_create_id(w.events, &id, NULL, RDMA_PS_TCP), 0);
    int r = of_int(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 100));
    rdma_destroy_id(id);
    return r;
}

static int bind_to(const struct sockaddr_storage *addr)
{
    struct rdma_cm_id *id;
    struct sockaddr_storage copy = *addr;
    assert_int_equal(rdma_create_id(w.events, &id, NULL, RDMA_PS_TCP), 0);
    int r = of_int(rdma_bind_addr(id, (struct sockaddr *)&copy));
    rdma_destroy_id(id);
    return r;
}

/* Nothing outside of this host is reached from its loopback address. */
int refused_no_route(void)
{
    struct sockaddr_storage from, to;
    struct rdma_cm_id *id;
    cm_address(&from, "127.0.0.1", 0);
    cm_address(&to, "192.0.2.1", 0);
    assert_int_equal(rdma_create_id(w.events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000),
                     0);
    int status = cm_expect(w.events, RDMA_CM_EVENT_ADDR_ERROR);
    assert_int_equal(rdma_destroy_id(id), 0);
    return status ? ENETUNREACH : 0; /* of the kernel's choice */
}

int refused_port_taken(void)
{
    struct cm_sides s;
    cm_open(&s, NULL);
    int r = bind_to(&s.addr);
    cm_close(&s);
    return r;
}

int refused_port_in_use(void)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);
    cm_address(&addr, "127.0.0.1", 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    int r = bind_to(&addr);
    close(fd);
    return r;
}

int refused_not_local(void)
{
    struct sockaddr_storage addr;
    cm_address(&addr, "192.0.2.1", 0);
    return bind_to(&addr);
}

int refused_port_space(void)
{
    struct rdma_cm_id *id;
    return of_int(rdma_create_id(w.events, &id, NULL, (enum rdma_port_space)0x777));
}

int refused_option(void)
{
    int one = 1;
    return of_int(rdma_set_option(w.id, 77, 1, &one, sizeof(one)));
}

int refused_option_value(void)
{
    int one = 1;
    return of_int(rdma_set_option(w.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, sizeof(one)));
}

/* The first may be over already; then the next is the first. */
int refused_lookup(void)
{
    struct rdma_cm_id *id;
    int r = 0;
    assert_int_equal(rdma_create_id(w.events, &id, NULL, RDMA_PS_TCP), 0);
    for (int i = 0; i < LOOKUPS && !r; i++)
        r = of_int(rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL));
    assert_int_equal(rdma_destroy_id(id), 0);
    return r;
}

int refused_not_synchronous(void)
{
    struct rdma_cm_id *request;
    return of_int(rdma_get_request(w.id, &request));
}

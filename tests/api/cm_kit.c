/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_kit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT_MS 10000

void cm_address(struct sockaddr_storage *to, const char *text, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof(*to));
    if (strchr(text, ':')) {
        six->sin6_family = AF_INET6;
        six->sin6_port = port;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        four->sin_family = AF_INET;
        four->sin_port = port;
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
}

int cm_listen_plain(struct sockaddr_storage *addr, int backlog)
{
    socklen_t len = sizeof(struct sockaddr_in);
    cm_address(addr, "127.0.0.1", 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)addr, len), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

void cm_open(struct cm_sides *s, const char *address)
{
    s->a = rdma_create_event_channel();
    s->b = rdma_create_event_channel();
    assert_non_null(s->a);
    assert_non_null(s->b);
    if (!address)
        address = "127.0.0.1";
    cm_address(&s->addr, address, 0);
    assert_int_equal(rdma_create_id(s->b, &s->listener, s, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s->listener, (struct sockaddr *)&s->addr), 0);
    assert_int_equal(rdma_listen(s->listener, 0), 0);
    cm_address(&s->addr, address, rdma_get_src_port(s->listener));
}

void cm_close(struct cm_sides *s)
{
    if (s->listener)
        assert_int_equal(rdma_destroy_id(s->listener), 0);
    rdma_destroy_event_channel(s->a);
    rdma_destroy_event_channel(s->b);
}

void cm_add_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

struct rdma_cm_id *cm_prepare(struct rdma_event_channel *channel,
                              const struct sockaddr_storage *dst)
{
    struct rdma_cm_id *id;
    struct sockaddr_storage to = *dst;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    cm_add_qp(id);
    return id;
}

void cm_drop(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

struct rdma_cm_event *cm_next(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *ev;
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    if (poll(&p, 1, LIMIT_MS) != 1)
        fail_msg("no event in time");
    assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
    return ev;
}

int cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *ev = cm_next(channel);
    if (ev->event != type)
        fail_msg("got %s, wanted %s", rdma_event_str(ev->event), rdma_event_str(type));
    int status = ev->status;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    return status;
}

struct rdma_cm_id *cm_request(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *ev = cm_next(channel);
    if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        fail_msg("got %s, wanted a request", rdma_event_str(ev->event));
    struct rdma_cm_id *id = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    return id;
}

void cm_quiet(struct rdma_event_channel *channel, int ms)
{
    struct rdma_cm_event *ev;
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    if (poll(&p, 1, ms) == 0)
        return;
    assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
    fail_msg("unexpected %s", rdma_event_str(ev->event));
}

void cm_connect(struct cm_sides *s, struct rdma_cm_id **a, struct rdma_cm_id **b)
{
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    *a = cm_prepare(s->a, &s->addr);
    assert_int_equal(rdma_connect(*a, &param), 0);
    *b = cm_request(s->b);
    cm_add_qp(*b);
    assert_int_equal(rdma_accept(*b, &param), 0);
    assert_int_equal(cm_expect(s->a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s->b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

struct ibv_wc cm_poll(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    time_t end = time(NULL) + LIMIT_MS / 1000;
    do {
        int n = ibv_poll_cq(cq, 1, &wc);
        assert_true(n >= 0);
        if (n)
            return wc;
    } while (time(NULL) < end);
    fail_msg("no completion in time");
    return wc;
}

struct ibv_mr *cm_reg(struct rdma_cm_id *id)
{
    void *buf = calloc(1, CM_BYTES);
    assert_non_null(buf);
    struct ibv_mr *mr = ibv_reg_mr(id->qp->pd, buf, CM_BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    return mr;
}

void cm_unreg(struct ibv_mr *mr)
{
    void *buf = mr->addr;
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(buf);
}

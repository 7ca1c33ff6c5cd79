/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdma.h"

#include "kit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_MS 2000

struct start {
    struct rdma_end end;
    void (*server)(struct rdma_end *);
    int told[2]; /* a pipe: the server's address */
};

void rdma_new_cq(struct rdma_end *e)
{
    KIT_CHECK((e->cq = ibv_create_cq(e->pd->context, e->cqe, NULL, NULL, 0)));
}

/** The objects that all connections share, when the device is known. */
static void objects(struct rdma_end *e, struct ibv_context *context)
{
    if (e->pd)
        return;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    KIT_CHECK((e->pd = ibv_alloc_pd(context)));
    KIT_CHECK((e->channel = ibv_create_comp_channel(context)));
    KIT_CHECK((e->cq = ibv_create_cq(context, e->cqe, NULL, e->channel, 0)));
    e->buf = kit_pages(e->bytes);
    KIT_CHECK((e->mr = ibv_reg_mr(e->pd, e->buf, e->bytes, access)));
}

static void add_qp(struct rdma_end *e, struct rdma_cm_id *id)
{
    objects(e, id->verbs);
    struct ibv_qp_init_attr attr = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = RDMA_WRS,
                .max_recv_wr = RDMA_WRS,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    KIT_CHECK(rdma_create_qp(id, e->pd, &attr) == 0);
}

static void serve(void *arg)
{
    struct start *s = arg;
    struct rdma_end *e = &s->end;
    e->at = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    KIT_CHECK((e->events = rdma_create_event_channel()));
    KIT_CHECK(rdma_create_id(e->events, &e->listener, NULL, RDMA_PS_TCP) == 0);
    KIT_CHECK(rdma_bind_addr(e->listener, (struct sockaddr *)&e->at) == 0);
    KIT_CHECK(rdma_listen(e->listener, 128) == 0);
    e->at.sin_port = rdma_get_src_port(e->listener);
    KIT_CHECK(write(s->told[1], &e->at, sizeof(e->at)) == sizeof(e->at));
    s->server(e);
    for (;;)
        pause();
}

pid_t rdma_start(struct rdma_end *client, void (*server)(struct rdma_end *), void *arg)
{
    client->arg = arg;
    struct start s = {.end = *client, .server = server};
    KIT_CHECK(pipe(s.told) == 0);
    pid_t pid = kit_start(serve, &s);
    close(s.told[1]);
    KIT_CHECK(read(s.told[0], &client->at, sizeof(client->at)) == sizeof(client->at));
    close(s.told[0]);
    KIT_CHECK((client->events = rdma_create_event_channel()));
    return pid;
}

/** The client's next event, which must be of this type. */
static void expect(struct rdma_end *e, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *ev;
    KIT_CHECK(rdma_get_cm_event(e->events, &ev) == 0);
    if (ev->event != type) {
        fprintf(stderr, "%s, status %d, instead of %s\n", rdma_event_str(ev->event), ev->status,
                rdma_event_str(type));
        kit_die("rdma_get_cm_event");
    }
    if (type == RDMA_CM_EVENT_ESTABLISHED) {
        KIT_CHECK(ev->param.conn.private_data_len >= sizeof(e->remote));
        memcpy(&e->remote, ev->param.conn.private_data, sizeof(e->remote));
    }
    KIT_CHECK(rdma_ack_cm_event(ev) == 0);
}

struct rdma_cm_id *rdma_join(struct rdma_end *e)
{
    struct rdma_conn_param param = {.initiator_depth = RDMA_WRS, .responder_resources = RDMA_WRS};
    struct rdma_cm_id *id;
    KIT_CHECK(rdma_create_id(e->events, &id, NULL, RDMA_PS_TCP) == 0);
    KIT_CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&e->at, RESOLVE_MS) == 0);
    expect(e, RDMA_CM_EVENT_ADDR_RESOLVED);
    KIT_CHECK(rdma_resolve_route(id, RESOLVE_MS) == 0);
    expect(e, RDMA_CM_EVENT_ROUTE_RESOLVED);
    add_qp(e, id);
    KIT_CHECK(rdma_connect(id, &param) == 0);
    expect(e, RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

static void accept_request(struct rdma_end *e, struct rdma_cm_id *id)
{
    add_qp(e, id);
    struct rdma_remote own = {.addr = (uintptr_t)e->buf, .rkey = e->mr->rkey};
    struct rdma_conn_param param = {
        .private_data = &own,
        .private_data_len = sizeof(own),
        .initiator_depth = RDMA_WRS,
        .responder_resources = RDMA_WRS,
    };
    rdma_post_recv(e, id, 0, 64);
    KIT_CHECK(rdma_accept(id, &param) == 0);
}

/** Destroys the connection; its flushed work requests leave the CQ. */
static void drop(struct rdma_end *e, struct rdma_cm_id *id)
{
    struct ibv_wc wc;
    rdma_destroy_qp(id);
    KIT_CHECK(rdma_destroy_id(id) == 0);
    while (ibv_poll_cq(e->cq, 1, &wc) > 0)
        ;
}

void rdma_leave(struct rdma_end *e, struct rdma_cm_id *id)
{
    KIT_CHECK(rdma_disconnect(id) == 0);
    expect(e, RDMA_CM_EVENT_DISCONNECTED);
    drop(e, id);
}

/** Takes the next event. @return whether it was ESTABLISHED */
static bool serve_event(struct rdma_end *e)
{
    struct rdma_cm_event *ev;
    KIT_CHECK(rdma_get_cm_event(e->events, &ev) == 0);
    enum rdma_cm_event_type type = ev->event;
    struct rdma_cm_id *id = ev->id;
    KIT_CHECK(rdma_ack_cm_event(ev) == 0);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
        accept_request(e, id);
    else if (type == RDMA_CM_EVENT_DISCONNECTED)
        drop(e, id);
    else
        KIT_CHECK(type == RDMA_CM_EVENT_ESTABLISHED);
    return type == RDMA_CM_EVENT_ESTABLISHED;
}

void rdma_take(struct rdma_end *e, unsigned long n)
{
    while (n > 0)
        n -= serve_event(e);
}

noreturn void rdma_take_and_drop(struct rdma_end *e)
{
    for (;;)
        serve_event(e);
}

void rdma_post_recv(struct rdma_end *e, struct rdma_cm_id *id, size_t at, uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->buf + at, .length = len, .lkey = e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)id, .sg_list = &sge, .num_sge = 1}, *bad;
    KIT_CHECK((errno = ibv_post_recv(id->qp, &wr, &bad)) == 0);
}

void rdma_post(struct rdma_end *e, struct rdma_cm_id *id, enum ibv_wr_opcode opcode, size_t at,
               uint32_t len, uint64_t wr_id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->buf + at, .length = len, .lkey = e->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = e->remote.addr + at, .rkey = e->remote.rkey},
    };
    struct ibv_send_wr *bad;
    KIT_CHECK((errno = ibv_post_send(id->qp, &wr, &bad)) == 0);
}

struct ibv_wc rdma_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    do
        n = ibv_poll_cq(cq, 1, &wc);
    while (n == 0);
    KIT_CHECK(n == 1);
    if (wc.status != IBV_WC_SUCCESS)
        kit_die(ibv_wc_status_str(wc.status));
    return wc;
}

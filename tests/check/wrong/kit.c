/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct end a, b;
struct ibv_qp_cap cap = {
    .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2};
int cqe = 2 * DEPTH;
int access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
uint8_t depth = 1;

/* Some use memory that is gone: the library's own handler is to see to that. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0";
}

const char *__tsan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:atexit_sleep_ms=0";
}

void failed(const char *file, int line)
{
    fprintf(stderr, "%s:%d: failed\n", file, line);
    exit(1);
}

static struct rdma_cm_id *event(struct end *e, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    must(!rdma_get_cm_event(e->events, &event) && event->event == type);
    struct rdma_cm_id *id = event->id;
    must(!rdma_ack_cm_event(event));
    return id;
}

static void make(struct end *e)
{
    struct ibv_context *ctx = e->id->verbs;
    must((e->pd = ibv_alloc_pd(ctx)));
    must((e->channel = ibv_create_comp_channel(ctx)));
    must((e->cq = ibv_create_cq(ctx, cqe, NULL, e->channel, 0)));
    must((e->buffer = calloc(1, BYTES)));
    must((e->mr = ibv_reg_mr(e->pd, e->buffer, BYTES, access_flags)));
    struct ibv_qp_init_attr attr = {
        .send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = cap};
    must(!rdma_create_qp(e->id, e->pd, &attr));
    e->qp = e->id->qp;
}

void ends_open(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_conn_param param = {.initiator_depth = depth, .responder_resources = depth};
    struct rdma_cm_id *listener;
    must((a.events = rdma_create_event_channel()) && (b.events = rdma_create_event_channel()));
    must(!rdma_create_id(b.events, &listener, NULL, RDMA_PS_TCP));
    must(!rdma_bind_addr(listener, (struct sockaddr *)&at) && !rdma_listen(listener, 1));
    at.sin_port = rdma_get_src_port(listener);
    must(!rdma_create_id(a.events, &a.id, NULL, RDMA_PS_TCP));
    must(!rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&at, 2000));
    event(&a, RDMA_CM_EVENT_ADDR_RESOLVED);
    must(!rdma_resolve_route(a.id, 2000));
    event(&a, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make(&a);
    must(!rdma_connect(a.id, &param));
    b.id = event(&b, RDMA_CM_EVENT_CONNECT_REQUEST);
    make(&b);
    must(!rdma_accept(b.id, &param));
    event(&a, RDMA_CM_EVENT_ESTABLISHED);
    event(&b, RDMA_CM_EVENT_ESTABLISHED);
    must(!rdma_destroy_id(listener));
}

static void end_close(struct end *e)
{
    rdma_destroy_qp(e->id);
    must(!rdma_destroy_id(e->id));
    must(!ibv_destroy_cq(e->cq) && !ibv_destroy_comp_channel(e->channel));
    must(!ibv_dereg_mr(e->mr) && !ibv_dealloc_pd(e->pd));
    rdma_destroy_event_channel(e->events);
    free(e->buffer);
}

void ends_close(void)
{
    end_close(&a);
    end_close(&b);
}

void send_it(struct end *e, uint32_t n, unsigned flags)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->buffer, .length = n, .lkey = e->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = n,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = flags,
                             };
    must(!ibv_post_send(e->qp, &wr, &bad));
}

void receive_it(struct end *e, uint32_t n)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->buffer, .length = n, .lkey = e->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1};
    must(!ibv_post_recv(e->qp, &wr, &bad));
}

void read_it(const struct ibv_mr *sink, uint32_t n)
{
    struct ibv_sge sge = {.addr = (uintptr_t)a.buffer, .length = n, .lkey = sink->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
                             };
    must(!ibv_post_send(a.qp, &wr, &bad));
}

struct ibv_wc wait_for(struct end *e)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
        ;
    must(n == 1 && wc.status == IBV_WC_SUCCESS);
    return wc;
}

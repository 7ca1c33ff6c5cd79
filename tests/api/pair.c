/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define POLL_S 10
#define CANARY 0xa5
#define WC_FLAGS                                                                                   \
    (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                 \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define SEND_OPS                                                                                   \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |     \
     IBV_QP_EX_WITH_SEND_WITH_INV)
#define ALL_ACCESS                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static void address(struct sockaddr_storage *s, const char *text, uint16_t port)
{
    memset(s, 0, sizeof(*s));
    if (strchr(text, ':')) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)s;
        six->sin6_family = AF_INET6;
        six->sin6_port = port;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        struct sockaddr_in *four = (struct sockaddr_in *)s;
        four->sin_family = AF_INET;
        four->sin_port = port;
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
}

int side_event(struct side *s, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *ev;
    assert_int_equal(rdma_get_cm_event(s->events, &ev), 0);
    if (ev->event != type)
        print_error("got %s, wanted %s\n", rdma_event_str(ev->event), rdma_event_str(type));
    assert_int_equal(ev->event, type);
    int status = ev->status;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    return status;
}

static struct ibv_cq *make_cq(struct side *s, const struct pair_conf *c)
{
    uint32_t cqe = c->send_wr + c->recv_wr;
    struct ibv_cq_init_attr_ex attr = {
        .cqe = cqe,
        .cq_context = s,
        .channel = s->channel,
        .wc_flags = WC_FLAGS,
        .comp_mask = c->parent ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
        .parent_domain = s->pd,
    };
    if (!c->ex)
        return ibv_create_cq(s->id->verbs, (int)cqe, s, s->channel, 0);
    struct ibv_cq_ex *ex = ibv_create_cq_ex(s->id->verbs, &attr);
    return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}

/** What a test left open. */
static struct pair_conf with_defaults(const struct pair_conf *conf)
{
    struct pair_conf c = *conf;
    if (!c.address)
        c.address = "127.0.0.1";
    c.send_wr = c.send_wr ? c.send_wr : 64;
    c.recv_wr = c.recv_wr ? c.recv_wr : 64;
    c.sge = c.sge ? c.sge : 4;
    c.depth = c.no_reads ? 0 : c.depth ? c.depth : 4;
    return c;
}

static void make_pd(struct side *s, const struct pair_conf *c)
{
    s->pd = ibv_alloc_pd(s->id->verbs);
    assert_non_null(s->pd);
    if (!c->parent)
        return;
    s->under = s->pd;
    s->pd = ibv_alloc_parent_domain(s->id->verbs,
                                    &(struct ibv_parent_domain_init_attr){.pd = s->under});
    assert_non_null(s->pd);
}

static void make_objects(struct side *s, const struct pair_conf *c)
{
    if (!s->pd)
        make_pd(s, c);
    s->channel = ibv_create_comp_channel(s->id->verbs);
    assert_non_null(s->channel);
    s->cq = make_cq(s, c);
    assert_non_null(s->cq);
    s->block = malloc(SIDE_BYTES + 2 * SIDE_CANARY);
    assert_non_null(s->block);
    memset(s->block, CANARY, SIDE_BYTES + 2 * SIDE_CANARY);
    s->buf = s->block + SIDE_CANARY;
    s->mr = ibv_reg_mr(s->pd, s->buf, SIDE_BYTES, c->access ? c->access : ALL_ACCESS);
    assert_non_null(s->mr);
    if (c->srq_wr) {
        struct ibv_srq_init_attr srq = {.attr = {.max_wr = c->srq_wr, .max_sge = c->sge}};
        s->srq = ibv_create_srq(s->pd, &srq);
        assert_non_null(s->srq);
    }
    struct ibv_qp_init_attr_ex attr = {
        .srq = c->srq ? c->srq : s->srq,
        .send_cq = c->send_cq ? c->send_cq : s->cq,
        .recv_cq = c->recv_cq ? c->recv_cq : s->cq,
        .cap = {.max_send_wr = c->send_wr,
                .max_recv_wr = c->recv_wr,
                .max_send_sge = c->sge,
                .max_recv_sge = c->sge,
                .max_inline_data = c->inline_data},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = c->sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (c->ex ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .pd = s->pd,
        .send_ops_flags = SEND_OPS,
    };
    assert_int_equal(rdma_create_qp_ex(s->id, &attr), 0);
    if (c->made)
        c->made(s);
}

void side_open(struct side *s, const struct pair_conf *conf)
{
    struct pair_conf c = with_defaults(conf);
    make_objects(s, &c);
}

static void listen_on(struct pair *p, const char *text)
{
    struct sockaddr_storage addr;
    address(&addr, text, 0);
    assert_int_equal(rdma_create_id(p->b.events, &p->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(p->listener, (struct sockaddr *)&addr), 0);
    assert_int_equal(rdma_listen(p->listener, 8), 0);
    p->port = rdma_get_src_port(p->listener);
}

void pair_open(struct pair *p, const struct pair_conf *conf)
{
    struct pair_conf c = with_defaults(conf);
    struct sockaddr_storage addr;
    struct rdma_cm_event *ev;
    memset(p, 0, sizeof(*p));
    p->a.events = rdma_create_event_channel();
    p->b.events = rdma_create_event_channel();
    assert_non_null(p->a.events);
    assert_non_null(p->b.events);
    listen_on(p, c.address);

    assert_int_equal(rdma_create_id(p->a.events, &p->a.id, NULL, RDMA_PS_TCP), 0);
    address(&addr, c.address, p->port);
    assert_int_equal(rdma_resolve_addr(p->a.id, NULL, (struct sockaddr *)&addr, 2000), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(p->a.id, 2000), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    struct pair_conf ca = c, cb = c;
    if (c.one_way)
        ca.recv_wr = cb.send_wr = 0;
    ca.send_cq = ca.recv_cq = NULL;
    ca.srq = NULL;
    make_objects(&p->a, &ca);
    struct rdma_conn_param param = {.initiator_depth = c.depth, .responder_resources = c.depth};
    assert_int_equal(rdma_connect(p->a.id, &param), 0);

    assert_int_equal(rdma_get_cm_event(p->b.events, &ev), 0);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    p->b.id = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    p->b.borrowed = c.with;
    p->b.pd = c.with ? c.with->pd : NULL;
    make_objects(&p->b, &cb);
    assert_int_equal(rdma_accept(p->b.id, &param), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(side_event(&p->b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void check_canaries(const struct side *s)
{
    for (int i = 0; i < SIDE_CANARY; i++) {
        assert_int_equal(s->block[i], CANARY);
        assert_int_equal(s->block[SIDE_CANARY + SIDE_BYTES + i], CANARY);
    }
}

void side_close(struct side *s)
{
    check_canaries(s);
    rdma_destroy_qp(s->id);
    assert_int_equal(rdma_destroy_id(s->id), 0);
    if (s->srq)
        assert_int_equal(ibv_destroy_srq(s->srq), 0);
    assert_int_equal(ibv_dereg_mr(s->mr), 0);
    assert_int_equal(ibv_destroy_cq(s->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
    if (!s->borrowed)
        assert_int_equal(ibv_dealloc_pd(s->pd), 0);
    if (s->under)
        assert_int_equal(ibv_dealloc_pd(s->under), 0);
    free(s->block);
}

void pair_close(struct pair *p, int connected)
{
    if (connected) {
        assert_int_equal(rdma_disconnect(p->a.id), 0);
        side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
        assert_int_equal(rdma_disconnect(p->b.id), 0);
    }
    side_close(&p->a);
    side_close(&p->b);
    assert_int_equal(rdma_destroy_id(p->listener), 0);
    rdma_destroy_event_channel(p->a.events);
    rdma_destroy_event_channel(p->b.events);
}

struct ibv_wc side_poll(struct side *s)
{
    struct ibv_wc wc;
    time_t end = time(NULL) + POLL_S;
    do {
        int n = ibv_poll_cq(s->cq, 1, &wc);
        assert_true(n >= 0);
        if (n)
            return wc;
    } while (time(NULL) < end);
    fail_msg("no completion in time");
    return wc;
}

void side_poll_none(struct side *s, int ms)
{
    struct ibv_wc wc;
    for (int i = 0; i < ms; i++) {
        assert_int_equal(ibv_poll_cq(s->cq, 1, &wc), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void side_recv(struct side *s, uint64_t wr_id, size_t offset, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + offset, len, s->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    if (s->srq)
        assert_int_equal(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
    else
        assert_int_equal(ibv_post_recv(s->id->qp, &wr, &bad), 0);
}

int side_post(struct side *s, const struct side *peer, enum ibv_wr_opcode op, uint64_t wr_id,
              size_t offset, uint32_t len, size_t remote, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + offset, len, s->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op,
        .send_flags = IBV_SEND_SIGNALED | flags,
        .wr.rdma = {.remote_addr = (uintptr_t)peer->buf + remote, .rkey = peer->mr->rkey},
    };
    struct ibv_send_wr *bad;
    return ibv_post_send(s->id->qp, &wr, &bad);
}

void side_lend(struct side *s, struct loan *l, size_t offset, size_t len, unsigned access)
{
    l->mr = ibv_reg_mr(s->pd, s->buf, SIDE_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    assert_non_null(l->mr);
    l->mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
    assert_non_null(l->mw);
    struct ibv_send_wr *bad, wr = {
                                 .opcode = IBV_WR_BIND_MW,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .bind_mw = {.mw = l->mw,
                                             .rkey = ibv_inc_rkey(l->mw->rkey),
                                             .bind_info = {.mr = l->mr,
                                                           .addr = (uintptr_t)s->buf + offset,
                                                           .length = len,
                                                           .mw_access_flags = access}},
                             };
    assert_int_equal(ibv_post_send(s->id->qp, &wr, &bad), 0);
    assert_int_equal(side_poll(s).status, IBV_WC_SUCCESS);
    l->mw->rkey = wr.bind_mw.rkey;
}

void side_end_loan(struct loan *l)
{
    assert_int_equal(ibv_dealloc_mw(l->mw), 0);
    assert_int_equal(ibv_dereg_mr(l->mr), 0);
}

void *traffic_drive(void *arg)
{
    struct traffic *t = arg;
    unsigned posted = 0, polled = 0;
    for (;;) {
        for (; posted - polled < 16; posted++)
            assert_int_equal(side_post(t->from, &t->to, t->op, posted, 0, TRAFFIC_BYTES, 0, 0), 0);
        struct ibv_wc wc = side_poll(t->from);
        polled++;
        if (wc.status != IBV_WC_SUCCESS)
            break;
        atomic_fetch_add(&t->done, 1);
    }
    while (polled++ < posted)
        side_poll(t->from);
    return NULL;
}

int qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

struct ibv_qp_attr qp_query(struct ibv_qp *qp, int mask)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, mask | IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.cur_qp_state, attr.qp_state);
    assert_int_equal(qp->state, attr.qp_state);
    return attr;
}

void qp_post_recv(struct ibv_qp *qp, uint64_t wr_id)
{
    struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

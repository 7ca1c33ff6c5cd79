/* SPDX-License-Identifier: BSD-2-Clause */
/* A connected queue pair through the public API: draining, the error state, asynchronous events. */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

/* ---- the error state ---- */

static void expect_flushed(struct side *s, unsigned sends, unsigned recvs)
{
    for (unsigned i = 0; i < sends + recvs; i++) {
        struct ibv_wc wc = side_poll(s);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.wr_id, i < sends ? i : 100 + i - sends);
    }
    side_poll_none(s, 5);
}

static void the_error_state_flushes_once_and_in_order(void **state)
{
    struct pair p;
    struct ibv_send_wr wr[4] = {{0}}, *bad;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_qp *qp = p.a.id->qp;
    for (unsigned i = 0; i < 12; i++)
        qp_post_recv(qp, 100 + i);
    assert_int_equal(qp_to_state(qp, IBV_QPS_SQD), 0); /* so that nothing of it goes out */
    for (unsigned i = 0; i < 12; i++) {
        wr[0] = (struct ibv_send_wr){
            .wr_id = i, .opcode = IBV_WR_SEND, .send_flags = i % 2 ? IBV_SEND_SIGNALED : 0};
        assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
    }
    assert_int_equal(qp_to_state(qp, IBV_QPS_ERR), 0);
    assert_int_equal(qp_query(qp, IBV_QP_STATE).qp_state, IBV_QPS_ERR);
    expect_flushed(&p.a, 12, 12);
    assert_int_equal(qp_to_state(qp, IBV_QPS_ERR), 0);
    side_poll_none(&p.a, 5);

    /* A list, unsignaled: that it failed is told all the same. */
    for (unsigned i = 0; i < 4; i++)
        wr[i] = (struct ibv_send_wr){
            .wr_id = i, .opcode = IBV_WR_SEND, .next = i < 3 ? &wr[i + 1] : NULL};
    assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
    qp_post_recv(qp, 100);
    expect_flushed(&p.a, 4, 1);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    pair_close(&p, 0);
}

static void a_qp_in_error_does_not_connect(void **state)
{
    struct pair p;
    struct rdma_cm_id *id;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_qp *qp = p.a.id->qp;
    assert_int_equal(qp_to_state(qp, IBV_QPS_ERR), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(qp_to_state(qp, IBV_QPS_INIT), EINVAL);

    struct rdma_conn_param param = {.qp_num = qp->qp_num};
    struct sockaddr *to = rdma_get_peer_addr(p.a.id);
    assert_int_equal(rdma_create_id(p.a.events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, to, 2000), 0);
    assert_int_equal(side_event(&p.a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(side_event(&p.a, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    assert_int_equal(rdma_connect(id, &param), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
    pair_close(&p, 0);
}

static struct ibv_qp *make_qp(struct rdma_cm_id *id, struct side *s)
{
    struct ibv_qp_init_attr init = {.send_cq = s->cq,
                                    .recv_cq = s->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
    assert_int_equal(rdma_create_qp(id, s->pd, &init), 0);
    return id->qp;
}

/** A QP that the program moves to error during the handshake ends the attempt. */
static void a_qp_that_fails_while_it_connects(void **state)
{
    struct pair p;
    struct rdma_cm_id *id, *peer;
    struct rdma_cm_event *ev;
    struct rdma_conn_param param = {0};
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(rdma_create_id(p.a.events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, rdma_get_peer_addr(p.a.id), 2000), 0);
    assert_int_equal(side_event(&p.a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(side_event(&p.a, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    struct ibv_qp *qp = make_qp(id, &p.a);
    qp_post_recv(qp, 1);
    assert_int_equal(rdma_connect(id, &param), 0);
    assert_int_equal(rdma_get_cm_event(p.b.events, &ev), 0);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    peer = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);

    assert_int_equal(qp_to_state(qp, IBV_QPS_ERR), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_WR_FLUSH_ERR);
    make_qp(peer, &p.b);
    assert_int_equal(rdma_accept(peer, &param), 0);
    assert_int_equal(side_event(&p.a, RDMA_CM_EVENT_CONNECT_ERROR), -ECONNABORTED);
    assert_int_equal(qp_query(qp, IBV_QP_STATE).qp_state, IBV_QPS_ERR);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(id);
    rdma_destroy_qp(peer);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(peer), 0);
    pair_close(&p, 1);
}

/* ---- draining ---- */

static void read_async_without_waiting(struct ibv_context *context)
{
    int flags = fcntl(context->async_fd, F_GETFL);
    assert_int_equal(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
}

static void no_async_event(struct ibv_context *context)
{
    struct ibv_async_event ev;
    assert_int_equal(ibv_get_async_event(context, &ev), -1);
    assert_int_equal(errno, EAGAIN);
}

static int drain(struct ibv_qp *qp, bool notify)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

#define BIG 40 /* Sends of 1 MB: more than sockets and held messages take */

static void a_drained_queue_waits_for_rts(void **state)
{
    struct pair p;
    (void)state;
    for (int notify = 0; notify < 2; notify++) {
        pair_open(&p, &(struct pair_conf){0});
        struct ibv_qp *qp = p.a.id->qp;
        read_async_without_waiting(qp->context);
        for (unsigned i = 0; i < BIG; i++)
            assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, SIDE_BYTES, 0, 0), 0);
        assert_int_equal(drain(qp, notify), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 99, 0, 8, 0, 0), 0);
        struct ibv_qp_attr attr = qp_query(qp, IBV_QP_STATE);
        assert_int_equal(attr.qp_state, IBV_QPS_SQD);
        assert_int_equal(attr.sq_draining, 1);
        assert_int_equal(attr.en_sqd_async_notify, notify);
        no_async_event(qp->context);

        for (unsigned i = 0; i < BIG; i++)
            side_recv(&p.b, i, 0, SIDE_BYTES);
        for (unsigned i = 0; i < BIG; i++)
            assert_int_equal(side_poll(&p.a).wr_id, i);
        for (unsigned i = 0; i < BIG; i++)
            assert_int_equal(side_poll(&p.b).wr_id, i);
        side_poll_none(&p.a, 10);
        assert_int_equal(qp_query(qp, IBV_QP_STATE).sq_draining, 0);
        if (notify) {
            struct ibv_async_event ev;
            assert_int_equal(ibv_get_async_event(qp->context, &ev), 0);
            assert_int_equal(ev.event_type, IBV_EVENT_SQ_DRAINED);
            assert_ptr_equal(ev.element.qp, qp);
            ibv_ack_async_event(&ev);
        }
        no_async_event(qp->context);
        assert_int_equal(drain(qp, notify), EINVAL); /* only from RTS */

        assert_int_equal(qp_to_state(qp, IBV_QPS_RTS), 0);
        assert_int_equal(qp_query(qp, IBV_QP_STATE).qp_state, IBV_QPS_RTS);
        assert_int_equal(side_poll(&p.a).wr_id, 99);
        no_async_event(qp->context);
        pair_close(&p, 1);
    }
}

static void an_idle_queue_is_drained_at_once(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    read_async_without_waiting(p.a.id->verbs);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(drain(p.a.id->qp, true), 0);
        assert_int_equal(ibv_get_async_event(p.a.id->verbs, &ev), 0);
        assert_int_equal(ev.event_type, IBV_EVENT_SQ_DRAINED);
        ibv_ack_async_event(&ev);
        /* The peer is served meanwhile. */
        assert_int_equal(side_post(&p.b, &p.a, IBV_WR_RDMA_READ, 7, 0, 1000, 0, 0), 0);
        assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_RTS), 0);
    }
    no_async_event(p.a.id->verbs);
    pair_close(&p, 1);
}

/* ---- events ---- */

static atomic_int destroyed;

static void *destroy(void *qp)
{
    assert_int_equal(ibv_destroy_qp(qp), 0);
    atomic_store(&destroyed, 1);
    return NULL;
}

static void destroy_waits_for_acknowledgement(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    pthread_t thread;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_qp *qp = p.a.id->qp;
    assert_int_equal(drain(qp, true), 0);
    assert_int_equal(ibv_get_async_event(qp->context, &ev), 0);
    p.a.id->qp = NULL;
    atomic_store(&destroyed, 0);
    assert_int_equal(pthread_create(&thread, NULL, destroy, qp), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED); /* it is at work */
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(&p.b, 20);
    assert_int_equal(atomic_load(&destroyed), 0);
    ibv_ack_async_event(&ev);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&destroyed), 1);
    pair_close(&p, 0);
}

/** What goes wrong, and what each side hears of it. */
static const struct {
    const char *what;
    enum ibv_wr_opcode op;
    bool bad_lkey, bad_rkey, bad_sink, too_long;
    enum ibv_event_type a, b;
} faults[] = {
    {"remote key", IBV_WR_RDMA_WRITE, .bad_rkey = true, .a = IBV_EVENT_QP_FATAL,
     .b = IBV_EVENT_QP_ACCESS_ERR},
    {"remote key of a read", IBV_WR_RDMA_READ, .bad_rkey = true, .a = IBV_EVENT_QP_FATAL,
     .b = IBV_EVENT_QP_ACCESS_ERR},
    {"local key", IBV_WR_SEND, .bad_lkey = true, .a = IBV_EVENT_QP_REQ_ERR,
     .b = IBV_EVENT_QP_FATAL},
    {"receive too short", IBV_WR_SEND, .too_long = true, .a = IBV_EVENT_QP_FATAL,
     .b = IBV_EVENT_QP_FATAL},
    {"receive with a bad key", IBV_WR_SEND, .bad_sink = true, .a = IBV_EVENT_QP_FATAL,
     .b = IBV_EVENT_QP_ACCESS_ERR},
};

static void each_fault_raises_its_event(void **state)
{
    struct pair p;
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        pair_open(&p, &(struct pair_conf){0});
        read_async_without_waiting(p.a.id->verbs);
        struct ibv_mr mr_a = *p.a.mr, mr_b = *p.b.mr, mr_sink = *p.b.mr;
        struct side a = p.a, b = p.b, sink = p.b;
        a.mr = &mr_a;
        b.mr = &mr_b;
        sink.mr = &mr_sink;
        mr_a.lkey ^= faults[i].bad_lkey ? 0x100 : 0;
        mr_b.rkey ^= faults[i].bad_rkey ? 0x100 : 0;
        mr_sink.lkey ^= faults[i].bad_sink ? 0x100 : 0;
        side_recv(&sink, 1, 0, faults[i].too_long ? 8 : 64);
        assert_int_equal(side_post(&a, &b, faults[i].op, 2, 0, 64, 0, 0), 0);
        side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        enum ibv_event_type got[2] = {0, 0};
        struct ibv_async_event ev;
        while (ibv_get_async_event(p.a.id->verbs, &ev) == 0) {
            int side = ev.element.qp == p.b.id->qp;
            assert_int_equal(got[side], 0);
            got[side] = ev.event_type;
            ibv_ack_async_event(&ev);
        }
        if (got[0] != faults[i].a || got[1] != faults[i].b)
            fail_msg("%s: %s and %s", faults[i].what, ibv_event_type_str(got[0]),
                     ibv_event_type_str(got[1]));
        pair_close(&p, 0);
    }
}

/* ---- the end of a connection ---- */

#define ENDS 400

struct runner {
    struct ibv_cq *cq;
    atomic_bool stop;
};

/** Another thread of the program, that makes progress for all. */
static void *run(void *arg)
{
    struct runner *r = arg;
    struct ibv_wc wc;
    while (!atomic_load(&r->stop))
        ibv_poll_cq(r->cq, 1, &wc);
    return NULL;
}

/** Whoever finds that its work is flushed can find out why. */
static void the_event_is_there_before_the_flush(void **state)
{
    (void)state;
    for (int i = 0; i < ENDS; i++) {
        struct pair p;
        struct runner r = {0};
        pthread_t t;
        pair_open(&p, &(struct pair_conf){0});
        r.cq = p.a.cq;
        side_recv(&p.b, 1, 0, 64);
        assert_int_equal(pthread_create(&t, NULL, run, &r), 0);
        assert_int_equal(rdma_disconnect(p.a.id), 0);
        assert_int_equal(side_poll(&p.b).status, IBV_WC_WR_FLUSH_ERR);
        bool there = poll(&(struct pollfd){.fd = p.b.events->fd, .events = POLLIN}, 1, 0) == 1;
        atomic_store(&r.stop, true);
        assert_int_equal(pthread_join(t, NULL), 0);
        if (!there)
            fail_msg("no event at end %d", i);
        assert_int_equal(side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        pair_close(&p, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_state_flushes_once_and_in_order),
        cmocka_unit_test(a_qp_in_error_does_not_connect),
        cmocka_unit_test(a_qp_that_fails_while_it_connects),
        cmocka_unit_test(a_drained_queue_waits_for_rts),
        cmocka_unit_test(an_idle_queue_is_drained_at_once),
        cmocka_unit_test(destroy_waits_for_acknowledgement),
        cmocka_unit_test(each_fault_raises_its_event),
        cmocka_unit_test(the_event_is_there_before_the_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

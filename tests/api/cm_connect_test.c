/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections begin: who accepts, when, with which QP, and what is refused. */
#include "cm_kit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void recv_one(struct ibv_qp *qp, struct ibv_mr *mr)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, CM_BYTES, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void send_one(struct ibv_qp *qp, struct ibv_mr *mr, const char *text)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, CM_BYTES, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    strcpy(mr->addr, text);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void check_received(struct ibv_cq *cq, struct ibv_mr *mr, const char *text)
{
    struct ibv_wc wc = cm_poll(cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_string_equal(mr->addr, text);
}

/* ---- accept ---- */

struct acceptor {
    struct rdma_cm_id *id;
    int result;
};

static void *accept_there(void *arg)
{
    struct acceptor *x = arg;
    x->result = rdma_accept(x->id, NULL);
    return NULL;
}

static void another_thread_accepts_late(void **state)
{
    struct cm_sides s;
    pthread_t t;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct acceptor x = {.id = cm_request(s.b)};
    cm_quiet(s.a, 300);
    cm_add_qp(x.id);
    assert_int_equal(pthread_create(&t, NULL, accept_there, &x), 0);
    pthread_join(t, NULL);
    assert_int_equal(x.result, 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(rdma_accept(x.id, NULL), -1); /* once only */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_reject(x.id, NULL, 0), -1);
    assert_int_equal(errno, EINVAL);
    cm_drop(a);
    cm_drop(x.id);
    cm_close(&s);
}

static void the_peer_is_gone_before_the_accept(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_drop(a);
    usleep(50000);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), -1);
    assert_int_equal(errno, ECONNRESET);
    cm_quiet(s.b, 50);
    cm_drop(b);

    /* The listener goes on. */
    struct rdma_cm_id *c, *d;
    cm_connect(&s, &c, &d);
    cm_drop(c);
    cm_drop(d);
    cm_close(&s);
}

static void an_unanswered_request_is_rejected_with_its_id(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(rdma_destroy_id(b), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    /* Its QP is in error: what is posted completes flushed. */
    struct ibv_mr *mr = cm_reg(a);
    recv_one(a->qp, mr);
    assert_int_equal(cm_poll(a->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rdma_connect(a, NULL), -1);
    assert_int_equal(errno, EINVAL);
    cm_unreg(mr);
    cm_drop(a);
    cm_close(&s);
}

/** The number in the next event, which must be @p type with @p text as private data. */
static uint32_t number_told(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
                            const char *text, struct rdma_cm_id **id)
{
    struct rdma_cm_event *event = cm_next(channel);
    assert_int_equal(event->event, type);
    assert_int_equal(event->param.conn.private_data_len, text ? strlen(text) : 0);
    if (text)
        assert_memory_equal(event->param.conn.private_data, text, strlen(text));
    if (id)
        *id = event->id;
    uint32_t number = event->param.conn.qp_num;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    return number;
}

/* A Request goes out before either side knows who the other is. */
static void each_side_is_told_the_queue_pair_of_the_other(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *b;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_conn_param asks = {.private_data = "ping", .private_data_len = 4};
    struct rdma_conn_param says = {.private_data = "welcome", .private_data_len = 7};
    for (int silent = 0; silent < 2; silent++) {
        struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
        assert_int_equal(rdma_connect(a, &asks), 0);
        assert_int_equal(number_told(s.b, RDMA_CM_EVENT_CONNECT_REQUEST, "ping", &b), 0);
        cm_add_qp(b);
        assert_int_equal(rdma_accept(b, silent ? NULL : &says), 0);
        assert_int_equal(
            number_told(s.a, RDMA_CM_EVENT_ESTABLISHED, silent ? NULL : "welcome", NULL),
            b->qp->qp_num);
        assert_int_equal(number_told(s.b, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL), a->qp->qp_num);
        cm_drop(a);
        assert_int_equal(number_told(s.b, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL), 0);
        cm_drop(b);
    }
    cm_close(&s);
}

/* ---- data around the beginning ---- */

static void the_passive_side_sends_first(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    struct ibv_mr *ma = cm_reg(a);
    recv_one(a->qp, ma);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    struct ibv_mr *mb = cm_reg(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    send_one(b->qp, mb, "from accept's return on");
    check_received(a->recv_cq, ma, "from accept's return on");
    assert_int_equal(cm_poll(b->send_cq).status, IBV_WC_SUCCESS);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_unreg(ma);
    cm_unreg(mb);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

static void what_was_posted_goes_out_before_the_disconnect(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    (void)state;
    cm_open(&s, NULL);
    for (int i = 0; i < 20; i++) {
        cm_connect(&s, &a, &b);
        struct ibv_mr *ma = cm_reg(a), *mb = cm_reg(b);
        recv_one(b->qp, mb);
        send_one(a->qp, ma, "the last word");
        if (i % 2)
            assert_int_equal(rdma_disconnect(a), 0);
        else
            cm_drop(a);
        check_received(b->recv_cq, mb, "the last word");
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        if (i % 2) {
            assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
            assert_int_equal(cm_poll(a->send_cq).status, IBV_WC_SUCCESS);
            recv_one(a->qp, ma);
            assert_int_equal(cm_poll(a->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
            cm_drop(a);
        }
        cm_unreg(ma);
        cm_unreg(mb);
        cm_drop(b);
    }
    cm_close(&s);
}

/* ---- attributes ---- */

static void set_ack_timeout(struct rdma_cm_id *id, uint8_t timeout)
{
    assert_int_equal(
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout),
        0);
}

static int timeout_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_TIMEOUT, &init), 0);
    return attr.timeout;
}

static void the_queue_pair_tells_the_ack_timeout(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *c, *d;
    (void)state;
    cm_open(&s, NULL);
    set_ack_timeout(s.listener, 3); /* requests do not inherit it */
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    set_ack_timeout(a, 1);
    set_ack_timeout(a, 21);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    set_ack_timeout(b, 7);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    set_ack_timeout(b, 9); /* too late for this connection */
    assert_int_equal(timeout_of(a->qp), 21);
    assert_int_equal(timeout_of(b->qp), 7);
    cm_connect(&s, &c, &d);
    assert_int_equal(timeout_of(c->qp), 0);
    assert_int_equal(timeout_of(d->qp), 0);
    cm_drop(a);
    cm_drop(b);
    cm_drop(c);
    cm_drop(d);
    cm_close(&s);
}

/* ---- queue pairs of the program ---- */

struct own_qp {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static void own_qp_open(struct own_qp *o, struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    o->pd = ibv_alloc_pd(id->verbs);
    o->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
    assert_non_null(o->pd);
    assert_non_null(o->cq);
    struct ibv_qp_init_attr init = {
        .send_cq = o->cq,
        .recv_cq = o->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    o->qp = ibv_create_qp(o->pd, &init);
    assert_non_null(o->qp);
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(ibv_modify_qp(o->qp, &attr, mask), 0);
}

static void own_qp_close(struct own_qp *o)
{
    assert_int_equal(ibv_destroy_qp(o->qp), 0);
    assert_int_equal(ibv_destroy_cq(o->cq), 0);
    assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

static void queue_pairs_that_the_id_does_not_know(void **state)
{
    struct cm_sides s;
    struct own_qp oa, ob;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    rdma_destroy_qp(a);
    own_qp_open(&oa, a);
    struct rdma_conn_param param = {.qp_num = oa.qp->qp_num ^ 1};
    assert_int_equal(rdma_connect(a, &param), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_connect(a, NULL), -1);
    assert_int_equal(errno, EINVAL);
    param.qp_num = oa.qp->qp_num;
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    own_qp_open(&ob, b);
    param.qp_num = ob.qp->qp_num;
    assert_int_equal(rdma_accept(b, &param), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(ibv_query_qp(oa.qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(rdma_disconnect(b), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    own_qp_close(&oa);
    own_qp_close(&ob);
    assert_int_equal(rdma_destroy_id(a), 0);
    assert_int_equal(rdma_destroy_id(b), 0);
    cm_close(&s);
}

static void a_queue_pair_connects_once(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    assert_int_equal(rdma_disconnect(a), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    struct rdma_cm_id *c = cm_prepare(s.a, &s.addr);
    struct rdma_conn_param param = {.qp_num = a->qp->qp_num};
    rdma_destroy_qp(c);
    assert_int_equal(rdma_connect(c, &param), -1);
    assert_int_equal(errno, EINVAL);
    cm_drop(a);
    cm_drop(b);
    cm_drop(c);
    cm_close(&s);
}

/* ---- listeners ---- */

static void connections_outlive_their_listener(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *c, *d;
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    assert_int_equal(rdma_destroy_id(s.listener), 0);

    /* Another listens on the same port while the connection lives. */
    assert_int_equal(rdma_create_id(s.b, &s.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s.listener, (struct sockaddr *)&s.addr), 0);
    assert_int_equal(rdma_listen(s.listener, 1), 0);
    cm_connect(&s, &c, &d);

    struct ibv_mr *ma = cm_reg(a), *mb = cm_reg(b);
    recv_one(b->qp, mb);
    send_one(a->qp, ma, "still here");
    check_received(b->recv_cq, mb, "still here");
    cm_unreg(ma);
    cm_unreg(mb);
    cm_drop(a);
    cm_drop(b);
    cm_drop(c);
    cm_drop(d);
    cm_close(&s);
}

static void nobody_listens(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
    s.listener = NULL;
    for (int i = 0; i < 5; i++) {
        struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
        assert_int_equal(rdma_connect(a, NULL), 0);
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
        cm_drop(a);
    }
    cm_close(&s);
}

/* More at once than the backlog: those over it are refused, the others wait for the program. */
static void a_full_backlog_refuses(void **state)
{
    enum { N = 24, BACKLOG = 4 };
    struct cm_sides s;
    struct rdma_cm_id *a[N], *b[BACKLOG];
    (void)state;
    cm_open(&s, NULL);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
    assert_int_equal(rdma_create_id(s.b, &s.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s.listener, (struct sockaddr *)&s.addr), 0);
    assert_int_equal(rdma_listen(s.listener, BACKLOG), 0);
    for (int i = 0; i < N; i++)
        a[i] = cm_prepare(s.a, &s.addr);
    for (int i = 0; i < N; i++)
        assert_int_equal(rdma_connect(a[i], NULL), 0);
    for (int i = 0; i < N - BACKLOG; i++)
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    for (int i = 0; i < BACKLOG; i++)
        b[i] = cm_request(s.b);
    struct rdma_cm_id *late = cm_prepare(s.a, &s.addr); /* they count until they are decided on */
    assert_int_equal(rdma_connect(late, NULL), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(late);
    for (int i = 0; i < BACKLOG; i++) {
        cm_add_qp(b[i]);
        assert_int_equal(rdma_accept(b[i], NULL), 0);
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    }
    cm_quiet(s.b, 20);
    for (int i = 0; i < N; i++)
        cm_drop(a[i]);
    for (int i = 0; i < BACKLOG; i++)
        cm_drop(b[i]);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_thread_accepts_late),
        cmocka_unit_test(the_peer_is_gone_before_the_accept),
        cmocka_unit_test(an_unanswered_request_is_rejected_with_its_id),
        cmocka_unit_test(each_side_is_told_the_queue_pair_of_the_other),
        cmocka_unit_test(the_passive_side_sends_first),
        cmocka_unit_test(what_was_posted_goes_out_before_the_disconnect),
        cmocka_unit_test(the_queue_pair_tells_the_ack_timeout),
        cmocka_unit_test(queue_pairs_that_the_id_does_not_know),
        cmocka_unit_test(a_queue_pair_connects_once),
        cmocka_unit_test(connections_outlive_their_listener),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_full_backlog_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

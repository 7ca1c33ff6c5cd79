/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits in silence is told of in the log after a second, and what waits no longer is not. */
#include "cm_kit.h"
#include "logfile.h"
#include "pair.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LINE  1200
#define TRIES 1000
#define MS    20

/** Fails the test if no line of the log matches in 20 s. */
static void expect_told(const char *pattern)
{
    int tries = 0;
    while (!log_has(pattern) && ++tries < TRIES)
        poll(NULL, 0, MS);
    if (tries == TRIES)
        fail_msg("the log does not say: %s", pattern);
}

static void send_without_receive(void **state)
{
    struct pair p;
    char text[LINE];
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 100, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    snprintf(
        text, sizeof(text),
        "anywarp: ibv_post_recv: no receive is posted, and a message of the peer waits for one, "
        "QP 0x%06x\n",
        p.b.id->qp->qp_num);
    expect_told(text);
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

static void send_to_shared_queue(void **state)
{
    struct pair p;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){.srq_wr = 4});
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 100, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    expect_told("anywarp: ibv_post_srq_recv: no receive is posted, and a message *\n");
    pair_close(&p, 1);
}

/* ---- acknowledgements ---- */

static void *destroy_cq(void *cq)
{
    assert_int_equal(ibv_destroy_cq(cq), 0);
    return NULL;
}

static void cq_event(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    void *context;
    pthread_t t;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_comp_channel *channel = ibv_create_comp_channel(p.a.id->verbs);
    struct ibv_cq *extra = ibv_create_cq(p.a.id->verbs, 4, NULL, channel, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = extra, .recv_cq = extra, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.a.pd, &attr);
    assert_true(extra && qp);
    assert_int_equal(ibv_req_notify_cq(extra, 0), 0);
    struct ibv_recv_wr wr = {0}, *bad;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(qp, &err, IBV_QP_STATE), 0);
    assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(pthread_create(&t, NULL, destroy_cq, extra), 0);
    expect_told("anywarp: ibv_destroy_cq: waits for acknowledgements of 1 completion events *\n");
    ibv_ack_cq_events(extra, 1);
    assert_int_equal(pthread_join(t, NULL), 0);
    ibv_destroy_comp_channel(channel);
    pair_close(&p, 1);
}

static void *destroy_qp(void *qp)
{
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return NULL;
}

/** A QP with an SRQ that goes to ERR raises LAST_WQE_REACHED. */
static void async_event(void **state)
{
    struct pair p;
    struct ibv_async_event event;
    pthread_t t;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){.srq_wr = 4});
    struct ibv_qp_init_attr attr = {.send_cq = p.a.cq,
                                    .recv_cq = p.a.cq,
                                    .srq = p.a.srq,
                                    .cap = {1, 0, 1, 0, 0},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.a.pd, &attr);
    struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(qp, &err, IBV_QP_STATE), 0);
    assert_int_equal(ibv_get_async_event(qp->context, &event), 0);
    assert_ptr_equal(event.element.qp, qp);
    assert_int_equal(pthread_create(&t, NULL, destroy_qp, qp), 0);
    expect_told("anywarp: ibv_destroy_qp: waits for acknowledgements of 1 asynchronous events *\n");
    ibv_ack_async_event(&event);
    assert_int_equal(pthread_join(t, NULL), 0);
    pair_close(&p, 1);
}

static void *destroy_id(void *id)
{
    assert_int_equal(rdma_destroy_id(id), 0);
    return NULL;
}

static void cm_event(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *id;
    pthread_t t;
    (void)state;
    log_clear();
    cm_open(&s, NULL);
    assert_int_equal(rdma_create_id(s.a, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s.addr, 1000), 0);
    struct rdma_cm_event *event = cm_next(s.a);
    assert_int_equal(pthread_create(&t, NULL, destroy_id, id), 0);
    expect_told("anywarp: rdma_destroy_id*: waits for acknowledgements of 1 events *\n");
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    cm_close(&s);
}

/* ---- completion events ---- */

static void *take_event(void *channel)
{
    struct ibv_cq *cq;
    void *context;
    assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

/** Side b waits for an event of its own, until side a's Send comes, for which it is armed then. */
static void waits_until(struct pair *p, const char *line)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, take_event, p->b.channel), 0);
    if (line)
        expect_told(line);
    else
        poll(NULL, 0, 1500);
    assert_int_equal(ibv_req_notify_cq(p->b.cq, 0), 0);
    side_recv(&p->b, 9, 0, 100);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
}

static void not_armed(void **state)
{
    struct pair p;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    waits_until(&p, "anywarp: ibv_get_cq_event: no completion queue of the channel is armed, and 1 "
                    "completions wait there (ibv_req_notify_cq, then ibv_poll_cq)\n");
    pair_close(&p, 1);
}

static void nothing_posted(void **state)
{
    struct pair p;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    waits_until(&p,
                "anywarp: ibv_get_cq_event: nothing is posted that would complete with an event "
                "(ibv_post_recv, IBV_SEND_SIGNALED)\n");
    pair_close(&p, 1);
}

static void not_signaled(void **state)
{
    struct pair p;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    assert_int_equal(ibv_post_send(p.b.id->qp, &wr, &bad), 0);
    waits_until(&p, "anywarp: ibv_get_cq_event: nothing is posted that *; the last send was posted "
                    "without IBV_SEND_SIGNALED (*)\n");
    pair_close(&p, 1);
}

static void not_solicited(void **state)
{
    struct pair p;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    waits_until(&p, "anywarp: ibv_get_cq_event: armed for solicited events only, and 1 completions "
                    "wait that are none (*)\n");
    pair_close(&p, 1);
}

/** Who is armed for what is posted waits in silence. */
static void a_good_wait(void **state)
{
    struct pair p;
    (void)state;
    log_clear();
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    side_recv(&p.b, 1, 0, 100);
    waits_until(&p, NULL);
    assert_false(log_has("*"));
    pair_close(&p, 1);
}

/* ---- requests ---- */

static void unanswered_request(void **state)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    (void)state;
    log_clear();
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, &param), 0);
    expect_told("anywarp: rdma_listen: 1 connection requests wait for an answer *\n");
    assert_true(stat_has("  listener 127.0.0.1:* waiting 1/*\n"));
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(rdma_reject(b, NULL, 0), 0);
    assert_true(stat_has("  listener 127.0.0.1:* waiting 0/*\n"));
    cm_expect(s.a, RDMA_CM_EVENT_REJECTED);
    rdma_destroy_id(b);
    cm_drop(a);
    cm_close(&s);
    assert_false(stat_has("  listener *"));
}

/** Connections, Sends and events that take their course leave no line. */
static void nothing_to_tell(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    struct pair p;
    (void)state;
    log_clear();
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 100, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    poll(NULL, 0, 1500);
    assert_false(log_has("*wait*"));
    pair_close(&p, 1);
    cm_drop(a);
    cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED);
    cm_drop(b);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_without_receive),
        cmocka_unit_test(send_to_shared_queue),
        cmocka_unit_test(cq_event),
        cmocka_unit_test(async_event),
        cmocka_unit_test(cm_event),
        cmocka_unit_test(not_armed),
        cmocka_unit_test(nothing_posted),
        cmocka_unit_test(not_signaled),
        cmocka_unit_test(not_solicited),
        cmocka_unit_test(a_good_wait),
        cmocka_unit_test(unanswered_request),
        cmocka_unit_test(nothing_to_tell),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}

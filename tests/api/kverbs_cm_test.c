/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's connection manager: ids and their handlers, who may destroy what, and storms of
 * that. */
#include "kverbs_kit.h"

#include <errno.h>
#include <string.h>

#include <linux/delay.h>
#include <linux/kthread.h>

static void connect_and_disconnect(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    assert_ptr_equal(p.a.id->device, p.device);
    assert_ptr_equal(p.b.id->device, p.device);
    assert_int_equal(p.a.id->port_num, 1);
    assert_int_equal(p.a.id->ps, RDMA_PS_TCP);
    const struct sockaddr_in *to = (struct sockaddr_in *)&p.a.id->route.addr.dst_addr;
    const struct sockaddr_in *at = (struct sockaddr_in *)&p.listener->route.addr.src_addr;
    assert_int_equal(to->sin_port, at->sin_port);
    assert_int_equal(((struct sockaddr_in *)&p.b.id->route.addr.src_addr)->sin_port, at->sin_port);
    assert_int_equal(rdma_disconnect(p.a.id), 0);
    kit_wait(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    kit_wait(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_string_equal(rdma_event_msg(RDMA_CM_EVENT_DISCONNECTED), "RDMA_CM_EVENT_DISCONNECTED");
    kit_close(&p);
}

static char greeting[32];
static int greeting_length;

static int take_greeting(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct pair *p = id->context;
    greeting_length = event->param.conn.private_data_len;
    memcpy(greeting, event->param.conn.private_data, sizeof greeting);
    assert_int_equal(rdma_reject(id, "no", 2), 0);
    complete(&p->requested);
    return 1; /* the new id goes, the listener stays */
}

static int on_rejected(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct end *e = id->context;
    u8 n;
    const char *why = rdma_consumer_reject_data(id, event, &n);
    assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
    assert_true(rdma_is_consumer_reject(id, event->status));
    assert_string_equal(rdma_reject_msg(id, event->status), "refused");
    assert_true(n >= 2);
    assert_memory_equal(why, "no", 2);
    complete(&e->got[RDMA_CM_EVENT_REJECTED]);
    return 0;
}

static void a_request_that_is_rejected(void **state)
{
    (void)state;
    struct pair p = {.options = {.signal = IB_SIGNAL_REQ_WR}};
    kit_listen(&p);
    p.listener->event_handler = take_greeting;
    kit_resolve(&p, &p.a);
    p.a.id->event_handler = on_rejected;
    kit_make(&p.a, NULL, &p.options);
    struct rdma_conn_param param = {.private_data = "good day", .private_data_len = 9};
    assert_int_equal(rdma_connect(p.a.id, &param), 0);
    kit_wait(&p.a, RDMA_CM_EVENT_REJECTED);
    assert_true(greeting_length >= 9);
    assert_string_equal(greeting, "good day");
    kit_close(&p);
}

/* A handler that returns other than 0 has its id destroyed: the other end sees it go. */
static void a_handler_gives_up_its_id(void **state)
{
    (void)state;
    struct pair p = {.options = {.signal = IB_SIGNAL_REQ_WR}};
    kit_listen(&p);
    kit_resolve(&p, &p.a);
    kit_make(&p.a, NULL, &p.options);
    p.b.at = RDMA_CM_EVENT_ESTABLISHED;
    p.b.returns = -1;
    struct rdma_conn_param param = {.responder_resources = 1};
    assert_int_equal(rdma_connect(p.a.id, &param), 0);
    kit_wait(&p.b, RDMA_CM_EVENT_ESTABLISHED);
    kit_wait(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    /* Its QP is left, and forgets the id. */
    kit_close_rest(&p.b);
    kit_close(&p);
}

struct contest {
    struct completion began;
    bool destroys;
};

static int give_up_late(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    struct contest *c = id->context;
    (void)event;
    complete(&c->began);
    while (!READ_ONCE(c->destroys))
        cond_resched();
    msleep(1); /* who destroys the id waits for this handler by now */
    return -1;
}

/* A handler gives up the id that another thread destroys: one of them does it. */
static void an_id_that_two_destroy(void **state)
{
    (void)state;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7174)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 50; i++) {
        struct contest c = {.destroys = false};
        init_completion(&c.began);
        struct rdma_cm_id *id = rdma_create_id(&init_net, give_up_late, &c, RDMA_PS_TCP, IB_QPT_RC);
        assert_false(IS_ERR(id));
        assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
        wait_for_completion(&c.began);
        WRITE_ONCE(c.destroys, true);
        rdma_destroy_id(id);
    }
}

static struct completion gone;

static int destroy_in_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    (void)event;
    rdma_destroy_id(id);
    complete(&gone);
    return 0;
}

static void resolve_to_nothing(void *arg)
{
    (void)arg;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    init_completion(&gone);
    struct rdma_cm_id *id =
        rdma_create_id(&init_net, destroy_in_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
    wait_for_completion(&gone);
}

static void a_handler_destroys_its_id(void **state)
{
    (void)state;
    char said[512];
    kit_stderr(said, sizeof said, resolve_to_nothing, NULL);
    assert_non_null(strstr(said, "an id's handler destroys the id"));
}

static void what_cannot_be_is_told(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    struct ib_qp_init_attr init = {.qp_type = IB_QPT_RC, .send_cq = p.a.cq, .recv_cq = p.a.cq};
    assert_int_equal(rdma_create_qp(p.a.id, p.a.pd, &init), -EINVAL); /* it has one */
    struct rdma_cm_id *fresh =
        rdma_create_id(&init_net, destroy_in_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
    assert_null(fresh->device);
    assert_int_equal(rdma_create_qp(fresh, p.a.pd, &init), -EINVAL); /* and this no device */
    rdma_destroy_id(fresh);
    struct sockaddr_in odd = {.sin_family = 77};
    assert_true(rdma_bind_addr(p.listener, (struct sockaddr *)&odd) < 0);
    assert_true(rdma_resolve_addr(p.a.id, NULL, (struct sockaddr *)&odd, 1) < 0);
    assert_true(rdma_resolve_route(p.listener, 1) < 0);
    assert_true(rdma_listen(p.a.id, 1) < 0);
    struct rdma_conn_param param = {.retry_count = 1};
    assert_true(rdma_connect(p.listener, &param) < 0);
    assert_true(rdma_accept(p.listener, &param) < 0);
    assert_true(rdma_reject(p.listener, NULL, 0) < 0);
    assert_true(rdma_disconnect(p.listener) < 0);
    assert_true(rdma_notify(p.listener, IB_EVENT_COMM_EST) < 0);
    struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT};
    int mask = 0;
    assert_int_equal(rdma_init_qp_attr(p.a.id, &attr, &mask), 0);
    assert_true(mask & IB_QP_STATE);
    assert_int_equal(attr.qp_state, IB_QPS_INIT);
    kit_close(&p);
}

static void options_of_an_id(void **state)
{
    (void)state;
    struct pair p = {.options = {.signal = IB_SIGNAL_REQ_WR}};
    kit_listen(&p);
    struct rdma_cm_id *id =
        rdma_create_id(&init_net, destroy_in_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
    rdma_set_service_type(id, 8);
    assert_int_equal(rdma_set_reuseaddr(id, 1), 0);
    assert_int_equal(rdma_set_afonly(id, 1), 0);
    assert_true(rdma_set_reuseaddr(p.listener, 1) < 0); /* it is bound */
    rdma_destroy_id(id);
    kit_close(&p);
}

/* A QP that was made without the id: its number is in the parameters. */
static void a_qp_by_its_number(void **state)
{
    (void)state;
    struct pair p = {.options = {.signal = IB_SIGNAL_REQ_WR}};
    kit_listen(&p);
    kit_resolve(&p, &p.a);
    struct ib_pd *pd = ib_alloc_pd(p.a.id->device, 0);
    struct ib_cq_init_attr attr = {.cqe = 16};
    struct ib_cq *cq = ib_create_cq(p.a.id->device, NULL, NULL, NULL, &attr);
    struct ib_qp_init_attr init = {.send_cq = cq,
                                   .recv_cq = cq,
                                   .qp_type = IB_QPT_RC,
                                   .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
    struct ib_qp *qp = ib_create_qp(pd, &init);
    assert_false(IS_ERR(qp));
    struct rdma_conn_param param = {.responder_resources = 1, .qp_num = qp->qp_num};
    int ret = rdma_connect(p.a.id, &param);
    if (ret == 0) {
        kit_wait(&p.a, RDMA_CM_EVENT_ESTABLISHED);
        assert_int_equal(kit_recv(&p.b, 4, 0, 64), 0);
        struct ib_send_wr wr = {.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED}, *bad;
        assert_int_equal(ib_post_send(qp, &wr, &bad), 0);
        assert_int_equal(kit_poll(p.b.cq).wr_id, 4);
    }
    assert_int_equal(ret, 0);
    rdma_destroy_id(p.a.id);
    p.a.id = NULL;
    assert_int_equal(ib_destroy_qp(qp), 0);
    assert_int_equal(ib_destroy_cq(cq), 0);
    ib_dealloc_pd(pd);
    kit_close(&p);
}

/* Everything goes while messages come and handlers run. */

static void drain_in_handler(struct ib_cq *cq, void *context)
{
    (void)context;
    struct ib_wc wc[8];
    do {
        while (ib_poll_cq(cq, 8, wc) > 0)
            continue;
    } while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static int fire(void *data)
{
    struct pair *p = data;
    while (!kthread_should_stop()) {
        kit_send(&p->a, 1, 0, 64);
        kit_recv(&p->b, 1, 0, 64);
        cond_resched();
    }
    return 7;
}

static void a_storm_of_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct pair p;
        kit_open(&p, &(struct kit_options){.signal = IB_SIGNAL_REQ_WR,
                                           .on_a = drain_in_handler,
                                           .on_b = drain_in_handler});
        for (u64 j = 0; j < 30; j++)
            assert_int_equal(kit_recv(&p.b, j, 0, 64), 0);
        assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_NEXT_COMP), 0);
        assert_int_equal(ib_req_notify_cq(p.b.cq, IB_CQ_NEXT_COMP), 0);
        struct task_struct *t = kthread_run(fire, &p, "storm/%d", i);
        assert_false(IS_ERR(t));
        msleep(3);
        if (i % 3 == 0)
            rdma_disconnect(p.b.id);
        msleep(2);
        assert_int_equal(kthread_stop(t), 7);
        if (i % 2) { /* the id first */
            rdma_destroy_id(p.a.id);
            kit_close_rest(&p.a);
        }
        kit_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect_and_disconnect),    cmocka_unit_test(a_request_that_is_rejected),
        cmocka_unit_test(a_handler_gives_up_its_id), cmocka_unit_test(a_handler_destroys_its_id),
        cmocka_unit_test(what_cannot_be_is_told),    cmocka_unit_test(options_of_an_id),
        cmocka_unit_test(an_id_that_two_destroy),    cmocka_unit_test(a_qp_by_its_number),
        cmocka_unit_test(a_storm_of_ends),
    };
    kit_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues through the public API. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void send_one(struct pair *p, uint64_t wr_id, uint8_t byte)
{
    p->a.buf[0] = byte;
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, wr_id, 0, 100, 0, 0), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

static void receives_are_used_in_order(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 32});
    for (unsigned i = 0; i < 32; i++)
        side_recv(&p.b, i, i * 100, 100);
    for (unsigned i = 0; i < 32; i++) {
        send_one(&p, i, (uint8_t)i);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.qp_num, p.b.id->qp->qp_num);
        assert_int_equal(p.b.buf[i * 100], i);
    }
    pair_close(&p, 1);
}

static void late_receives_are_waited_for(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 32});
    for (unsigned i = 0; i < 10; i++)
        send_one(&p, i, (uint8_t)(i + 40));
    side_poll_none(&p.b, 20);
    for (unsigned i = 0; i < 10; i++) {
        side_recv(&p.b, i, i * 100, 100);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(p.b.buf[i * 100], i + 40);
    }
    pair_close(&p, 1);
}

static void the_limit_fires_once(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    struct ibv_srq_attr attr = {.srq_limit = 3};
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    for (unsigned i = 0; i < 4; i++)
        side_recv(&p.b, i, i * 100, 100);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
    send_one(&p, 1, 1);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 3); /* three are left: not yet fewer */
    send_one(&p, 2, 2);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(ev.element.srq, p.b.srq);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0);
    assert_int_equal(attr.max_wr, 8);
    pair_close(&p, 1);
}

static void wrong_arguments_are_refused(void **state)
{
    struct pair p;
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    struct ibv_srq_attr attr = {.srq_limit = 9, .max_wr = 4};
    struct ibv_srq_init_attr none = {.attr = {.max_wr = 0}};
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    assert_null(ibv_create_srq(p.b.pd, &none));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_srq(p.b.srq), EBUSY);
    assert_int_equal(ibv_post_recv(p.b.id->qp, &wr, &bad), EINVAL);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    pair_close(&p, 1);
}

static void the_last_wqe_event_comes_at_the_end(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(rdma_disconnect(p.a.id), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&ev);
    side_poll_none(&p.b, 5); /* receives of an SRQ are not flushed */
    pair_close(&p, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_are_used_in_order),
        cmocka_unit_test(late_receives_are_waited_for),
        cmocka_unit_test(the_limit_fires_once),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(the_last_wqe_event_comes_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

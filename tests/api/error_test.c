/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs that failed: what was posted, and what is posted later, completes once and in order.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

static void work_posted_in_error_is_flushed(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_STATE), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    for (unsigned i = 0; i < 5; i++) {
        side_recv(&p.a, 10 + i, 0, 8);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        expect(&p.a, 10 + i, IBV_WC_WR_FLUSH_ERR);
        expect(&p.a, i, IBV_WC_WR_FLUSH_ERR);
    }
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(p.a.id->qp->state, IBV_QPS_RESET);
    pair_close(&p, 0);
}

static void everything_posted_completes_once(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 1});
    for (unsigned i = 0; i < 20; i++)
        side_recv(&p.a, 100 + i, 0, 8);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, 0, 100000, 0, 0), 0);
    rdma_destroy_qp(p.b.id); /* the peer goes away in the middle */
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    unsigned i = 0;
    struct ibv_wc wc;
    for (; i < 30; i++) { /* those that were answered, then the flushed ones, in order */
        wc = side_poll(&p.a);
        assert_int_equal(wc.wr_id, i);
    }
    for (i = 0; i < 20; i++)
        expect(&p.a, 100 + i, IBV_WC_WR_FLUSH_ERR);
    side_poll_none(&p.a, 5);
    pair_close(&p, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_posted_in_error_is_flushed),
        cmocka_unit_test(everything_posted_completes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

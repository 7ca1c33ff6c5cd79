/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that does not say that it is anywarp: what the standards lack cannot be sent to it. */
#include "cm_kit.h"
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void an_immediate_with_a_send_is_refused(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_send_wr *bad = NULL, imm = {.wr_id = 2, .opcode = IBV_WR_SEND_WITH_IMM},
                       plain = {.wr_id = 1, .next = &imm, .opcode = IBV_WR_SEND};
    side_recv(&p.b, 3, 0, 8);
    assert_int_equal(ibv_post_send(p.a.id->qp, &plain, &bad), EOPNOTSUPP);
    assert_ptr_equal(bad, &imm);

    /* What was before it is sent, and the connection goes on. */
    assert_int_equal(side_poll(&p.b).wr_id, 3);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0), 0);
    struct ibv_wc wc = side_poll(&p.a);
    assert_int_equal(wc.wr_id, 4);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

/** @return the number of the peer's queue pair that the event @p type tells */
static uint32_t number_told(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = cm_next(channel);
    assert_int_equal(event->event, type);
    uint32_t number = event->param.conn.qp_num;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    return number;
}

static void nobody_is_told_a_number(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    struct rdma_conn_param param = {.private_data = "ping", .private_data_len = 4};
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, &param), 0);
    assert_int_equal(number_told(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(number_told(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_drop(a);
    cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED);
    cm_drop(b);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_immediate_with_a_send_is_refused),
        cmocka_unit_test(nobody_is_told_a_number),
    };
    setenv("ANYWARP_EXT", "off", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

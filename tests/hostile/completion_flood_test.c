/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that sends more than the completion queue of its victim holds: the queue is overrun, which
 * ends the connections that use it, and no other (RFC 5042 section 6.4.3.2).
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RECEIVES 64

static void others_have_their_own(void **state)
{
    static struct peer p;
    struct ibv_async_event ev;
    (void)state;
    struct ibv_context **list = rdma_get_devices(NULL);
    assert_non_null(list);
    struct ibv_cq *cq = ibv_create_cq(list[0], 1, NULL, NULL, 0);
    assert_non_null(cq);
    assert_in_range(cq->cqe, 1, RECEIVES - 1);
    peer_open(&p, &(struct peer_conf){.side = {.recv_cq = cq, .recv_wr = RECEIVES}});
    for (unsigned i = 0; i < RECEIVES; i++)
        side_recv(&p.victim, i, 0, 0);
    for (unsigned i = 0; i < RECEIVES; i++) {
        struct peer_seg s = peer_untagged(&p, PEER_SEND, NULL, 0);
        peer_send_seg(&p, &s);
    }
    assert_int_equal(peer_terminate(&p), PEER_TERM(0, 0, 0x00));
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    witness_goes_on();
    log_expect(p.victim.id->qp->qp_num, "completion queue overrun*");
    assert_int_equal(ibv_get_async_event(list[0], &ev), 0);
    while (ev.event_type != IBV_EVENT_CQ_ERR) {
        ibv_ack_async_event(&ev);
        assert_int_equal(ibv_get_async_event(list[0], &ev), 0);
    }
    assert_ptr_equal(ev.element.cq, cq);
    ibv_ack_async_event(&ev);
    (void)async_events(p.victim.id->qp);
    peer_close(&p);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    rdma_free_devices(list);
    witness_goes_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_have_their_own),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}

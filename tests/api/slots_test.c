/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a work request is free when its completion was polled: a program that posts until
 * the queue is full never overruns a CQ that is as large as its queues.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WRS 16

static int write_one(struct pair *p, uint64_t wr_id, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)p->a.buf, 8, p->a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = flags,
                                   .wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey}};
    return ibv_post_send(p->a.id->qp, &wr, &bad);
}

static int recv_one(struct side *s, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + SIDE_BYTES / 2, 8, s->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->id->qp, &wr, &bad);
}

static void poll_in_order(struct side *s, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_wc wc = side_poll(s);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, first + i);
    }
}

static void a_send_keeps_its_place_until_it_is_polled(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    uint64_t posted = 0, polled = 0;
    for (unsigned round = 0; round < 20; round++) {
        while (posted - polled < WRS)
            assert_int_equal(write_one(&p, posted++, IBV_SEND_SIGNALED), 0);
        /* A read is answered behind all of them: they are complete, and still in their places. */
        assert_int_equal(side_post(&p.b, &p.a, IBV_WR_RDMA_READ, 7, 64, 8, 64, 0), 0);
        assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
        assert_int_equal(write_one(&p, 0, IBV_SEND_SIGNALED), ENOMEM);
        assert_int_equal(write_one(&p, 0, 0), ENOMEM);
        unsigned n = round % WRS + 1;
        poll_in_order(&p.a, polled, n);
        polled += n;
    }
    poll_in_order(&p.a, polled, (unsigned)(posted - polled));
    pair_close(&p, 1);
}

static void several_are_polled_at_once(void **state)
{
    struct pair p;
    struct ibv_wc wc[WRS];
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (unsigned round = 0; round < 50; round++) {
        /* Of two queues in one CQ. */
        for (unsigned i = 0; i < WRS / 2; i++) {
            assert_int_equal(recv_one(&p.a, i), 0);
            assert_int_equal(recv_one(&p.b, i), 0);
            assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
            assert_int_equal(side_post(&p.b, &p.a, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        }
        for (int n = 0; n < WRS;) {
            int got = ibv_poll_cq(p.a.cq, 5, wc);
            assert_in_range(got, 0, 5);
            n += got;
        }
        for (unsigned i = 0; i < WRS; i++)
            assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    }
    for (unsigned i = 0; i < WRS; i++) /* no place was lost */
        assert_int_equal(write_one(&p, i, IBV_SEND_SIGNALED), 0);
    poll_in_order(&p.a, 0, WRS);
    pair_close(&p, 1);
}

static void what_is_not_signaled_keeps_no_place(void **state)
{
    struct pair p;
    struct ibv_wc wc;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (unsigned i = 0; i < 50 * WRS; i++) {
        int r, tries = 100000;
        while ((r = write_one(&p, i, 0)) == ENOMEM && tries--)
            assert_int_equal(ibv_poll_cq(p.a.cq, 1, &wc), 0);
        assert_int_equal(r, 0);
    }
    pair_close(&p, 1);
}

/** With a queue of its own and with an SRQ. */
static void a_receive_keeps_its_place_until_it_is_polled(void **state)
{
    struct pair p;
    (void)state;
    for (unsigned srq = 0; srq < 2; srq++) {
        pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS, .srq_wr = srq ? WRS : 0});
        uint64_t posted = 0, polled = 0;
        for (unsigned round = 0; round < 20; round++) {
            for (; posted - polled < WRS; posted++) {
                assert_int_equal(recv_one(&p.b, posted), 0);
                assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
                assert_int_equal(side_poll(&p.a).wr_id, 1);
            }
            assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 2, 64, 8, 64, 0), 0);
            assert_int_equal(side_poll(&p.a).wr_id, 2);
            assert_int_equal(recv_one(&p.b, 0), ENOMEM);
            unsigned n = round % WRS + 1;
            poll_in_order(&p.b, polled, n);
            polled += n;
        }
        poll_in_order(&p.b, polled, (unsigned)(posted - polled));
        pair_close(&p, 1);
    }
}

static void flushed_work_keeps_its_place_too(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_STATE), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < WRS; i++) {
            assert_int_equal(write_one(&p, i, 0), 0);
            assert_int_equal(recv_one(&p.a, 100 + i), 0);
        }
        assert_int_equal(write_one(&p, 0, 0), ENOMEM);
        assert_int_equal(recv_one(&p.a, 0), ENOMEM);
        for (unsigned i = 0; i < 2 * WRS; i++) {
            struct ibv_wc wc = side_poll(&p.a);
            assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
            assert_int_equal(wc.wr_id, i / 2 + (i % 2 ? 100 : 0));
        }
    }
    side_poll_none(&p.a, 5);
    pair_close(&p, 0);
}

/** The completions of queues that are gone can be polled, and a CQ can go with them unpolled. */
static void completions_outlive_their_queue(void **state)
{
    struct pair p;
    (void)state;
    for (unsigned srq = 0; srq < 2; srq++) {
        pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS, .srq_wr = srq ? WRS : 0});
        for (unsigned i = 0; i < WRS; i++) {
            assert_int_equal(recv_one(&p.b, i), 0);
            assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        }
        poll_in_order(&p.a, 0, WRS);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, WRS, 64, 8, 64, 0), 0);
        poll_in_order(&p.a, WRS, 1); /* all of them are in */
        poll_in_order(&p.b, 0, WRS / 2);
        rdma_destroy_qp(p.b.id);
        if (srq) {
            assert_int_equal(ibv_destroy_srq(p.b.srq), 0);
            p.b.srq = NULL;
        }
        assert_int_equal(ibv_resize_cq(p.b.cq, 3 * WRS), 0);
        for (unsigned i = 0; i < WRS / 4; i++)
            assert_int_equal(side_poll(&p.b).wr_id, WRS / 2 + i);
        side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        pair_close(&p, 0); /* with completions in the CQ */
    }
}

/** wr_complete() posts all of a batch or nothing of it. */
static void a_batch_that_does_not_fit_is_refused_whole(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS, .ex = true});
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a.id->qp);
    for (unsigned have = 0; have <= WRS; have++) {
        for (unsigned i = 0; i < have; i++)
            assert_int_equal(write_one(&p, i, IBV_SEND_SIGNALED), 0);
        ibv_wr_start(ex);
        for (unsigned i = 0; i < WRS / 2; i++) {
            ex->wr_id = 100 + i;
            ex->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
            ibv_wr_set_sge(ex, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
        }
        bool fits = have + WRS / 2 <= WRS;
        assert_int_equal(ibv_wr_complete(ex), fits ? 0 : ENOMEM);
        poll_in_order(&p.a, 0, have);
        if (fits)
            poll_in_order(&p.a, 100, WRS / 2);
        side_poll_none(&p.a, 1);
    }
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_keeps_its_place_until_it_is_polled),
        cmocka_unit_test(several_are_polled_at_once),
        cmocka_unit_test(what_is_not_signaled_keeps_no_place),
        cmocka_unit_test(a_receive_keeps_its_place_until_it_is_polled),
        cmocka_unit_test(flushed_work_keeps_its_place_too),
        cmocka_unit_test(completions_outlive_their_queue),
        cmocka_unit_test(a_batch_that_does_not_fit_is_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests: every type, lists, what is refused; shared receive queues. */
#include "al_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct al_link l;

static int setup(void **state)
{
    (void)state;
    al_open(&w);
    al_link_connect(&l, &w);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    al_link_close(&l);
    al_close(&w);
    return 0;
}

static ib_wc_t post_and_poll(ib_send_wr_t *wr)
{
    OK(al_post(&l.a, wr));
    ib_wc_t wc = al_poll(&l.a);
    assert_int_equal(wc.status, IB_WCS_SUCCESS);
    assert_int_equal(wc.wr_id, wr->wr_id);
    return wc;
}

static ib_send_wr_t remote(ib_local_ds_t *ds, ib_wr_type_t type, unsigned word)
{
    ib_send_wr_t wr = al_wr(&l.a, ds, 0, type);
    wr.remote_ops.vaddr = (uintptr_t)&l.b.data[word];
    wr.remote_ops.rkey = l.b.rkey;
    return wr;
}

/* What is behind a Write is seen by who has the Send that follows. */
static void fence(void)
{
    ib_local_ds_t ds;
    ib_send_wr_t wr = al_wr(&l.a, &ds, 7, WR_SEND);
    al_recv(&l.b, 30);
    post_and_poll(&wr);
    assert_int_equal(al_poll(&l.b).wc_type, IB_WC_RECV);
}

static void one_sided(void **state)
{
    (void)state;
    ib_local_ds_t ds;
    l.a.data[0] = 1111;
    ib_send_wr_t wr = remote(&ds, WR_RDMA_WRITE, 4);
    assert_int_equal(post_and_poll(&wr).wc_type, IB_WC_RDMA_WRITE);
    fence();
    assert_true(l.b.data[4] == 1111);

    l.b.data[5] = 2222;
    wr = remote(&ds, WR_RDMA_READ, 5);
    ib_wc_t wc = post_and_poll(&wr);
    assert_int_equal(wc.wc_type, IB_WC_RDMA_READ);
    assert_true(l.a.data[0] == 2222);

    l.b.data[6] = 10;
    wr = remote(&ds, WR_FETCH_ADD, 6);
    wr.remote_ops.atomic1 = CL_HTON64(5);
    assert_int_equal(post_and_poll(&wr).wc_type, IB_WC_FETCH_ADD);
    assert_true(l.a.data[0] == 10);
    wr = remote(&ds, WR_COMPARE_SWAP, 6);
    wr.remote_ops.atomic1 = CL_HTON64(15);
    wr.remote_ops.atomic2 = CL_HTON64(77);
    assert_int_equal(post_and_poll(&wr).wc_type, IB_WC_COMPARE_SWAP);
    assert_true(l.a.data[0] == 15);
    wr = remote(&ds, WR_RDMA_READ, 6);
    post_and_poll(&wr);
    assert_true(l.a.data[0] == 77);
}

/* The keys are in network order wherever they are given; that of a list's memory, too. */
static void keys_in_network_order(void **state)
{
    (void)state;
    ib_mr_attr_t attr;
    OK(ib_query_mr(l.a.mr, &attr));
    assert_int_equal(attr.lkey, l.a.lkey);
    ib_local_ds_t ds;
    ib_send_wr_t wr = al_wr(&l.a, &ds, 3, WR_SEND);
    assert_int_equal(ds.lkey, l.a.lkey);
    l.a.data[3] = 3;
    al_recv(&l.b, 1);
    post_and_poll(&wr);
    assert_int_equal(al_poll(&l.b).length, 8);
    assert_true(l.b.data[1] == 3);
}

static void immediate_and_inline(void **state)
{
    (void)state;
    uint64_t unregistered = 5678;
    ib_local_ds_t ds = {(uintptr_t)&unregistered, 8, 0};
    ib_qp_attr_t attr;
    OK(ib_query_qp(l.a.qp, &attr));
    ib_send_wr_t wr = {.wr_id = 9,
                       .ds_array = &ds,
                       .num_ds = 1,
                       .wr_type = WR_SEND,
                       .send_opt = IB_SEND_OPT_IMMEDIATE | IB_SEND_OPT_SOLICITED,
                       .immediate_data = 0x12345678};
    ds.vaddr = (uintptr_t)&l.a.data[2];
    ds.lkey = l.a.lkey;
    al_recv(&l.b, 2);
    post_and_poll(&wr);
    ib_wc_t wc = al_poll(&l.b);
    assert_int_equal(wc.recv.conn.recv_opt & IB_RECV_OPT_IMMEDIATE, IB_RECV_OPT_IMMEDIATE);
    assert_int_equal(wc.recv.conn.immediate_data, 0x12345678);

    wr = remote(&ds, WR_RDMA_WRITE, 4);
    wr.send_opt = IB_SEND_OPT_IMMEDIATE | IB_SEND_OPT_FENCE;
    wr.immediate_data = 99;
    al_recv(&l.b, 2);
    post_and_poll(&wr);
    wc = al_poll(&l.b);
    assert_int_equal(wc.wc_type, IB_WC_RECV_RDMA_WRITE);
    assert_int_equal(wc.recv.conn.immediate_data, 99);

    ds = (ib_local_ds_t){(uintptr_t)&unregistered, 8, 0};
    wr = (ib_send_wr_t){.ds_array = &ds,
                        .num_ds = attr.sq_max_inline >= 8,
                        .wr_type = WR_SEND,
                        .send_opt = IB_SEND_OPT_INLINE};
    al_recv(&l.b, 2);
    post_and_poll(&wr);
    al_poll(&l.b);
    if (attr.sq_max_inline >= 8)
        assert_true(l.b.data[2] == 5678);
}

/* The rule "post list failure": those before the one that fails are posted. */
static void lists_of_work(void **state)
{
    (void)state;
    enum { MANY = 24 };
    ib_local_ds_t ds[MANY];
    ib_send_wr_t wr[MANY], *failure = NULL;
    for (unsigned i = 0; i < MANY; i++) {
        al_recv(&l.b, 8 + i % 8);
        wr[i] = al_wr(&l.a, &ds[i], i % 8, WR_SEND);
        wr[i].wr_id = i;
        wr[i].p_next = i + 1 < MANY ? &wr[i + 1] : NULL;
    }
    OK(ib_post_send(l.a.qp, wr, &failure));
    assert_null(failure);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(al_poll(&l.a).wr_id, i);
        al_poll(&l.b);
    }
    static const struct {
        ib_wr_type_t type;
        uint32_t num_ds;
        ib_api_status_t status;
    } bad[] = {
        {WR_UNKNOWN, 1, IB_INVALID_WR_TYPE},
        {WR_LSO, 1, IB_UNSUPPORTED},
        {WR_NOP, 1, IB_UNSUPPORTED},
        {WR_FAST_REG_MR, 1, IB_UNSUPPORTED},
        {(ib_wr_type_t)99, 1, IB_INVALID_WR_TYPE},
        {WR_SEND, 3, IB_INVALID_MAX_SGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ib_local_ds_t three[3] = {ds[0], ds[0], ds[0]};
        wr[0].p_next = &wr[1];
        wr[1].p_next = &wr[2];
        wr[1].wr_type = bad[i].type;
        wr[1].num_ds = bad[i].num_ds;
        wr[1].ds_array = three;
        al_recv(&l.b, 8);
        assert_int_equal(ib_post_send(l.a.qp, wr, &failure), bad[i].status);
        assert_ptr_equal(failure, &wr[1]);
        assert_int_equal(al_poll(&l.a).wr_id, 0);
        al_poll(&l.b);
    }
}

static void posting_checks(void **state)
{
    (void)state;
    ib_local_ds_t ds[3] = {{0}};
    ib_send_wr_t send = al_wr(&l.a, &ds[0], 0, WR_SEND), *sf = NULL;
    ib_recv_wr_t recv = {.num_ds = 1, .ds_array = ds}, *rf = NULL;
    IS(ib_post_send(NULL, &send, &sf), INVALID_QP_HANDLE);
    IS(ib_post_send(l.a.qp, NULL, &sf), INVALID_PARAMETER);
    IS(ib_post_recv(NULL, &recv, &rf), INVALID_QP_HANDLE);
    IS(ib_post_recv(l.a.qp, NULL, &rf), INVALID_PARAMETER);
    recv.num_ds = 3;
    IS(ib_post_recv(l.a.qp, &recv, &rf), INVALID_MAX_SGE);
    assert_ptr_equal(rf, &recv);

    struct al_end e;
    al_end_make(&e, &w);
    recv.num_ds = 0;
    OK(ib_modify_qp(e.qp, &(ib_qp_mod_t){.req_state = IB_QPS_RESET}));
    IS(ib_post_send(e.qp, &send, NULL), INVALID_QP_STATE);
    IS(ib_post_recv(e.qp, &recv, NULL), INVALID_QP_STATE);
    ib_qp_mod_t init = {.req_state = IB_QPS_INIT, .state.init.primary_port = 1};
    OK(ib_modify_qp(e.qp, &init));
    IS(ib_post_send(e.qp, &send, NULL), INVALID_QP_STATE);
    ib_api_status_t status;
    int posted = 0;
    do {
        status = ib_post_recv(e.qp, &recv, &rf);
        posted++;
    } while (status == IB_SUCCESS);
    IS(status, INSUFFICIENT_RESOURCES);
    assert_true(posted > 32);
    al_end_drop(&e);
}

/* Work requests that meet an error of the peer or of this side: the status of the completion. */
static void local_protection(void **state)
{
    (void)state;
    struct al_link mine;
    ib_local_ds_t ds;
    al_link_connect(&mine, &w);
    net32_t lkey, rkey;
    ib_mr_handle_t mr;
    ib_mr_create_t how = {mine.a.data, 8, IB_AC_LOCAL_WRITE};
    OK(ib_reg_mem(w.pd, &how, &lkey, &rkey, &mr));
    OK(ib_dereg_mr(mr));
    ib_send_wr_t wr = al_wr(&mine.a, &ds, 0, WR_SEND);
    ds.lkey = lkey; /* of a region that is gone: WRS_LOCAL_PROTECTION_ERR, by its later name */
    OK(al_post(&mine.a, &wr));
    assert_int_equal(al_poll(&mine.a).status, IB_WCS_LOCAL_PROTECTION_ERR);
    OK(al_post(&mine.a, &wr));
    assert_int_equal(al_poll(&mine.a).status, IB_WCS_WR_FLUSHED_ERR);
    al_link_close(&mine);
}

static void shared_receives(void **state)
{
    (void)state;
    ib_srq_handle_t srq;
    atomic_int gone = 0;
    ib_srq_attr_t attr = {.max_wr = 8, .max_sge = 1}, got, bad = attr;
    IS(ib_create_srq(NULL, &attr, NULL, NULL, &srq), INVALID_PD_HANDLE);
    IS(ib_create_srq(w.pd, NULL, NULL, NULL, &srq), INVALID_PARAMETER);
    IS(ib_create_srq(w.pd, &attr, NULL, NULL, NULL), INVALID_PARAMETER);
    bad.max_wr = 0x7fffffff;
    IS(ib_create_srq(w.pd, &bad, NULL, NULL, &srq), INVALID_MAX_WRS);
    bad = attr;
    bad.max_sge = 1000;
    IS(ib_create_srq(w.pd, &bad, NULL, NULL, &srq), INVALID_MAX_SGE);
    OK(ib_create_srq(w.pd, &attr, &gone, NULL, &srq));
    IS(ib_query_srq(NULL, &got), INVALID_SRQ_HANDLE);
    IS(ib_query_srq(srq, NULL), INVALID_PARAMETER);
    OK(ib_query_srq(srq, &got));
    assert_true(got.max_wr >= 8);
    got.srq_limit = 1;
    IS(ib_modify_srq(NULL, &got, IB_SRQ_LIMIT), INVALID_SRQ_HANDLE);
    IS(ib_modify_srq(srq, NULL, IB_SRQ_LIMIT), INVALID_PARAMETER);
    OK(ib_modify_srq(srq, &got, IB_SRQ_LIMIT));
    got.srq_limit = got.max_wr + 1;
    IS(ib_modify_srq(srq, &got, IB_SRQ_LIMIT), INVALID_SETTING);

    struct al_end e;
    al_end_make(&e, &w);
    ib_qp_create_t how = al_end_create(&e);
    how.h_srq = srq;
    al_end_queue(&e, &how);
    ib_qp_attr_t qp;
    OK(ib_query_qp(e.qp, &qp));
    assert_ptr_equal(qp.h_srq, srq);
    IS(ib_destroy_srq(srq, NULL), RESOURCE_BUSY);
    ib_local_ds_t ds = {(uintptr_t)e.data, 8, e.lkey};
    ib_recv_wr_t wr = {.num_ds = 1, .ds_array = &ds}, *failure = NULL;
    IS(ib_post_srq_recv(NULL, &wr, &failure), INVALID_SRQ_HANDLE);
    IS(ib_post_srq_recv(srq, NULL, &failure), INVALID_PARAMETER);
    OK(ib_post_srq_recv(srq, &wr, &failure));
    wr.num_ds = 2;
    IS(ib_post_srq_recv(srq, &wr, &failure), INVALID_MAX_SGE);
    assert_ptr_equal(failure, &wr);
    al_end_drop(&e);
    OK(ib_destroy_srq(srq, al_count));
    al_await(&gone, 1);
    IS(ib_destroy_srq(srq, NULL), INVALID_SRQ_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sided),
        cmocka_unit_test(keys_in_network_order),
        cmocka_unit_test(immediate_and_inline),
        cmocka_unit_test(lists_of_work),
        cmocka_unit_test(posting_checks),
        cmocka_unit_test(local_protection),
        cmocka_unit_test(shared_receives),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by the access layer's messages; compiled with DEVICES, on these. */
#include "al_kit.h"

#include <complib/cl_thread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct al_link l;

static void send_one(struct al_end *from, struct al_end *to, uint64_t value)
{
    ib_local_ds_t ds;
    ib_send_wr_t wr = al_wr(from, &ds, 0, WR_SEND);
    from->data[0] = value;
    al_recv(to, 1);
    OK(al_post(from, &wr));
    assert_int_equal(al_poll(from).status, IB_WCS_SUCCESS);
    ib_wc_t wc = al_poll(to);
    assert_int_equal(wc.status, IB_WCS_SUCCESS);
    assert_int_equal(wc.wc_type, IB_WC_RECV);
    assert_int_equal(wc.length, 8);
    assert_true(to->data[1] == value);
}

static ib_qp_state_t state_of(ib_qp_handle_t qp)
{
    ib_qp_attr_t attr;
    OK(ib_query_qp(qp, &attr));
    return attr.state;
}

/* The rule "CM needed", and the whole life of a connection. */
static void request_reply_ready_and_the_end(void **state)
{
    (void)state;
    ib_cm_dreq_t dreq = {.pfn_cm_drep_cb = al_saw_drep};
    ib_cm_drep_t drep = {0};
    al_link_connect(&l, &w);
    assert_int_equal(state_of(l.a.qp), IB_QPS_RTS);
    assert_int_equal(state_of(l.b.qp), IB_QPS_RTS);
    send_one(&l.a, &l.b, 4711);
    send_one(&l.b, &l.a, 4712);

    ib_cm_req_t again = al_request(&l, &(ib_path_rec_t){0});
    IS(ib_cm_req(&again), INVALID_STATE);

    dreq.h_qp = l.a.qp;
    OK(ib_cm_dreq(&dreq));
    al_await(&l.dreps, 1);
    al_await(&l.dreqs, 1);
    OK(ib_cm_drep(l.dreq, &drep));
    IS(ib_cm_drep(l.dreq, &drep), INVALID_HANDLE);
    IS(ib_cm_dreq(&dreq), INVALID_STATE);
    al_link_close(&l);
}

/* What was posted and is not needed any more completes, on every kind of device. */
static void the_end_flushes_both(void **state)
{
    (void)state;
    ib_cm_dreq_t dreq = {.flags = IB_FLAGS_SYNC, .pfn_cm_drep_cb = al_saw_drep};
    al_link_connect(&l, &w);
    al_recv(&l.a, 1);
    al_recv(&l.b, 1);
    dreq.h_qp = l.a.qp;
    OK(ib_cm_dreq(&dreq));
    assert_int_equal(al_poll(&l.a).status, IB_WCS_WR_FLUSHED_ERR);
    assert_int_equal(al_poll(&l.b).status, IB_WCS_WR_FLUSHED_ERR);
    assert_int_equal(state_of(l.a.qp), IB_QPS_ERROR);
    assert_int_equal(state_of(l.b.qp), IB_QPS_ERROR);
    al_link_close(&l);
}

static void again_with_the_same_queue_pairs(void **state)
{
    (void)state;
    ib_qp_mod_t reset = {.req_state = IB_QPS_RESET};
    ib_path_rec_t path = al_loopback();
    al_link_connect(&l, &w);
    for (int i = 2; i < 5; i++) {
        ib_cm_dreq_t dreq = {.flags = IB_FLAGS_SYNC, .h_qp = l.b.qp, .pfn_cm_drep_cb = al_saw_drep};
        OK(ib_cm_dreq(&dreq));
        assert_int_equal(l.dreps, i - 1);
        al_await(&l.dreqs, i - 1);
        OK(ib_cm_drep(l.dreq, &(ib_cm_drep_t){0}));
        OK(ib_modify_qp(l.a.qp, &reset));
        OK(ib_modify_qp(l.b.qp, &reset));
        ib_cm_req_t req = al_request(&l, &path);
        req.flags = IB_FLAGS_SYNC;
        OK(ib_cm_req(&req));
        assert_int_equal(l.reps, i);
        al_await(&l.rtus, i);
        send_one(&l.a, &l.b, (uint64_t)i);
    }
    al_link_close(&l);
}

static void private_data(void **state)
{
    (void)state;
    uint8_t mine[IB_REQ_PDATA_SIZE], theirs[IB_REP_PDATA_SIZE];
    memset(mine, 7, sizeof mine);
    memset(theirs, 9, sizeof theirs);
    al_link_listen(&l, &w);
    l.reply = false;
    ib_path_rec_t path = al_loopback();
    ib_cm_req_t req = al_request(&l, &path);
    req.p_req_pdata = mine;
    req.req_length = sizeof mine + 1;
    IS(ib_cm_req(&req), INVALID_PARAMETER);
    req.req_length = sizeof mine;
    OK(ib_cm_req(&req));
    al_await(&l.reqs, 1);
    assert_memory_equal(l.private_data, mine, sizeof mine);

    ib_cm_mra_t mra = {0};
    OK(ib_cm_mra(l.req, &mra));
    IS(ib_cm_mra(l.req, NULL), INVALID_PARAMETER);
    ib_cm_rep_t rep = al_reply(&l);
    rep.p_rep_pdata = theirs;
    rep.rep_length = sizeof theirs + 1;
    IS(ib_cm_rep(l.req, &rep), INVALID_PARAMETER);
    rep.rep_length = sizeof theirs;
    IS(ib_cm_rep(l.req, NULL), INVALID_PARAMETER);
    rep.h_qp = NULL;
    IS(ib_cm_rep(l.req, &rep), INVALID_QP_HANDLE);
    rep.h_qp = l.b.qp;
    OK(ib_cm_rep(l.req, &rep));
    IS(ib_cm_rep(l.req, &rep), INVALID_STATE);
    al_await(&l.reps, 1);
    assert_memory_equal(l.private_data, theirs, sizeof theirs);
    IS(ib_cm_mra(l.rep, &mra), INVALID_STATE);
    al_link_close(&l);
}

static void a_request_is_rejected(void **state)
{
    (void)state;
    uint8_t why[] = "no";
    al_link_listen(&l, &w);
    l.reply = false;
    al_link_request(&l);
    al_await(&l.reqs, 1);
    ib_cm_rej_t rej = {.p_rej_pdata = why, .rej_length = IB_REJ_PDATA_SIZE + 1};
    IS(ib_cm_rej(l.req, &rej), INVALID_PARAMETER);
    IS(ib_cm_rej(l.req, NULL), INVALID_PARAMETER);
    rej.rej_length = sizeof why;
    OK(ib_cm_rej(l.req, &rej));
    IS(ib_cm_rej(l.req, &rej), INVALID_HANDLE);
    IS(ib_cm_rep(l.req, &l.how), INVALID_HANDLE);
    al_await(&l.rejs, 1);
    assert_int_equal(l.rej_status, IB_REJ_USER_DEFINED);
    assert_string_equal((char *)l.private_data, "no");
    al_link_close(&l);
}

static void a_reply_is_rejected(void **state)
{
    (void)state;
    al_link_listen(&l, &w);
    l.ready = false;
    al_link_request(&l);
    al_await(&l.reps, 1);
    al_await(&l.rtus, 1);
    OK(ib_cm_rej(l.rep, &(ib_cm_rej_t){0}));
    IS(ib_cm_rtu(l.rep, &(ib_cm_rtu_t){0}), INVALID_HANDLE);
    al_await(&l.dreqs, 1);
    al_link_close(&l);
}

static void nobody_listens(void **state)
{
    (void)state;
    al_link_listen(&l, &w);
    OK(ib_cm_cancel(l.listen, ib_sync_destroy));
    IS(ib_cm_cancel(l.listen, NULL), INVALID_HANDLE);
    al_link_request(&l);
    al_await(&l.rejs, 1);
    assert_int_equal(l.rej_status, IB_REJ_INVALID_SID);
    al_end_drop(&l.a);
    al_end_drop(&l.b);
}

static void refuse_it(ib_cm_req_rec_t *rec)
{
    OK(ib_cm_rej(rec->h_cm_req, &(ib_cm_rej_t){0}));
    l.reqs++;
}

/* Whose private data does not compare is sent away, as if nobody listened. */
static void compared_requests(void **state)
{
    (void)state;
    al_link_listen(&l, &w);
    uint8_t want[] = {1, 2, 3}, pdata[] = {0, 1, 2, 4};
    ib_cm_listen_t listen = {
        .svc_id = l.svc_id,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .p_compare_buffer = want,
        .compare_offset = 1,
        .compare_length = 3,
    };
    IS(ib_cm_listen(w.al, &listen, &l, &l.listen), INVALID_PARAMETER);
    OK(ib_cm_cancel(l.listen, ib_sync_destroy));
    listen.pfn_cm_req_cb = refuse_it;
    OK(ib_cm_listen(w.al, &listen, &l, &l.listen));
    ib_path_rec_t path = al_loopback();
    ib_cm_req_t req = al_request(&l, &path);
    req.flags = IB_FLAGS_SYNC;
    req.p_req_pdata = pdata;
    req.req_length = sizeof pdata;
    OK(ib_cm_req(&req));
    assert_int_equal(l.rejs, 1);
    assert_int_equal(l.rej_status, IB_REJ_INVALID_SID);
    assert_int_equal(l.reqs, 0);
    OK(ib_modify_qp(l.a.qp, &(ib_qp_mod_t){.req_state = IB_QPS_RESET}));
    pdata[3] = 3;
    OK(ib_cm_req(&req));
    assert_int_equal(l.rejs, 2);
    al_await(&l.reqs, 1);
    al_link_close(&l);
}

static void refuse_all(ib_cm_req_rec_t *rec)
{
    (void)rec;
}

static void listen_checks(void **state)
{
    (void)state;
    ib_listen_handle_t h;
    uint8_t want[4] = {0};
    ib_cm_listen_t good = {.svc_id = CL_HTON64(7174), .pfn_cm_req_cb = refuse_all}, bad;
    IS(ib_cm_listen(NULL, &good, NULL, &h), INVALID_AL_HANDLE);
    IS(ib_cm_listen(w.al, NULL, NULL, &h), INVALID_PARAMETER);
    IS(ib_cm_listen(w.al, &good, NULL, NULL), INVALID_PARAMETER);
    bad = good;
    bad.svc_id = CL_HTON64(0x1070000ULL | 7174);
    IS(ib_cm_listen(w.al, &bad, NULL, &h), INVALID_PARAMETER);
    bad = good;
    bad.qp_type = IB_QPT_UNRELIABLE_DGRM;
    IS(ib_cm_listen(w.al, &bad, NULL, &h), UNSUPPORTED);
    bad = good;
    bad.compare_length = 1;
    IS(ib_cm_listen(w.al, &bad, NULL, &h), INVALID_SETTING);
    bad.p_compare_buffer = want;
    bad.compare_offset = IB_REQ_PDATA_SIZE;
    IS(ib_cm_listen(w.al, &bad, NULL, &h), INVALID_SETTING);
    bad = good;
    bad.ca_guid = 1;
    IS(ib_cm_listen(w.al, &bad, NULL, &h), INVALID_GUID);
    bad = good;
    bad.port_guid = 1;
    IS(ib_cm_listen(w.al, &bad, NULL, &h), INVALID_GUID);
    al_link_listen(&l, &w); /* of its port there is only one listener */
    good.svc_id = l.svc_id;
    IS(ib_cm_listen(w.al, &good, NULL, &h), INVALID_SETTING);
    al_link_close(&l);
}

static void request_checks(void **state)
{
    (void)state;
    al_link_listen(&l, &w);
    ib_path_rec_t path = al_loopback();
    const ib_cm_req_t good = al_request(&l, &path);
    ib_cm_req_t bad = good;
    IS(ib_cm_req(NULL), INVALID_PARAMETER);
    bad.h_qp = NULL;
    IS(ib_cm_req(&bad), INVALID_QP_HANDLE);
    bad = good;
    bad.p_primary_path = NULL;
    IS(ib_cm_req(&bad), INVALID_PARAMETER);
    bad = good;
    bad.pfn_cm_rep_cb = NULL;
    IS(ib_cm_req(&bad), INVALID_PARAMETER);
    bad = good;
    bad.svc_id = 0;
    IS(ib_cm_req(&bad), INVALID_PARAMETER);
    ib_path_rec_t nowhere = {0};
    bad = good;
    bad.p_primary_path = &nowhere;
    IS(ib_cm_req(&bad), INVALID_GID);
    ib_qp_mod_t init = {.req_state = IB_QPS_INIT, .state.init = {.primary_port = 1}};
    ib_qp_mod_t error = {.req_state = IB_QPS_ERROR};
    OK(ib_modify_qp(l.a.qp, &init));
    OK(ib_modify_qp(l.a.qp, &error));
    IS(ib_cm_req(&good), INVALID_QP_STATE);
    ib_cm_handle_t none = {0};
    IS(ib_cm_rep(none, &l.how), INVALID_HANDLE);
    IS(ib_cm_rtu(none, &(ib_cm_rtu_t){0}), INVALID_HANDLE);
    IS(ib_cm_rej(none, &(ib_cm_rej_t){0}), INVALID_HANDLE);
    IS(ib_cm_mra(none, &(ib_cm_mra_t){0}), INVALID_HANDLE);
    IS(ib_cm_drep(none, &(ib_cm_drep_t){0}), INVALID_HANDLE);
    IS(ib_cm_dreq(NULL), INVALID_PARAMETER);
    IS(ib_cm_dreq(&(ib_cm_dreq_t){0}), INVALID_QP_HANDLE);
    IS(ib_cm_dreq(&(ib_cm_dreq_t){.h_qp = l.a.qp}), INVALID_STATE);
    al_link_close(&l);
}

/* The peer is gone before the program says that it is ready; it hears of that afterwards. */
static void the_peer_leaves_early(void **state)
{
    (void)state;
    al_link_listen(&l, &w);
    l.ready = false;
    al_link_request(&l);
    al_await(&l.reps, 1);
    al_await(&l.rtus, 1);
    ib_cm_dreq_t dreq = {.h_qp = l.b.qp, .pfn_cm_drep_cb = al_saw_drep};
    OK(ib_cm_dreq(&dreq));
    al_await(&l.dreps, 1);
    ib_cm_rtu_t rtu = al_ready();
    OK(ib_cm_rtu(l.rep, &rtu));
    al_await(&l.dreqs, 1);
    OK(ib_cm_drep(l.dreq, &(ib_cm_drep_t){0}));
    al_link_close(&l);
}

/* A queue pair takes its connection along, and its peer hears of it. */
static void destroyed_while_connected(void **state)
{
    (void)state;
    al_link_connect(&l, &w);
    OK(ib_destroy_qp(l.a.qp, ib_sync_destroy));
    l.a.qp = NULL;
    al_await(&l.dreqs, 1);
    ib_qp_create_t how = al_end_create(&l.a);
    al_end_queue(&l.a, &how);
    al_link_close(&l);
}

int main(void)
{
#ifdef DEVICES
    setenv("ANYWARP_DEVICES", DEVICES, 1);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_reply_ready_and_the_end),
        cmocka_unit_test(the_end_flushes_both),
        cmocka_unit_test(again_with_the_same_queue_pairs),
        cmocka_unit_test(private_data),
        cmocka_unit_test(a_request_is_rejected),
        cmocka_unit_test(a_reply_is_rejected),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(compared_requests),
        cmocka_unit_test(listen_checks),
        cmocka_unit_test(request_checks),
        cmocka_unit_test(the_peer_leaves_early),
        cmocka_unit_test(destroyed_while_connected),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything is destroyed while it is in use: callbacks run, other threads call with handles that
 * go stale, connections are made and ended. Nothing may crash, hang, or be told twice.
 */
#include "al_kit.h"

#include <complib/cl_thread.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 60, QUEUES = 4, THREADS = 3 };

/* What the threads call with: handles that may be good, or gone. */
static _Atomic(ib_qp_handle_t) qps[QUEUES];
static _Atomic(ib_cq_handle_t) cqs[QUEUES];
static atomic_bool stop;
static atomic_int calls, callbacks, gone, not_opened;

static void polled(const ib_cq_handle_t h_cq, void *context)
{
    ib_wc_t wc = {0}, *unused = &wc, *done;
    (void)context;
    callbacks++;
    while (ib_poll_cq(h_cq, &unused, &done) == IB_SUCCESS)
        unused = &wc;
    ib_rearm_cq(h_cq, FALSE); /* it may be gone */
}

/* All that a thread can do to a queue pair and a completion queue that are pulled from under it. */
static void *meddle(void *seed)
{
    unsigned i = (unsigned)(uintptr_t)seed;
    while (!stop) {
        unsigned n = i++ % QUEUES;
        ib_qp_attr_t attr;
        ib_recv_wr_t wr = {.wr_id = i};
        uint32_t count;
        ib_qp_handle_t qp = qps[n];
        ib_cq_handle_t cq = cqs[n];
        ib_post_recv(qp, &wr, NULL);
        ib_query_qp(qp, &attr);
        ib_modify_qp(qp, &(ib_qp_mod_t){.req_state = IB_QPS_ERROR});
        ib_peek_cq(cq, &count);
        ib_rearm_n_cq(cq, 1);
        if (i % 7 == 0)
            ib_destroy_qp(qp, ib_sync_destroy);
        calls++;
    }
    return NULL;
}

/* One adapter with what can be in it; the way in which it ends changes. */
static void one_round(int round)
{
    ib_ca_handle_t ca;
    ib_pd_handle_t pd;
    int before = gone;
    OK(ib_open_ca(w.al, w.guid, NULL, &gone, &ca));
    OK(ib_alloc_pd(ca, IB_PDT_NORMAL, &gone, &pd));
    for (int i = 0; i < QUEUES; i++) {
        ib_cq_handle_t cq;
        ib_qp_handle_t qp;
        ib_cq_create_t how = {.size = 64, .pfn_comp_cb = polled};
        OK(ib_create_cq(ca, &how, NULL, NULL, &cq));
        OK(ib_rearm_cq(cq, FALSE));
        ib_qp_create_t create = {
            .sq_depth = 4, .rq_depth = 16, .sq_sge = 1, .rq_sge = 1, .h_sq_cq = cq, .h_rq_cq = cq};
        OK(ib_create_qp(pd, &create, &gone, NULL, &qp));
        cqs[i] = cq;
        qps[i] = qp;
    }
    sched_yield();
    if (round % 3 == 1)
        OK(ib_dealloc_pd(pd, al_count));
    if (round % 3 == 2)
        ib_destroy_qp(qps[0], NULL);
    OK(ib_close_ca(ca, round % 2 ? al_count : ib_sync_destroy));
    al_await(&gone, before + (round % 3 == 1) + round % 2);
}

static void handles_go_stale_in_use(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    stop = false;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, meddle, (void *)i), 0);
    for (int i = 0; i < ROUNDS; i++)
        one_round(i);
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(calls > 0);
    int after = callbacks;
    cl_thread_suspend(20);
    assert_int_equal(after, callbacks); /* nothing is told of what is gone */
}

static void *open_and_close(void *unused)
{
    for (int i = 0; i < 5000; i++) {
        ib_ca_handle_t ca = NULL;
        not_opened += ib_open_ca(w.al, w.guid, NULL, NULL, &ca) != IB_SUCCESS;
        ib_close_ca(ca, i % 2 ? NULL : ib_sync_destroy);
    }
    return unused;
}

/* Who opens an adapter gets it, also while its last user goes. */
static void the_last_user_goes(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    OK(ib_close_ca(w.ca, ib_sync_destroy));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(not_opened, 0);
    OK(ib_open_ca(w.al, w.guid, NULL, NULL, &w.ca));
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &w.pd));
}

/* ---- connections ---- */

static void connections_end_in_the_middle(void **state)
{
    (void)state;
    static struct al_link l;
    for (int i = 0; i < 24; i++) {
        al_link_listen(&l, &w);
        al_link_request(&l);
        if (i % 4 > 0)
            al_await(&l.reqs, 1);
        if (i % 4 > 1)
            al_await(&l.reps, 1);
        if (i % 4 > 2)
            al_await(&l.rtus, 1);
        if (i % 2)
            OK(ib_cm_cancel(l.listen, ib_sync_destroy));
        OK(ib_destroy_qp(l.a.qp, ib_sync_destroy));
        OK(ib_destroy_qp(l.b.qp, ib_sync_destroy));
        if (i % 2 == 0)
            OK(ib_cm_cancel(l.listen, ib_sync_destroy));
        OK(ib_destroy_cq(l.a.cq, ib_sync_destroy));
        OK(ib_destroy_cq(l.b.cq, ib_sync_destroy));
        OK(ib_dereg_mr(l.a.mr));
        OK(ib_dereg_mr(l.b.mr));
    }
}

static void layers_are_closed_with_all(void **state)
{
    (void)state;
    static struct al_link l;
    for (int i = 0; i < 12; i++) {
        struct al_world mine;
        al_open(&mine);
        al_link_listen(&l, &mine);
        al_link_request(&l);
        if (i % 2)
            al_await(&l.rtus, 1);
        al_close(&mine);
        IS(ib_destroy_qp(l.a.qp, NULL), INVALID_QP_HANDLE);
        IS(ib_cm_cancel(l.listen, NULL), INVALID_HANDLE);
    }
}

static ib_al_handle_t closed_by_two;
static atomic_bool closes;
static atomic_int closed;

static void close_in_callback(void *context)
{
    (void)context;
    while (!closes)
        continue;
    closed += ib_close_al(closed_by_two) == IB_SUCCESS;
    closed += 1000;
}

/* A layer is closed once, and others stay as they are. */
static void a_layer_is_closed_by_two(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct al_world mine;
        ib_pd_handle_t pd;
        al_open(&mine);
        closed_by_two = mine.al;
        closes = false;
        closed = 0;
        OK(ib_dealloc_pd(mine.pd, close_in_callback));
        closes = true;
        closed += ib_close_al(mine.al) == IB_SUCCESS;
        al_await(&closed, 1001);
        assert_int_equal(closed, 1001);
        OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &pd));
        OK(ib_dealloc_pd(pd, ib_sync_destroy));
    }
}

/* ---- calls that wait ---- */

static struct al_link shared;
static atomic_int done_waiting, refused;

static void *request_and_wait(void *unused)
{
    ib_path_rec_t path = al_loopback();
    ib_cm_req_t req = al_request(&shared, &path);
    req.flags = IB_FLAGS_SYNC;
    done_waiting += ib_cm_req(&req) == IB_SUCCESS;
    return unused;
}

/* A thread that asks, and waits for the Reply; its Request is here. */
static pthread_t one_that_waits(void)
{
    pthread_t thread;
    done_waiting = 0;
    al_link_listen(&shared, &w);
    shared.reply = false;
    assert_int_equal(pthread_create(&thread, NULL, request_and_wait, NULL), 0);
    al_await(&shared.reqs, 1);
    return thread;
}

static void *reply_and_wait(void *rep)
{
    ib_api_status_t status = ib_cm_rep(shared.req, rep);
    done_waiting += status == IB_SUCCESS;
    refused += status == IB_INVALID_STATE || status == IB_INVALID_HANDLE;
    return NULL;
}

static void *disconnect_and_wait(void *dreq)
{
    ib_api_status_t status = ib_cm_dreq(dreq);
    done_waiting += status == IB_SUCCESS;
    refused += status == IB_INVALID_STATE;
    return NULL;
}

/* A call that comes too late takes nothing from the one that waits. */
static void one_of_two_calls_waits(void **state)
{
    (void)state;
    enum { BOTH = 2 };
    for (int i = 0; i < 20; i++) {
        pthread_t threads[BOTH];
        struct al_end other;
        done_waiting = refused = 0;
        al_link_listen(&shared, &w);
        al_end_make(&other, &w);
        shared.reply = false;
        al_link_request(&shared);
        al_await(&shared.reqs, 1);
        ib_cm_rep_t reps[BOTH] = {al_reply(&shared), al_reply(&shared)};
        reps[1].h_qp = other.qp;
        for (int j = 0; j < BOTH; j++) {
            reps[j].flags = IB_FLAGS_SYNC;
            assert_int_equal(pthread_create(&threads[j], NULL, reply_and_wait, &reps[j]), 0);
        }
        for (int j = 0; j < BOTH; j++)
            pthread_join(threads[j], NULL);
        assert_int_equal(done_waiting, 1);
        assert_int_equal(refused, 1);
        al_await(&shared.reps, 1);

        done_waiting = refused = 0;
        ib_cm_dreq_t dreq = {.flags = IB_FLAGS_SYNC, .h_qp = shared.a.qp};
        for (int j = 0; j < BOTH; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, disconnect_and_wait, &dreq), 0);
        for (int j = 0; j < BOTH; j++)
            pthread_join(threads[j], NULL);
        assert_int_equal(done_waiting, 1);
        assert_int_equal(refused, 1);
        al_end_drop(&other);
        al_link_close(&shared);
    }
}

/* Nor does one that has to be refused while another call waits. */
static void a_late_call_while_another_waits(void **state)
{
    (void)state;
    pthread_t thread = one_that_waits();
    ib_cm_dreq_t dreq = {.flags = IB_FLAGS_SYNC, .h_qp = shared.a.qp};
    IS(ib_cm_dreq(&dreq), INVALID_STATE);
    ib_cm_rep_t rep = al_reply(&shared);
    OK(ib_cm_rep(shared.req, &rep));
    rep.flags = IB_FLAGS_SYNC;
    IS(ib_cm_rep(shared.req, &rep), INVALID_STATE);
    pthread_join(thread, NULL);
    assert_int_equal(done_waiting, 1);
    al_link_close(&shared);
}

#ifndef __SANITIZE_THREAD__
/* In a child nobody waits for what a thread of the parent waits for. */
static int connects_in_a_child(void)
{
    static struct al_link l;
    struct al_world mine;
    ib_path_rec_t path = al_loopback();
    al_open(&mine);
    for (int i = 0; i < 4; i++) {
        al_link_listen(&l, &mine);
        ib_cm_req_t req = al_request(&l, &path);
        req.flags = IB_FLAGS_SYNC;
        if (ib_cm_req(&req) != IB_SUCCESS)
            return 1;
        al_await(&l.rtus, 1);
        al_link_close(&l);
    }
    al_close(&mine);
    return 0;
}

static void a_child_waits_for_its_own(void **state)
{
    (void)state;
    pthread_t thread = one_that_waits();
    cl_thread_suspend(20); /* it sleeps by now, or the test says nothing */
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(connects_in_a_child());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    OK(ib_cm_rej(shared.req, &(ib_cm_rej_t){0}));
    pthread_join(thread, NULL);
    assert_int_equal(done_waiting, 1);
    al_link_close(&shared);
}

/* In a child all that the parent has is gone, and nothing of it is touched. */
static void a_child_begins_anew(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct al_world mine;
        uint32_t size = 0;
        bool stale = ib_query_ca(w.ca, NULL, &size) == IB_INVALID_CA_HANDLE &&
                     ib_close_al(w.al) == IB_INVALID_AL_HANDLE;
        al_open(&mine);
        al_close(&mine);
        _exit(stale ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    ib_pd_handle_t pd;
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &pd));
    OK(ib_dealloc_pd(pd, ib_sync_destroy));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_go_stale_in_use),
        cmocka_unit_test(the_last_user_goes),
        cmocka_unit_test(connections_end_in_the_middle),
        cmocka_unit_test(layers_are_closed_with_all),
        cmocka_unit_test(a_layer_is_closed_by_two),
        cmocka_unit_test(one_of_two_calls_waits),
        cmocka_unit_test(a_late_call_while_another_waits),
#ifndef __SANITIZE_THREAD__ /* it starts no thread in a child of a process with threads */
        cmocka_unit_test(a_child_begins_anew),
        cmocka_unit_test(a_child_waits_for_its_own),
#endif
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

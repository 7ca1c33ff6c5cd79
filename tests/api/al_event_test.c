/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events, and what callbacks may do. */
#include "al_kit.h"

#include <complib/cl_thread.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct al_link l;

/* The rule "event before create returns": the handle in the record is that of the create call. */
static void the_peer_may_not(void **state)
{
    (void)state;
    ib_local_ds_t ds;
    al_link_connect(&l, &w);
    ib_send_wr_t wr = al_wr(&l.a, &ds, 0, WR_RDMA_WRITE);
    wr.remote_ops.vaddr = (uintptr_t)l.b.data;
    wr.remote_ops.rkey = l.b.rkey ^ CL_HTON32(0x5500);
    OK(al_post(&l.a, &wr));
    al_await(&l.b.events, 1);
    assert_true(l.b.event == IB_AE_WQ_ACCESS_ERROR || l.b.event == IB_AE_QP_FATAL);
    assert_ptr_equal(l.b.event_handle, l.b.qp);
    al_link_close(&l);
}

static void a_queue_overflows(void **state)
{
    (void)state;
    struct al_end e;
    al_end_make(&e, &w);
    uint32_t size = 1;
    OK(ib_modify_cq(e.cq, &size));
    ib_qp_create_t how = al_end_create(&e);
    how.rq_depth = size + 8;
    al_end_queue(&e, &how);
    for (uint32_t i = 0; i < size + 8; i++)
        al_recv(&e, 1);
    ib_qp_mod_t error = {.req_state = IB_QPS_ERROR};
    OK(ib_modify_qp(e.qp, &error));
    al_await(&e.events, 1);
    assert_int_equal(e.event, IB_AE_CQ_ERROR);
    assert_ptr_equal(e.event_handle, e.cq);
    al_end_drop(&e);
}

/* ---- what the verbs never say here, as a program of theirs would hear it ---- */

static atomic_int ca_events, ca_event;

static void ca_happened(ib_async_event_rec_t *rec)
{
    ca_event = (int)rec->code;
    assert_ptr_equal(rec->handle.h_ca, *(ib_ca_handle_t *)rec->context);
    ca_events++;
}

/* ---- from callbacks ---- */

static struct al_end target;
static atomic_int called, gone;

static void destroy_yourself(const ib_cq_handle_t h_cq, void *context)
{
    (void)context;
    OK(ib_destroy_qp(target.qp, NULL));
    OK(ib_destroy_cq(h_cq, ib_sync_destroy)); /* does not wait for itself */
    IS(ib_destroy_cq(h_cq, NULL), INVALID_CQ_HANDLE);
    called++;
}

/* Has flushed receives complete, so that the callback of the queue comes. */
static void provoke(ib_pfn_comp_cb_t cb)
{
    target = (struct al_end){.w = &w};
    called = 0;
    ib_cq_create_t how = {.size = 64, .pfn_comp_cb = cb};
    ib_mr_create_t mr = {target.data, sizeof target.data, IB_AC_LOCAL_WRITE};
    OK(ib_create_cq(w.ca, &how, &target, NULL, &target.cq));
    OK(ib_reg_mem(w.pd, &mr, &target.lkey, &target.rkey, &target.mr));
    ib_qp_create_t create = al_end_create(&target);
    al_end_queue(&target, &create);
    al_recv(&target, 1);
    OK(ib_rearm_cq(target.cq, FALSE));
    OK(ib_modify_qp(target.qp, &(ib_qp_mod_t){.req_state = IB_QPS_ERROR}));
}

static void destroyed_in_its_callback(void **state)
{
    (void)state;
    provoke(destroy_yourself);
    al_await(&called, 1);
    OK(ib_dereg_mr(target.mr));
}

static void destroy_another(const ib_cq_handle_t h_cq, void *context)
{
    (void)h_cq;
    (void)context;
    ib_pd_handle_t pd;
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &pd));
    OK(ib_dealloc_pd(pd, ib_sync_destroy));
    called++;
}

static void others_in_a_callback(void **state)
{
    (void)state;
    provoke(destroy_another);
    al_await(&called, 1);
    al_end_drop(&target);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void stand_at_the_gate(const ib_cq_handle_t h_cq, void *context)
{
    (void)h_cq;
    (void)context;
    called++;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    gone++;
}

static atomic_int ended;

static void *end_it(void *unused)
{
    OK(ib_destroy_qp(target.qp, ib_sync_destroy));
    OK(ib_destroy_cq(target.cq, ib_sync_destroy));
    ended = gone;
    return unused;
}

/* The rule "sync destroy": it waits for a callback that is running. */
static void waits_for_a_callback(void **state)
{
    (void)state;
    pthread_t thread;
    gone = ended = 0;
    pthread_mutex_lock(&gate);
    provoke(stand_at_the_gate);
    al_await(&called, 1);
    assert_int_equal(pthread_create(&thread, NULL, end_it, NULL), 0);
    cl_thread_suspend(50);
    assert_int_equal(ended, 0);
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    assert_int_equal(ended, 1);
    OK(ib_dereg_mr(target.mr));
}

static void close_it(void *context)
{
    struct al_world *mine = context;
    OK(ib_close_al(mine->al)); /* cannot wait: we are the thread */
    IS(ib_close_al(mine->al), INVALID_AL_HANDLE);
    gone++;
}

static void a_layer_closed_by_a_callback(void **state)
{
    (void)state;
    struct al_world mine;
    gone = 0;
    al_open(&mine);
    ib_pd_handle_t pd;
    OK(ib_alloc_pd(mine.ca, IB_PDT_NORMAL, &mine, &pd));
    OK(ib_dealloc_pd(pd, close_it));
    al_await(&gone, 1);
}

static void of_the_adapter(void **state)
{
    (void)state;
    ib_ca_handle_t ca;
    OK(ib_open_ca(w.al, w.guid, ca_happened, &ca, &ca));
    assert_int_equal(ca_events, 0); /* a port of ours never goes down */
    assert_int_equal(ca_event, 0);
    OK(ib_close_ca(ca, ib_sync_destroy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_may_not),
        cmocka_unit_test(a_queue_overflows),
        cmocka_unit_test(of_the_adapter),
        cmocka_unit_test(destroyed_in_its_callback),
        cmocka_unit_test(others_in_a_callback),
        cmocka_unit_test(waits_for_a_callback),
        cmocka_unit_test(a_layer_closed_by_a_callback),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

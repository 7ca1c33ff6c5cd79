/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: who is told, when, and of how many; wait objects. */
#include "al_kit.h"

#include <complib/cl_thread.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct al_link l;

static void ignore(const ib_cq_handle_t h_cq, void *context)
{
    (void)h_cq;
    (void)context;
}

/* The rules "CQ notification exclusivity" and "CQ size". */
static void queues_of_completions(void **state)
{
    (void)state;
    ib_cq_handle_t cq;
    cl_waitobj_handle_t object;
    uint32_t size = 0;
    ib_cq_create_t how = {.size = 5, .pfn_comp_cb = ignore}, bad = how;
    IS(ib_create_cq(NULL, &how, NULL, NULL, &cq), INVALID_CA_HANDLE);
    IS(ib_create_cq(w.ca, NULL, NULL, NULL, &cq), INVALID_PARAMETER);
    IS(ib_create_cq(w.ca, &how, NULL, NULL, NULL), INVALID_PARAMETER);
    bad.pfn_comp_cb = NULL;
    IS(ib_create_cq(w.ca, &bad, NULL, NULL, &cq), INVALID_SETTING);
    assert_int_equal(cl_waitobj_create(FALSE, &object), CL_SUCCESS);
    bad = how;
    bad.h_wait_obj = object;
    IS(ib_create_cq(w.ca, &bad, NULL, NULL, &cq), INVALID_SETTING);
    bad.pfn_comp_cb = NULL;
    bad.h_wait_obj = (cl_waitobj_handle_t)(uintptr_t)0xCDEF0000;
    IS(ib_create_cq(w.ca, &bad, NULL, NULL, &cq), INVALID_SETTING);
    assert_int_equal(cl_waitobj_destroy(object), CL_SUCCESS);
    bad = how;
    bad.size = 0;
    IS(ib_create_cq(w.ca, &bad, NULL, NULL, &cq), INVALID_CQ_SIZE);
    bad.size = 0x7fffffff;
    IS(ib_create_cq(w.ca, &bad, NULL, NULL, &cq), INVALID_CQ_SIZE);

    OK(ib_create_cq(w.ca, &how, NULL, NULL, &cq));
    assert_true(how.size >= 5);
    IS(ib_query_cq(NULL, &size), INVALID_CQ_HANDLE);
    IS(ib_query_cq(cq, NULL), INVALID_PARAMETER);
    OK(ib_query_cq(cq, &size));
    assert_int_equal(size, how.size);
    uint32_t more = how.size * 4;
    IS(ib_modify_cq(NULL, &more), INVALID_CQ_HANDLE);
    IS(ib_modify_cq(cq, NULL), INVALID_PARAMETER);
    uint32_t none = 0, many = 0x7fffffff;
    IS(ib_modify_cq(cq, &none), INVALID_CQ_SIZE);
    IS(ib_modify_cq(cq, &many), INVALID_CQ_SIZE);
    OK(ib_modify_cq(cq, &more));
    assert_true(more >= how.size * 4);
    OK(ib_query_cq(cq, &size));
    assert_int_equal(size, more);
    ib_wc_t wc = {0}, *unused = &wc, *done;
    IS(ib_poll_cq(NULL, &unused, &done), INVALID_CQ_HANDLE);
    IS(ib_poll_cq(cq, NULL, &done), INVALID_PARAMETER);
    IS(ib_poll_cq(cq, &unused, NULL), INVALID_PARAMETER);
    IS(ib_poll_cq(cq, &unused, &done), NOT_FOUND);
    assert_ptr_equal(unused, &wc);
    assert_null(done);
    IS(ib_rearm_cq(NULL, FALSE), INVALID_CQ_HANDLE);
    IS(ib_peek_cq(NULL, &size), INVALID_CQ_HANDLE);
    IS(ib_peek_cq(cq, NULL), INVALID_PARAMETER);
    IS(ib_rearm_n_cq(NULL, 1), INVALID_CQ_HANDLE);
    IS(ib_rearm_n_cq(cq, 0), INVALID_PARAMETER);
    IS(ib_rearm_n_cq(cq, more + 1), INVALID_PARAMETER);
    IS(ib_destroy_cq(NULL, NULL), INVALID_CQ_HANDLE);
    OK(ib_destroy_cq(cq, ib_sync_destroy));
}

/* Messages from a to b, whose completion queue is looked at. */
static void send(unsigned count, ib_send_opt_t opt)
{
    for (unsigned i = 0; i < count; i++) {
        ib_local_ds_t ds;
        al_recv(&l.b, 8 + i);
        ib_send_wr_t wr = al_wr(&l.a, &ds, i, WR_SEND);
        wr.send_opt = opt;
        OK(al_post(&l.a, &wr));
        assert_int_equal(al_poll(&l.a).status, IB_WCS_SUCCESS);
    }
}

static void await_there(uint32_t count)
{
    uint32_t there = 0;
    for (int ms = 0; there < count; ms++) {
        OK(ib_peek_cq(l.b.cq, &there));
        assert_true(ms < 20000);
        cl_thread_suspend(1);
    }
    assert_int_equal(there, count);
}

static void told_of_the_next(void **state)
{
    (void)state;
    al_link_connect(&l, &w);
    send(1, 0);
    await_there(1);
    assert_int_equal(l.b.completions, 0); /* nobody asked */
    OK(ib_rearm_cq(l.b.cq, FALSE));
    cl_thread_suspend(20);
    send(1, 0);
    al_await(&l.b.completions, 1);
    await_there(2);
    send(1, 0); /* told once */
    await_there(3);
    assert_int_equal(l.b.completions, 1);
    for (unsigned i = 0; i < 3; i++)
        al_poll(&l.b);

    OK(ib_rearm_cq(l.b.cq, TRUE));
    send(2, 0);
    await_there(2);
    assert_int_equal(l.b.completions, 1);
    send(1, IB_SEND_OPT_SOLICITED);
    al_await(&l.b.completions, 2);
    al_link_close(&l);
}

/* The rule "rearm N": what was there does not count, what is polled does. */
static void told_of_so_many(void **state)
{
    (void)state;
    al_link_connect(&l, &w);
    send(3, 0);
    await_there(3);
    OK(ib_rearm_n_cq(l.b.cq, 4));
    send(2, 0);
    await_there(5);
    al_poll(&l.b); /* old ones do not count twice */
    send(1, 0);
    await_there(5);
    assert_int_equal(l.b.completions, 0);
    send(1, 0);
    al_await(&l.b.completions, 1);
    send(2, 0);
    await_there(8);
    assert_int_equal(l.b.completions, 1);

    OK(ib_rearm_n_cq(l.b.cq, 1)); /* by somebody who polls it all the time */
    for (unsigned i = 0; i < 8; i++)
        al_poll(&l.b);
    assert_int_equal(l.b.completions, 1);
    send(1, 0);
    al_poll(&l.b);
    al_await(&l.b.completions, 2);
    al_link_close(&l);
}

/* The rule "CQ shrink"; and the rule "poll result". */
static void completions_in_lists(void **state)
{
    (void)state;
    al_link_connect(&l, &w);
    send(5, 0);
    await_there(5);
    uint32_t small = 4;
    IS(ib_modify_cq(l.b.cq, &small), OVERFLOW);
    await_there(5);
    ib_wc_t wc[8] = {0}, *unused = wc, *done = NULL;
    for (int i = 0; i < 7; i++)
        wc[i].p_next = &wc[i + 1];
    wc[2].p_next = NULL;
    OK(ib_poll_cq(l.b.cq, &unused, &done));
    assert_null(unused); /* potentially more */
    assert_ptr_equal(done, &wc[0]);
    assert_ptr_equal(done->p_next, &wc[1]);
    assert_ptr_equal(wc[1].p_next, &wc[2]);
    assert_null(wc[2].p_next);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(wc[i].wr_id, 108 + i);
    unused = &wc[3];
    OK(ib_poll_cq(l.b.cq, &unused, &done));
    assert_ptr_equal(done, &wc[3]);
    assert_ptr_equal(unused, &wc[5]);
    small = 4;
    OK(ib_modify_cq(l.b.cq, &small));
    al_link_close(&l);
}

/* ---- wait objects ---- */

static void wait_objects(void **state)
{
    (void)state;
    cl_waitobj_handle_t h;
    assert_int_equal(cl_waitobj_create(TRUE, NULL), CL_INVALID_PARAMETER);
    assert_int_equal(cl_waitobj_create(TRUE, &h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_TIMEOUT);
    assert_int_equal(cl_waitobj_wait_on(h, 2000, TRUE), CL_TIMEOUT);
    assert_int_equal(cl_waitobj_signal(h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, EVENT_NO_TIMEOUT, FALSE), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_SUCCESS); /* until it is reset */
    assert_int_equal(cl_waitobj_reset(h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_TIMEOUT);
    assert_int_equal(cl_waitobj_destroy(h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_destroy(h), CL_INVALID_PARAMETER);
    assert_int_equal(cl_waitobj_signal(h), CL_INVALID_PARAMETER);
    assert_int_equal(cl_waitobj_reset(h), CL_INVALID_PARAMETER);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_INVALID_PARAMETER);

    assert_int_equal(cl_waitobj_create(FALSE, &h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_trigger(h), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_SUCCESS);
    assert_int_equal(cl_waitobj_wait_on(h, 0, FALSE), CL_TIMEOUT); /* it was for one */
    assert_int_equal(cl_waitobj_destroy(h), CL_SUCCESS);
}

static atomic_int waiting;

static void *wait_on(void *h)
{
    waiting++;
    return (void *)(uintptr_t)cl_waitobj_wait_on(h, EVENT_NO_TIMEOUT, TRUE);
}

static void wake(int signo)
{
    (void)signo;
}

static void who_waits_is_let_go(void **state)
{
    (void)state;
    cl_waitobj_handle_t h;
    pthread_t thread;
    void *result;
    waiting = 0;
    assert_int_equal(cl_waitobj_create(TRUE, &h), CL_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, wait_on, h), 0);
    al_await(&waiting, 1);
    cl_thread_suspend(20);
    assert_int_equal(cl_waitobj_destroy(h), CL_SUCCESS);
    assert_int_equal(pthread_join(thread, &result), 0);
    if ((uintptr_t)result != CL_INVALID_PARAMETER) /* it was destroyed before it waited */
        assert_int_equal((uintptr_t)result, CL_ERROR);

    struct sigaction action = {.sa_handler = wake};
    sigaction(SIGUSR1, &action, NULL);
    assert_int_equal(cl_waitobj_create(TRUE, &h), CL_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, wait_on, h), 0);
    al_await(&waiting, 2);
    int r;
    do {
        pthread_kill(thread, SIGUSR1);
        cl_thread_suspend(5);
        r = pthread_tryjoin_np(thread, &result);
    } while (r != 0);
    assert_int_equal((uintptr_t)result, CL_NOT_DONE);
    assert_int_equal(cl_waitobj_destroy(h), CL_SUCCESS);
}

static void a_queue_with_a_wait_object(void **state)
{
    (void)state;
    cl_waitobj_handle_t object;
    assert_int_equal(cl_waitobj_create(FALSE, &object), CL_SUCCESS);
    al_link_listen(&l, &w);
    OK(ib_destroy_qp(l.b.qp, ib_sync_destroy));
    l.b.qp = NULL;
    OK(ib_destroy_cq(l.b.cq, ib_sync_destroy));
    ib_cq_create_t how = {.size = 16, .h_wait_obj = object};
    OK(ib_create_cq(w.ca, &how, NULL, NULL, &l.b.cq));
    ib_qp_create_t create = al_end_create(&l.b);
    al_end_queue(&l.b, &create);
    l.how.h_qp = l.b.qp;
    al_link_request(&l);
    al_await(&l.rtus, 1);
    al_await(&l.reps, 1);
    OK(ib_rearm_cq(l.b.cq, FALSE));
    assert_int_equal(cl_waitobj_wait_on(object, 0, FALSE), CL_TIMEOUT);
    send(1, 0);
    assert_int_equal(cl_waitobj_wait_on(object, 20000000, FALSE), CL_SUCCESS);
    assert_int_equal(al_poll(&l.b).wc_type, IB_WC_RECV);
    assert_int_equal(cl_waitobj_destroy(object), CL_SUCCESS);
    OK(ib_rearm_cq(l.b.cq, FALSE)); /* signals nobody, harmlessly */
    send(1, 0);
    al_poll(&l.b);
    al_link_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_of_completions),
        cmocka_unit_test(told_of_the_next),
        cmocka_unit_test(told_of_so_many),
        cmocka_unit_test(completions_in_lists),
        cmocka_unit_test(wait_objects),
        cmocka_unit_test(who_waits_is_let_go),
        cmocka_unit_test(a_queue_with_a_wait_object),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues of the kernel's interface: how many there are, when their handlers run, and
 * where. */
#include "kverbs_kit.h"

#include <errno.h>

/* What a handler saw: it counts, and does what `then` says. */
struct watch {
    struct completion called;
    int calls;
    void (*then)(struct ib_cq *cq, struct watch *w);
    int result;
};

static void on_completion(struct ib_cq *cq, void *context)
{
    struct watch *w = context;
    assert_true(in_interrupt());
    if (w->then)
        w->then(cq, w);
    __atomic_add_fetch(&w->calls, 1, __ATOMIC_SEQ_CST);
    complete(&w->called);
}

static int calls(const struct watch *w)
{
    return __atomic_load_n(&w->calls, __ATOMIC_SEQ_CST);
}

/* Completions of a's CQ: of receives, as many messages as side b sends. */
static void bring(struct pair *p, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(kit_recv(&p->a, (u64)i, 0, 64), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(kit_send(&p->b, (u64)i, 0, 64), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(kit_poll(p->b.cq).status, IB_WC_SUCCESS);
}

static void wait_for(struct ib_cq *cq, int n)
{
    unsigned long end = jiffies + 30 * HZ;
    while (ib_peek_cq(cq, n) < n && time_before(jiffies, end))
        cond_resched();
    assert_int_equal(ib_peek_cq(cq, n), n);
}

static void open_watched(struct pair *p, struct watch *w)
{
    *w = (struct watch){.calls = 0};
    init_completion(&w->called);
    kit_open(
        p, &(struct kit_options){.signal = IB_SIGNAL_REQ_WR, .on_a = on_completion, .context = w});
}

/* peek_counts_unreaped, poll_tells_empty */
static void peek_and_poll(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    open_watched(&p, &w);
    struct ib_wc wc[40];
    assert_int_equal(ib_peek_cq(p.a.cq, 5), 0);
    assert_int_equal(ib_peek_cq(p.a.cq, -1), -EINVAL);
    assert_int_equal(ib_poll_cq(p.a.cq, 40, wc), 0);
    bring(&p, 30);
    wait_for(p.a.cq, 30);
    assert_int_equal(ib_peek_cq(p.a.cq, 3), 3);
    assert_int_equal(ib_peek_cq(p.a.cq, 99), 30);
    assert_int_equal(ib_poll_cq(p.a.cq, 10, wc), 10);
    assert_int_equal(ib_peek_cq(p.a.cq, 99), 20);
    assert_int_equal(ib_poll_cq(p.a.cq, 40, wc + 10), 20); /* fewer than asked for: empty */
    assert_int_equal(ib_peek_cq(p.a.cq, 1), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].status, IB_WC_SUCCESS);
        assert_int_equal(wc[i].opcode, IB_WC_RECV);
        assert_int_equal(wc[i].byte_len, 64);
        assert_ptr_equal(wc[i].qp, p.a.qp);
    }
    assert_int_equal(calls(&w), 0); /* nobody asked */
    kit_close(&p);
}

static void a_request_is_answered_once(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    open_watched(&p, &w);
    enum ib_cq_notify_flags neither = (enum ib_cq_notify_flags)0;
    assert_int_equal(ib_req_notify_cq(p.a.cq, neither), -EINVAL);
    assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_SOLICITED_MASK), -EINVAL);
    assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_NEXT_COMP), 0);
    bring(&p, 1);
    wait_for_completion(&w.called);
    wait_for(p.a.cq, 1);
    bring(&p, 1);
    wait_for(p.a.cq, 2);
    assert_int_equal(calls(&w), 1);
    kit_poll(p.a.cq);
    kit_poll(p.a.cq);
    assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_SOLICITED), 0);
    bring(&p, 1);
    wait_for(p.a.cq, 1);
    assert_int_equal(calls(&w), 1); /* not solicited */
    kit_close(&p);
}

/* missed_events_are_told, no_flag_no_hint */
static void what_came_before_the_request(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    open_watched(&p, &w);
    int both = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
    assert_int_equal(ib_req_notify_cq(p.a.cq, (enum ib_cq_notify_flags)both), 0);
    bring(&p, 1); /* none was missed, so it is told of the next */
    wait_for_completion(&w.called);
    wait_for(p.a.cq, 1);
    assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_NEXT_COMP), 0); /* without the flag: never */
    assert_int_equal(ib_req_notify_cq(p.a.cq, (enum ib_cq_notify_flags)both), 1);
    kit_poll(p.a.cq);
    assert_int_equal(ib_req_notify_cq(p.a.cq, (enum ib_cq_notify_flags)both), 0);
    kit_close(&p);
}

/* ncomp_counts_unreaped: those that were there already count, too */
static void a_number_of_completions(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    open_watched(&p, &w);
    assert_int_equal(ib_req_ncomp_notif(p.a.cq, 0), -EINVAL);
    assert_int_equal(ib_req_ncomp_notif(p.a.cq, p.a.cq->cqe + 1), -EINVAL);
    bring(&p, 2);
    wait_for(p.a.cq, 2);
    assert_int_equal(ib_req_ncomp_notif(p.a.cq, 5), 0);
    bring(&p, 2);
    wait_for(p.a.cq, 4);
    assert_int_equal(calls(&w), 0);
    bring(&p, 1);
    wait_for_completion(&w.called);
    assert_int_equal(ib_peek_cq(p.a.cq, 9), 5);
    assert_int_equal(ib_req_ncomp_notif(p.a.cq, 4), 0); /* there are enough */
    wait_for_completion(&w.called);
    assert_int_equal(calls(&w), 2);
    kit_close(&p);
}

static void sleep_here(struct ib_cq *cq, struct watch *w)
{
    (void)cq, (void)w;
    kfree(kmalloc(1, GFP_ATOMIC));
    kfree(kmalloc(1, GFP_KERNEL));
    struct mutex m;
    mutex_init(&m);
    mutex_lock(&m);
    mutex_unlock(&m);
}

static void destroy_itself(struct ib_cq *cq, struct watch *w)
{
    atomic_sub(2, &cq->usecnt); /* as if there were no QP */
    w->result = ib_destroy_cq(cq);
    atomic_add(2, &cq->usecnt);
}

struct told {
    struct pair *p;
    struct watch *w;
};

static void provoke(void *arg)
{
    struct told *t = arg;
    assert_int_equal(ib_req_notify_cq(t->p->a.cq, IB_CQ_NEXT_COMP), 0);
    bring(t->p, 1);
    wait_for_completion(&t->w->called);
}

static void a_handler_is_in_an_interrupt(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    char said[2048];
    struct told t = {&p, &w};
    open_watched(&p, &w);
    w.then = sleep_here;
    kit_stderr(said, sizeof said, provoke, &t);
    const char *first = strstr(said, "BUG: sleeping function called from invalid context");
    assert_non_null(first);
    assert_non_null(strstr(first, "in_interrupt(): 1"));
    assert_non_null(strstr(first + 1, "BUG: sleeping")); /* kmalloc() and mutex_lock() */
    assert_false(in_interrupt());
    kit_poll(p.a.cq);
    w.then = destroy_itself;
    kit_stderr(said, sizeof said, provoke, &t);
    assert_int_equal(w.result, -EDEADLK);
    assert_non_null(strstr(said, "a CQ's handler destroys the CQ"));
    kit_close(&p);
}

static void sizes_and_moderation(void **state)
{
    (void)state;
    struct pair p;
    struct watch w;
    open_watched(&p, &w);
    assert_int_equal(ib_resize_cq(p.a.cq, 500), 0);
    assert_true(p.a.cq->cqe >= 500);
    bring(&p, 3);
    wait_for(p.a.cq, 3);
    assert_int_equal(ib_resize_cq(p.a.cq, 0), -EINVAL);
    assert_int_equal(ib_modify_cq(p.a.cq, 2, 10000), 0);
    assert_int_equal(ib_req_notify_cq(p.a.cq, IB_CQ_NEXT_COMP), 0);
    bring(&p, 2);
    wait_for_completion(&w.called);
    kit_close(&p);
}

struct request {
    struct ib_cqe cqe;
    struct completion done;
    enum ib_wc_status status;
    bool in_interrupt;
};

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
    (void)cq;
    struct request *r = container_of(wc->wr_cqe, struct request, cqe);
    r->status = wc->status;
    r->in_interrupt = in_interrupt();
    complete(&r->done);
}

/* A QP in the error state: what is posted there completes, flushed. */
static void flushed_in(enum ib_poll_context context)
{
    struct ib_device *d = kit_device();
    struct ib_pd *pd = ib_alloc_pd(d, 0);
    struct ib_cq *cq = ib_alloc_cq(d, NULL, 16, 0, context);
    assert_false(IS_ERR(pd) || IS_ERR(cq));
    struct ib_qp_init_attr init = {.send_cq = cq,
                                   .recv_cq = cq,
                                   .cap = {.max_send_wr = 4, .max_recv_wr = 4},
                                   .sq_sig_type = IB_SIGNAL_REQ_WR,
                                   .qp_type = IB_QPT_RC};
    struct ib_qp *qp = ib_create_qp(pd, &init);
    assert_false(IS_ERR(qp));
    kit_init_qp(qp);
    struct request r = {.cqe.done = on_done};
    init_completion(&r.done);
    struct ib_recv_wr wr = {.wr_cqe = &r.cqe}, *bad;
    assert_int_equal(ib_post_recv(qp, &wr, &bad), 0);
    ib_drain_qp(qp);
    wait_for_completion(&r.done);
    assert_int_equal(r.status, IB_WC_WR_FLUSH_ERR);
    assert_int_equal(r.in_interrupt, context == IB_POLL_SOFTIRQ);
    assert_int_equal(ib_destroy_qp(qp), 0);
    ib_free_cq(cq);
    ib_dealloc_pd(pd);
}

static void completions_that_are_calls(void **state)
{
    (void)state;
    flushed_in(IB_POLL_DIRECT);
    flushed_in(IB_POLL_SOFTIRQ);
    flushed_in(IB_POLL_WORKQUEUE);
    assert_int_equal(PTR_ERR(ib_alloc_cq(kit_device(), NULL, 16, 0, (enum ib_poll_context)7)),
                     -EINVAL);
}

static struct completion overrun;

static void on_cq_event(struct ib_event *event, void *context)
{
    assert_int_equal(event->event, IB_EVENT_CQ_ERR);
    assert_ptr_equal(event->element.cq->cq_context, context);
    assert_true(in_interrupt());
    complete(&overrun);
}

/* More receives are flushed than the CQ has room for. */
static void a_cq_that_overruns(void **state)
{
    (void)state;
    struct ib_device *d = kit_device();
    init_completion(&overrun);
    struct ib_pd *pd = ib_alloc_pd(d, 0);
    struct ib_cq_init_attr small = {.cqe = 1};
    struct ib_cq *cq = ib_create_cq(d, NULL, on_cq_event, pd, &small);
    assert_false(IS_ERR(pd) || IS_ERR(cq));
    struct ib_qp_init_attr init = {.send_cq = cq,
                                   .recv_cq = cq,
                                   .cap = {.max_recv_wr = (u32)cq->cqe + 10},
                                   .qp_type = IB_QPT_RC};
    struct ib_qp *qp = ib_create_qp(pd, &init);
    assert_false(IS_ERR(qp));
    kit_init_qp(qp);
    struct ib_recv_wr wr = {.wr_id = 1}, *bad;
    for (int i = 0; i < cq->cqe + 10; i++)
        assert_int_equal(ib_post_recv(qp, &wr, &bad), 0);
    struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
    assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE), 0);
    assert_true(wait_for_completion_timeout(&overrun, 30 * HZ));
    assert_int_equal(ib_destroy_qp(qp), 0);
    assert_int_equal(ib_destroy_cq(cq), 0);
    ib_dealloc_pd(pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peek_and_poll),
        cmocka_unit_test(a_request_is_answered_once),
        cmocka_unit_test(what_came_before_the_request),
        cmocka_unit_test(a_number_of_completions),
        cmocka_unit_test(a_handler_is_in_an_interrupt),
        cmocka_unit_test(sizes_and_moderation),
        cmocka_unit_test(completions_that_are_calls),
        cmocka_unit_test(a_cq_that_overruns),
    };
    kit_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

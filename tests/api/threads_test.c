/* SPDX-License-Identifier: BSD-2-Clause */
/* The same objects from several threads: nothing is lost, nothing comes twice. */
#include "pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS  3
#define MESSAGES 2000 /* of each thread */
#define QUEUE    512
#define LIMIT_S  60

#define LAST_POSTS 100

struct shared {
    struct pair p;
    atomic_uint next; /* thread number */
    atomic_uint sent[THREADS * MESSAGES], received;
    atomic_uint failures;
    atomic_uint posted, completed; /* sends */
    time_t end;
};

static bool in_time(struct shared *s)
{
    return time(NULL) < s->end && !atomic_load(&s->failures);
}

static void fail_if(struct shared *s, bool wrong)
{
    if (wrong)
        atomic_fetch_add(&s->failures, 1);
}

static int post_recv(struct shared *s)
{
    struct ibv_recv_wr *bad, wr = {0};
    return ibv_post_recv(s->p.b.id->qp, &wr, &bad);
}

/** Takes completions of both sides, whoever they are for; a receive is put back at once. */
static void poll_both(struct shared *s)
{
    struct ibv_wc wc[4];
    int n = ibv_poll_cq(s->p.a.cq, 4, wc);
    for (int i = 0; i < n; i++) {
        fail_if(s, wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id >= THREADS * MESSAGES);
        if (!atomic_load(&s->failures))
            fail_if(s, atomic_fetch_add(&s->sent[wc[i].wr_id], 1) != 0);
        atomic_fetch_add(&s->completed, 1);
    }
    n = ibv_poll_cq(s->p.b.cq, 4, wc);
    for (int i = 0; i < n; i++) {
        fail_if(s, wc[i].status != IBV_WC_SUCCESS || post_recv(s) != 0);
        atomic_fetch_add(&s->received, 1);
    }
}

/** Whether one more send has its place in the queues; then it is counted. */
static bool reserve(struct shared *s)
{
    if (atomic_fetch_add(&s->posted, 1) - atomic_load(&s->completed) < QUEUE)
        return true;
    atomic_fetch_sub(&s->posted, 1);
    return false;
}

/** Posts its messages, polling whenever the queue is full, then polls until all are through. */
static void *post_and_poll(void *arg)
{
    struct shared *s = arg;
    unsigned first = atomic_fetch_add(&s->next, 1) * MESSAGES;
    for (unsigned i = 0; i < MESSAGES && in_time(s);) {
        if (reserve(s))
            fail_if(s, side_post(&s->p.a, &s->p.b, IBV_WR_SEND, first + i++, 0, 0, 0, 0) != 0);
        else
            poll_both(s);
    }
    while (in_time(s) && (atomic_load(&s->completed) < THREADS * MESSAGES ||
                          atomic_load(&s->received) < THREADS * MESSAGES))
        poll_both(s);
    return NULL;
}

static void test_post_and_poll(void **state)
{
    struct shared *s = calloc(1, sizeof(*s));
    pthread_t thread[THREADS];
    (void)state;
    pair_open(&s->p, &(struct pair_conf){.send_wr = QUEUE, .recv_wr = QUEUE});
    for (int i = 0; i < QUEUE; i++)
        assert_int_equal(post_recv(s), 0);
    s->end = time(NULL) + LIMIT_S;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, post_and_poll, s), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&s->failures), 0);
    assert_int_equal(atomic_load(&s->received), THREADS * MESSAGES);
    for (int i = 0; i < THREADS * MESSAGES; i++)
        assert_int_equal(atomic_load(&s->sent[i]), 1);
    pair_close(&s->p, 1);
    free(s);
}

/* ---- objects made and destroyed side by side ---- */

static void *make_and_destroy(void *arg)
{
    struct ibv_context *ctx = arg;
    char buf[64];
    for (int i = 0; i < 300; i++) {
        struct ibv_pd *pd = ibv_alloc_pd(ctx);
        struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
        struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
        struct ibv_qp_init_attr init = {
            .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
        if (!qp || !mr || ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq) ||
            ibv_dealloc_pd(pd))
            return ctx;
    }
    return NULL;
}

static void test_objects(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    pthread_t thread[THREADS];
    void *failed;
    (void)state;
    assert_non_null(ctx);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make_and_destroy, ctx), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

/* ---- the end of a QP, while the poster of its last message is on its way out ---- */

/** @return the side, if its message did not complete */
static void *take_and_destroy(void *arg)
{
    struct side *a = arg;
    struct ibv_wc wc;
    time_t end = time(NULL) + LIMIT_S;
    int n = 0;
    while (n == 0 && time(NULL) < end)
        n = ibv_poll_cq(a->cq, 1, &wc);
    if (n != 1 || wc.status != IBV_WC_SUCCESS)
        return a;
    rdma_destroy_qp(a->id);
    return NULL;
}

static int post(struct side *a, const struct side *b, bool ex)
{
    struct ibv_qp_ex *q = ex ? ibv_qp_to_qp_ex(a->id->qp) : NULL;
    if (!q)
        return side_post(a, b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0, IBV_SEND_SIGNALED);
    ibv_wr_start(q);
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(q, b->mr->rkey, (uintptr_t)b->buf);
    ibv_wr_set_sge(q, a->mr->lkey, (uintptr_t)a->buf, 8);
    return ibv_wr_complete(q);
}

static void test_end_behind_a_post(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAST_POSTS; i++) {
        struct pair p;
        pthread_t thread;
        void *failed;
        bool ex = i % 2;
        pair_open(&p, &(struct pair_conf){.ex = ex});
        assert_int_equal(pthread_create(&thread, NULL, take_and_destroy, &p.a), 0);
        usleep(100); /* so that it polls */
        assert_int_equal(post(&p.a, &p.b, ex), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        pair_close(&p, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post_and_poll),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_end_behind_a_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

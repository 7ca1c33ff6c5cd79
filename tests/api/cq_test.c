/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues through the public API: overrun, moderation, resize, two pollers. */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LONG_MS 5000

static bool readable(int fd, int ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) == 1;
}

static void send_one(struct pair *p, uint64_t wr_id)
{
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, wr_id, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

/** Takes the event of this CQ, which must be there or come soon. */
static void take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
    struct ibv_cq *got;
    void *context;
    assert_true(readable(channel->fd, LONG_MS));
    assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
    assert_ptr_equal(got, cq);
    ibv_ack_cq_events(cq, 1);
}

static void ping(struct pair *p)
{
    side_recv(&p->b, 77, 0, 64);
    send_one(p, 76);
    struct ibv_wc wc = side_poll(&p->b);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 77);
}

/* ---- overrun ---- */

struct seen {
    unsigned cq_err, fatal;
};

/** Reads asynchronous events until there are so many. */
static struct seen async_events(struct ibv_context *ctx, struct ibv_cq *cq, unsigned n)
{
    struct seen s = {0};
    while (n--) {
        struct ibv_async_event ev;
        assert_true(readable(ctx->async_fd, LONG_MS));
        assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
        if (ev.event_type == IBV_EVENT_CQ_ERR) {
            assert_ptr_equal(ev.element.cq, cq);
            s.cq_err++;
        } else {
            assert_int_equal(ev.event_type, IBV_EVENT_QP_FATAL);
            s.fatal++;
        }
        ibv_ack_async_event(&ev);
    }
    return s;
}

static struct ibv_cq *cq_new(struct side *s, int cqe)
{
    struct ibv_cq *cq = ibv_create_cq(s->id->verbs, cqe, NULL, s->channel, 0);
    assert_non_null(cq);
    return cq;
}

static void poll_flushed(struct ibv_cq *cq, unsigned n)
{
    time_t end = time(NULL) + LONG_MS / 1000;
    struct ibv_wc wc;
    for (unsigned i = 0; i < n; i++) {
        int r;
        while ((r = ibv_poll_cq(cq, 1, &wc)) == 0)
            assert_true(time(NULL) < end);
        assert_int_equal(r, 1);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.wr_id, i);
    }
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

/** One CQ: of the receives of one QP, of the sends of another. */
static void overrun_ends_those_who_use_the_cq(void **state)
{
    struct pair other, p, q;
    struct ibv_wc wc[8];
    (void)state;
    pair_open(&other, &(struct pair_conf){0});
    struct ibv_context *ctx = other.b.id->verbs;
    struct ibv_cq *small = cq_new(&other.b, 3);
    struct ibv_cq *sends = cq_new(&other.b, 16), *recvs = cq_new(&other.b, 16);
    pair_open(&p, &(struct pair_conf){.send_cq = sends, .recv_cq = small});
    pair_open(&q, &(struct pair_conf){.send_cq = small, .recv_cq = recvs});
    for (unsigned i = 0; i < 6; i++)
        side_recv(&p.b, i, 0, 64);
    for (unsigned i = 0; i < 3; i++)
        side_recv(&q.b, i, 0, 64);
    for (unsigned i = 0; i < 3; i++)
        send_one(&p, i);
    assert_false(readable(ctx->async_fd, 20));
    assert_int_equal(small->cqe, 3);
    send_one(&p, 3);

    /* The QPs of b, and those of their peers, who are told by a Terminate. */
    struct seen s = async_events(ctx, small, 5);
    assert_int_equal(s.cq_err, 1);
    assert_int_equal(s.fatal, 4);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&q.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&q.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(p.b.id->qp->state, IBV_QPS_ERR);
    assert_int_equal(q.b.id->qp->state, IBV_QPS_ERR);
    poll_flushed(recvs, 3);
    poll_flushed(sends, 0);

    assert_int_equal(ibv_poll_cq(small, 8, wc), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
    }
    assert_true(ibv_poll_cq(small, 8, wc) < 0);
    assert_int_equal(ibv_req_notify_cq(small, 0), 0);
    take_event(other.b.channel, small);
    assert_int_equal(ibv_resize_cq(small, 64), EINVAL);
    struct ibv_qp_init_attr attr = {
        .send_cq = small, .recv_cq = sends, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
    assert_null(ibv_create_qp(other.b.pd, &attr));
    assert_int_equal(errno, EINVAL);

    assert_int_equal(other.b.id->qp->state, IBV_QPS_RTS);
    ping(&other);
    assert_int_equal(ibv_destroy_cq(small), EBUSY);
    pair_close(&p, 0);
    pair_close(&q, 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
    assert_int_equal(ibv_destroy_cq(sends), 0);
    assert_int_equal(ibv_destroy_cq(recvs), 0);
    assert_false(readable(ctx->async_fd, 0));
    pair_close(&other, 1);
}

/** The flush completions of one QP overrun the CQ that it shares with another. */
static void a_flush_can_overrun(void **state)
{
    struct pair keep, p;
    (void)state;
    pair_open(&keep, &(struct pair_conf){0});
    struct ibv_context *ctx = keep.b.id->verbs;
    struct ibv_cq *small = cq_new(&keep.b, 3);
    pair_open(&p, &(struct pair_conf){.recv_cq = small});
    for (unsigned i = 0; i < 5; i++)
        side_recv(&p.b, i, 0, 64);
    assert_int_equal(rdma_disconnect(p.a.id), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(async_events(ctx, small, 1).cq_err, 1);
    struct ibv_wc wc[8];
    assert_int_equal(ibv_poll_cq(small, 8, wc), 3);
    assert_int_equal(wc[2].status, IBV_WC_WR_FLUSH_ERR);
    assert_true(ibv_poll_cq(small, 8, wc) < 0);
    pair_close(&p, 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
    assert_false(readable(ctx->async_fd, 0));
    pair_close(&keep, 1);
}

/* ---- moderation ---- */

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                      .moderate = {.cq_count = count, .cq_period = period_us}};
    return ibv_modify_cq(cq, &attr);
}

/** Receives @p n messages; their completions are there whether or not an event is. */
static void receive(struct pair *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        side_recv(&p->b, i, 0, 64);
        send_one(p, i);
        assert_int_equal(side_poll(&p->b).wr_id, i);
    }
}

static void an_event_after_count_completions(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    int fd = p.b.channel->fd;
    assert_int_equal(moderate(p.b.cq, 8, 0), 0);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
        receive(&p, 7);
        assert_false(readable(fd, 5));
        receive(&p, 1);
        take_event(p.b.channel, p.b.cq);
        assert_false(readable(fd, 0));
    }
    receive(&p, 20); /* nobody has asked */
    assert_false(readable(fd, 5));
    pair_close(&p, 1);
}

static void an_event_after_the_period(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(moderate(p.b.cq, 1000, 2000), 0);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
        receive(&p, 3);
        take_event(p.b.channel, p.b.cq);
        assert_false(readable(p.b.channel->fd, 5));
    }
    pair_close(&p, 1);
}

/** A program that sleeps in the getter is woken, and none of many messages is forgotten. */
static void a_moderated_sleeper_gets_everything(void **state)
{
    struct pair p;
    unsigned got = 0, events = 0;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(moderate(p.b.cq, 8, 500), 0);
    for (unsigned i = 0; i < 60; i++)
        side_recv(&p.b, i, 0, 64);
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    for (unsigned i = 0; i < 60; i++)
        send_one(&p, i);
    while (got < 60) {
        struct ibv_cq *cq;
        void *context;
        struct ibv_wc wc;
        assert_int_equal(ibv_get_cq_event(p.b.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        events++;
        assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
        while (ibv_poll_cq(cq, 1, &wc) == 1)
            assert_int_equal(wc.wr_id, got++);
    }
    assert_in_range(events, 1, 60);
    pair_close(&p, 1);
}

static void moderation_ends(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(moderate(p.b.cq, 100, 0), 0);
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    receive(&p, 2);
    assert_false(readable(p.b.channel->fd, 5));
    assert_int_equal(moderate(p.b.cq, 0, 0), 0); /* what was held back comes now */
    take_event(p.b.channel, p.b.cq);
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    receive(&p, 1);
    take_event(p.b.channel, p.b.cq);
    pair_close(&p, 1);
}

static void moderation_is_advertised_and_checked(void **state)
{
    struct pair p;
    struct ibv_device_attr_ex dev;
    struct ibv_modify_cq_attr attr = {.moderate = {.cq_count = 3}};
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_query_device_ex(p.b.id->verbs, NULL, &dev), 0);
    assert_int_equal(ibv_modify_cq(p.b.cq, &attr), EINVAL);
    attr.attr_mask = IBV_CQ_ATTR_RESERVED;
    assert_int_equal(ibv_modify_cq(p.b.cq, &attr), EOPNOTSUPP);
    attr.attr_mask |= IBV_CQ_ATTR_MODERATE;
    assert_int_equal(ibv_modify_cq(p.b.cq, &attr), EOPNOTSUPP);
    assert_int_equal(moderate(p.b.cq, dev.cq_mod_caps.max_cq_count, dev.cq_mod_caps.max_cq_period),
                     0);
    assert_true(dev.cq_mod_caps.max_cq_count > 0);
    assert_true(dev.cq_mod_caps.max_cq_period > 0);
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    receive(&p, 1); /* its timer runs while the CQ goes */
    pair_close(&p, 1);
}

/* ---- resize ---- */

static void resize_keeps_what_is_there(void **state)
{
    static const struct {
        int cqe, result, cqe_after;
    } rows[] = {
        {0, EINVAL, 127}, {-1, EINVAL, 127}, {3, EINVAL, 127},      {7, EINVAL, 127},
        {10, 0, 15},      {7, EINVAL, 15},   {1 << 30, EINVAL, 15}, {1000, 0, 1023},
    };
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 32, .recv_wr = 64});
    assert_int_equal(p.b.cq->cqe, 127);
    receive(&p, 50);
    assert_int_equal(moderate(p.b.cq, 10, 0), 0); /* the event says that all ten are there */
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    for (unsigned i = 0; i < 10; i++) {
        side_recv(&p.b, i, 0, 64);
        send_one(&p, i);
    }
    take_event(p.b.channel, p.b.cq);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int r = ibv_resize_cq(p.b.cq, rows[i].cqe);
        if (r != rows[i].result || p.b.cq->cqe != rows[i].cqe_after)
            fail_msg("row %zu: %d, cqe %d", i, r, p.b.cq->cqe);
    }
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(side_poll(&p.b).wr_id, i);
    pair_close(&p, 1);
}

#define MESSAGES 3000
#define WINDOW   32

struct load {
    struct pair p;
    atomic_uint received;
    atomic_bool over;
    unsigned seen[MESSAGES];
    bool in_order;
};

static void *resizer(void *arg)
{
    struct load *l = arg;
    unsigned done = 0;
    do { /* once at least: the load may be over before this thread has begun */
        if (ibv_resize_cq(l->p.b.cq, WINDOW + (int)(done % 7) * 100))
            return arg;
        done++;
        sched_yield();
    } while (!atomic_load(&l->over));
    return NULL;
}

static void took(struct load *l, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS && wc->wr_id < MESSAGES)
        __atomic_fetch_add(&l->seen[wc->wr_id], 1, __ATOMIC_RELAXED);
    unsigned n = atomic_fetch_add(&l->received, 1);
    l->in_order = l->in_order && wc->wr_id == n;
    if (n + WINDOW < MESSAGES)
        side_recv(&l->p.b, n + WINDOW, 0, 64);
}

static void *poller(void *arg)
{
    struct load *l = arg;
    struct ibv_wc wc[4];
    while (!atomic_load(&l->over)) {
        int n = ibv_poll_cq(l->p.b.cq, 4, wc);
        if (n < 0)
            return arg;
        for (int i = 0; i < n; i++)
            took(l, &wc[i]);
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

/** Sends MESSAGES, never more than WINDOW ahead of the receiver. */
static void send_all(struct load *l)
{
    time_t end = time(NULL) + 60;
    for (unsigned sent = 0; sent < MESSAGES; sent++) {
        while (sent >= atomic_load(&l->received) + WINDOW) {
            assert_true(time(NULL) < end);
            sched_yield();
        }
        send_one(&l->p, sent);
    }
    while (atomic_load(&l->received) < MESSAGES) {
        assert_true(time(NULL) < end);
        sched_yield();
    }
    atomic_store(&l->over, true);
}

/** Each of the threads must end with NULL. */
static void run_load(const struct pair_conf *conf, void *(*first)(void *), void *(*second)(void *),
                     struct load *l)
{
    pthread_t t[2];
    void *failed;
    memset(l, 0, sizeof(*l));
    l->in_order = true;
    pair_open(&l->p, conf);
    for (unsigned i = 0; i < WINDOW; i++)
        side_recv(&l->p.b, i, 0, 64);
    assert_int_equal(pthread_create(&t[0], NULL, first, l), 0);
    assert_int_equal(pthread_create(&t[1], NULL, second, l), 0);
    send_all(l);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(t[i], &failed), 0);
        assert_null(failed);
    }
    for (unsigned i = 0; i < MESSAGES; i++)
        assert_int_equal(l->seen[i], 1);
    pair_close(&l->p, 1);
}

static struct load load;

static void resize_under_load(void **state)
{
    (void)state;
    run_load(&(struct pair_conf){0}, poller, resizer, &load);
    assert_true(load.in_order);
}

/* ---- the extended view ---- */

static void *ex_poller(void *arg)
{
    struct load *l = arg;
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)l->p.b.cq;
    struct ibv_poll_cq_attr attr = {0};
    while (!atomic_load(&l->over)) {
        int r = ibv_start_poll(ex, &attr);
        if (r == ENOENT) {
            sched_yield();
            continue;
        }
        if (r)
            return arg;
        do {
            struct ibv_wc wc = {.wr_id = ex->wr_id, .status = ex->status};
            took(l, &wc);
        } while ((r = ibv_next_poll(ex)) == 0);
        ibv_end_poll(ex);
        if (r != ENOENT)
            return arg;
    }
    return NULL;
}

static void two_threads_poll_the_extended_view(void **state)
{
    (void)state;
    run_load(&(struct pair_conf){.ex = true}, ex_poller, ex_poller, &load);
    assert_true(load.in_order); /* the view is one thread's at a time */
}

static void the_extended_view_with_events_and_resize(void **state)
{
    struct pair p;
    struct ibv_poll_cq_attr attr = {0};
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true});
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)p.b.cq;
    assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
    for (unsigned round = 0; round < 6; round++) {
        assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
        for (unsigned i = 0; i < 3; i++)
            side_recv(&p.b, round * 3 + i, 0, 64);
        send_one(&p, 0);
        take_event(p.b.channel, p.b.cq);
        assert_int_equal(ibv_start_poll(ex, &attr), 0);
        assert_int_equal(ex->wr_id, round * 3);
        assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
        ibv_end_poll(ex);
        assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
        send_one(&p, 1);
        take_event(p.b.channel, p.b.cq);
        assert_int_equal(ibv_resize_cq(p.b.cq, round % 2 ? 128 : 300), 0);
        send_one(&p, 2);
        for (unsigned i = 1; i < 3; i++) {
            time_t end = time(NULL) + LONG_MS / 1000;
            while (ibv_start_poll(ex, &attr) == ENOENT)
                assert_true(time(NULL) < end);
            assert_int_equal(ex->wr_id, round * 3 + i);
            ibv_end_poll(ex);
        }
    }
    pair_close(&p, 1);
}

static void an_overrun_extended_view_says_so(void **state)
{
    struct pair keep, p;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_cq_init_attr_ex init = {.cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS};
    (void)state;
    pair_open(&keep, &(struct pair_conf){0});
    struct ibv_cq_ex *ex = ibv_create_cq_ex(keep.b.id->verbs, &init);
    assert_non_null(ex);
    pair_open(&p, &(struct pair_conf){.recv_cq = ibv_cq_ex_to_cq(ex)});
    for (unsigned i = 0; i < 2; i++)
        side_recv(&p.b, i, 0, 64);
    send_one(&p, 0);
    send_one(&p, 1);
    assert_int_equal(async_events(keep.b.id->verbs, ibv_cq_ex_to_cq(ex), 3).cq_err, 1);
    assert_int_equal(ibv_start_poll(ex, &attr), 0);
    assert_int_equal(ex->wr_id, 0);
    int r = ibv_next_poll(ex);
    assert_true(r != 0 && r != ENOENT);
    ibv_end_poll(ex);
    assert_int_equal(ibv_start_poll(ex, &attr), r);
    pair_close(&p, 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    pair_close(&keep, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrun_ends_those_who_use_the_cq),
        cmocka_unit_test(a_flush_can_overrun),
        cmocka_unit_test(an_event_after_count_completions),
        cmocka_unit_test(an_event_after_the_period),
        cmocka_unit_test(a_moderated_sleeper_gets_everything),
        cmocka_unit_test(moderation_ends),
        cmocka_unit_test(moderation_is_advertised_and_checked),
        cmocka_unit_test(resize_keeps_what_is_there),
        cmocka_unit_test(resize_under_load),
        cmocka_unit_test(two_threads_poll_the_extended_view),
        cmocka_unit_test(the_extended_view_with_events_and_resize),
        cmocka_unit_test(an_overrun_extended_view_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

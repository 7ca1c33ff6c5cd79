/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues through the public API. */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void send_one(struct pair *p, uint64_t wr_id, uint8_t byte)
{
    p->a.buf[0] = byte;
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, wr_id, 0, 100, 0, 0), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

static void receives_are_used_in_order(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 32});
    for (unsigned i = 0; i < 32; i++)
        side_recv(&p.b, i, i * 100, 100);
    for (unsigned i = 0; i < 32; i++) {
        send_one(&p, i, (uint8_t)i);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.qp_num, p.b.id->qp->qp_num);
        assert_int_equal(p.b.buf[i * 100], i);
    }
    pair_close(&p, 1);
}

static void late_receives_are_waited_for(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 32});
    for (unsigned i = 0; i < 10; i++)
        send_one(&p, i, (uint8_t)(i + 40));
    side_poll_none(&p.b, 20);
    for (unsigned i = 0; i < 10; i++) {
        side_recv(&p.b, i, i * 100, 100);
        struct ibv_wc wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(p.b.buf[i * 100], i + 40);
    }
    pair_close(&p, 1);
}

static void the_limit_fires_once(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    struct ibv_srq_attr attr = {.srq_limit = 3};
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    for (unsigned i = 0; i < 4; i++)
        side_recv(&p.b, i, i * 100, 100);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
    send_one(&p, 1, 1);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 3); /* three are left: not yet fewer */
    send_one(&p, 2, 2);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(ev.element.srq, p.b.srq);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0);
    assert_int_equal(attr.max_wr, 8);
    pair_close(&p, 1);
}

static bool readable(int fd, int ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) == 1;
}

/** The next asynchronous event, which must be this; not acknowledged. */
static struct ibv_async_event async_event(struct ibv_context *ctx, enum ibv_event_type type)
{
    struct ibv_async_event ev;
    assert_true(readable(ctx->async_fd, 5000));
    assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
    assert_int_equal(ev.event_type, type);
    return ev;
}

static void set_limit(struct ibv_srq *srq, uint32_t limit)
{
    struct ibv_srq_attr attr = {.srq_limit = limit};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, limit);
}

/** Once an arm, also where fewer are there already; 0 disarms. */
static void the_limit_is_armed_again_by_modify(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 16});
    struct ibv_context *ctx = p.b.id->verbs;
    for (unsigned i = 0; i < 12; i++)
        side_recv(&p.b, i, i * 100, 100);
    for (unsigned left = 12; left > 4; left -= 2) {
        set_limit(p.b.srq, left > 8 ? left : 16);
        for (int i = 0; i < 2; i++) {
            send_one(&p, 1, 1);
            assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
        }
        struct ibv_async_event ev = async_event(ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
        ibv_ack_async_event(&ev);
        assert_false(readable(ctx->async_fd, 2));
    }
    set_limit(p.b.srq, 16);
    set_limit(p.b.srq, 0);
    send_one(&p, 1, 1);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_false(readable(ctx->async_fd, 2));
    pair_close(&p, 1);
}

static void *destroy_thread(void *arg)
{
    return (void *)(intptr_t)ibv_destroy_srq(arg);
}

static bool ends_within(pthread_t t, int ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += ms % 1000 * 1000000L;
    ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(t, NULL, &ts) == 0;
}

static struct ibv_srq *srq_new(struct ibv_pd *pd, uint32_t max_wr)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = 2}};
    struct ibv_srq *srq = ibv_create_srq(pd, &attr);
    assert_non_null(srq);
    assert_true(attr.attr.max_wr >= max_wr && attr.attr.max_sge >= 2);
    return srq;
}

static void post(struct ibv_srq *srq, const struct side *s, uint64_t wr_id, size_t at, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + at, len, s->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void destroy_waits_for_the_acknowledgement(void **state)
{
    struct pair keep, p;
    pthread_t t;
    (void)state;
    pair_open(&keep, &(struct pair_conf){0});
    struct ibv_srq *srq = srq_new(keep.b.pd, 4);
    pair_open(&p, &(struct pair_conf){.srq = srq, .with = &keep.b});
    post(srq, &keep.b, 1, 0, 100);
    set_limit(srq, 1);
    send_one(&p, 1, 99);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    assert_int_equal(keep.b.buf[0], 99);
    struct ibv_async_event ev = async_event(keep.b.id->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(ev.element.srq, srq);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    pair_close(&p, 1);
    assert_int_equal(pthread_create(&t, NULL, destroy_thread, srq), 0);
    assert_false(ends_within(t, 20));
    ibv_ack_async_event(&ev);
    assert_true(ends_within(t, 5000));
    pair_close(&keep, 1);
}

/** The keys of its receives are those of its own domain, whatever domain the QP has. */
static void its_domain_may_be_another(void **state)
{
    struct pair keep, p;
    (void)state;
    pair_open(&keep, &(struct pair_conf){0});
    struct ibv_srq *srq = srq_new(keep.b.pd, 4);
    pair_open(&p, &(struct pair_conf){.srq = srq});
    post(srq, &keep.b, 1, 0, 100);
    post(srq, &p.b, 2, 0, 100); /* a key of the QP's domain */
    memset(keep.b.buf, 0, 100);
    memset(p.b.buf, 0, 100);
    send_one(&p, 11, 'x');
    struct ibv_wc wc = side_poll(&p.b);
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(keep.b.buf[0], 'x');
    send_one(&p, 12, 'y');
    wc = side_poll(&p.b);
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(p.b.buf[0], 0);
    pair_close(&p, 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    pair_close(&keep, 1);
}

static void the_extended_call_makes_basic_ones(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    const struct {
        uint32_t mask;
        enum ibv_srq_type type;
        int error;
    } rows[] = {
        {IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_BASIC, 0},
        {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, 0},
        {IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, EINVAL},
        {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC, EOPNOTSUPP},
        {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_TM, EOPNOTSUPP},
        {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQT_BASIC, EOPNOTSUPP},
        {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM, IBV_SRQT_BASIC, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 3, .max_sge = 1},
                                            .comp_mask = rows[i].mask,
                                            .srq_type = rows[i].type,
                                            .pd = p.b.pd,
                                            .srq_context = &p};
        errno = 0;
        struct ibv_srq *srq = ibv_create_srq_ex(p.b.id->verbs, &attr);
        if (!srq != !!rows[i].error || errno != rows[i].error)
            fail_msg("row %zu: %p, errno %d", i, (void *)srq, errno);
        if (!srq)
            continue;
        assert_ptr_equal(srq->srq_context, &p);
        assert_ptr_equal(srq->pd, p.b.pd);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    pair_close(&p, 1);
}

/* ---- many QPs ---- */

#define QPS 32

struct many {
    struct pair keep; /* its b has the memory and the PD */
    struct ibv_srq *srq;
    struct ibv_cq *cq;
    struct pair p[QPS];
};

static struct many many;

static void many_open(struct many *m, unsigned qps, uint32_t srq_wr)
{
    memset(m, 0, sizeof(*m));
    pair_open(&m->keep, &(struct pair_conf){0});
    m->srq = srq_new(m->keep.b.pd, srq_wr);
    m->cq = ibv_create_cq(m->keep.b.id->verbs, 4096, NULL, NULL, 0);
    assert_non_null(m->cq);
    for (unsigned i = 0; i < qps; i++)
        pair_open(&m->p[i],
                  &(struct pair_conf){.srq = m->srq, .recv_cq = m->cq, .with = &m->keep.b});
}

/** Closes one after the other: a last-WQE event of each QP, receives stay in the queue. */
static void many_close(struct many *m, unsigned qps)
{
    struct ibv_wc wc;
    for (unsigned i = 0; i < qps; i++) {
        struct pair *p = &m->p[i];
        assert_int_equal(rdma_disconnect(p->a.id), 0);
        side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
        struct ibv_async_event ev = async_event(m->keep.b.id->verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
        assert_ptr_equal(ev.element.qp, p->b.id->qp);
        ibv_ack_async_event(&ev);
        pair_close(p, 0);
    }
    assert_int_equal(ibv_poll_cq(m->cq, 1, &wc), 0);
    assert_false(readable(m->keep.b.id->verbs->async_fd, 0));
    assert_int_equal(ibv_destroy_srq(m->srq), 0);
    assert_int_equal(ibv_destroy_cq(m->cq), 0);
    pair_close(&m->keep, 1);
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    time_t end = time(NULL) + 20;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        assert_true(time(NULL) < end);
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return wc;
}

static unsigned index_of(const struct many *m, uint32_t qp_num)
{
    for (unsigned i = 0; i < QPS; i++)
        if (m->p[i].b.id && m->p[i].b.id->qp->qp_num == qp_num)
            return i;
    fail_msg("no such QP");
    return 0;
}

#define EACH  20
#define SLOT  64
#define SLOTS 24 /* receives at a time: fewer than QPs, so that some always wait */

/** Each message carries its number and its sender; none is lost, doubled or out of order. */
static void each_message_is_received_once(void **state)
{
    unsigned got[QPS] = {0};
    struct many *m = &many;
    (void)state;
    many_open(m, QPS, SLOTS);
    for (unsigned i = 0; i < SLOTS; i++)
        post(m->srq, &m->keep.b, i, i * SLOT, SLOT);
    for (unsigned n = 0; n < EACH; n++)
        for (unsigned i = 0; i < QPS; i++) {
            struct side *a = &m->p[i].a;
            uint8_t *msg = a->buf + n * SLOT;
            msg[0] = (uint8_t)i;
            msg[1] = (uint8_t)n;
            assert_int_equal(side_post(a, &m->p[i].b, IBV_WR_SEND, n, n * SLOT, SLOT, 0, 0), 0);
        }
    for (unsigned k = 0; k < QPS * EACH; k++) {
        struct ibv_wc wc = poll_one(m->cq);
        const uint8_t *msg = m->keep.b.buf + wc.wr_id * SLOT;
        unsigned from = index_of(m, wc.qp_num);
        assert_int_equal(msg[0], from);
        assert_int_equal(msg[1], got[from]++);
        post(m->srq, &m->keep.b, wc.wr_id, wc.wr_id * SLOT, SLOT);
    }
    many_close(m, QPS);
}

#define FLOOD 200

/**
 * One peer has flooded its QP with messages before the others send one each: with one receive at a
 * time, they come in turn, whatever waits at the first.
 */
static void who_has_much_does_not_stop_the_others(void **state)
{
    enum { others = 6 };
    struct many *m = &many;
    unsigned turns = 0, seen = 0;
    (void)state;
    many_open(m, 1 + others, 8);
    for (unsigned n = 0; n < FLOOD; n++) {
        assert_int_equal(side_post(&m->p[0].a, &m->p[0].b, IBV_WR_SEND, n, 0, 1000, 0, 0), 0);
        assert_int_equal(side_poll(&m->p[0].a).status, IBV_WC_SUCCESS);
    }
    for (unsigned i = 1; i <= others; i++) {
        assert_int_equal(side_post(&m->p[i].a, &m->p[i].b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        assert_int_equal(side_poll(&m->p[i].a).status, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < 50; i++) { /* all of them have begun to wait */
        struct ibv_wc wc;
        assert_int_equal(ibv_poll_cq(m->cq, 1, &wc), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    while (seen < others) {
        post(m->srq, &m->keep.b, 0, 0, 1000);
        seen += index_of(m, poll_one(m->cq).qp_num) != 0;
        turns++;
    }
    assert_in_range(turns, others, 3 * others);
    for (unsigned n = 0; n < FLOOD + others - turns; n++) {
        post(m->srq, &m->keep.b, 0, 0, 1000);
        poll_one(m->cq);
    }
    many_close(m, 1 + others);
}

/** Receives posted together go round those that wait, one each at a time. */
static void a_list_of_receives_is_shared_out(void **state)
{
    enum { qps = 4, each = 10 };
    struct many *m = &many;
    struct ibv_recv_wr wr[qps * 2], *bad;
    struct ibv_sge sge = {0};
    unsigned got[qps] = {0};
    (void)state;
    many_open(m, qps, qps * each);
    for (unsigned i = 0; i < qps; i++)
        for (unsigned n = 0; n < each; n++) {
            assert_int_equal(side_post(&m->p[i].a, &m->p[i].b, IBV_WR_SEND, n, 0, 1000, 0, 0), 0);
            assert_int_equal(side_poll(&m->p[i].a).status, IBV_WC_SUCCESS);
        }
    for (int i = 0; i < 50; i++) {
        struct ibv_wc wc;
        assert_int_equal(ibv_poll_cq(m->cq, 1, &wc), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    sge = (struct ibv_sge){(uintptr_t)m->keep.b.buf, 1000, m->keep.b.mr->lkey};
    for (unsigned i = 0; i < qps * 2; i++)
        wr[i] = (struct ibv_recv_wr){
            .sg_list = &sge, .num_sge = 1, .next = i + 1 < qps * 2 ? &wr[i + 1] : NULL};
    for (unsigned round = 1; round <= each / 2; round++) {
        assert_int_equal(ibv_post_srq_recv(m->srq, wr, &bad), 0);
        for (unsigned i = 0; i < qps * 2; i++)
            got[index_of(m, poll_one(m->cq).qp_num)]++;
        for (unsigned i = 0; i < qps; i++)
            assert_int_equal(got[i], round * 2);
    }
    many_close(m, qps);
}

static void wrong_arguments_are_refused(void **state)
{
    struct pair p;
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    struct ibv_srq_attr attr = {.srq_limit = 9, .max_wr = 4};
    struct ibv_srq_init_attr none = {.attr = {.max_wr = 0}};
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    assert_null(ibv_create_srq(p.b.pd, &none));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_srq(p.b.srq), EBUSY);
    assert_int_equal(ibv_post_recv(p.b.id->qp, &wr, &bad), EINVAL);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    pair_close(&p, 1);
}

static void the_last_wqe_event_comes_at_the_end(void **state)
{
    struct pair p;
    struct ibv_async_event ev;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(rdma_disconnect(p.a.id), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&ev);
    side_poll_none(&p.b, 5); /* receives of an SRQ are not flushed */
    pair_close(&p, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_are_used_in_order),
        cmocka_unit_test(late_receives_are_waited_for),
        cmocka_unit_test(the_limit_fires_once),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(the_last_wqe_event_comes_at_the_end),
        cmocka_unit_test(the_limit_is_armed_again_by_modify),
        cmocka_unit_test(destroy_waits_for_the_acknowledgement),
        cmocka_unit_test(its_domain_may_be_another),
        cmocka_unit_test(the_extended_call_makes_basic_ones),
        cmocka_unit_test(each_message_is_received_once),
        cmocka_unit_test(who_has_much_does_not_stop_the_others),
        cmocka_unit_test(a_list_of_receives_is_shared_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

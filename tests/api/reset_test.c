/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IBV_QPS_RESET of queue pairs with a connection, in whatever condition: the connection ends, what
 * was posted is forgotten without a completion, and the queue pair begins anew under its number.
 */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define HALF    (SIDE_BYTES / 2)
#define QUARTER (SIDE_BYTES / 4)

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.cur_qp_state, attr.qp_state);
    assert_int_equal(qp->state, attr.qp_state);
    return attr.qp_state;
}

static void to_init(struct side *s)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(s->id->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
}

/** To RESET, which takes nothing, and on to INIT. */
static void reset(struct side *s)
{
    struct ibv_qp *qp = s->id->qp;
    uint32_t number = qp->qp_num;
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(qp_to_state(s->id->qp, IBV_QPS_RESET), 0);
    assert_int_equal(state_of(qp), IBV_QPS_RESET);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
    assert_int_equal(attr.qp_access_flags, 0);
    assert_int_equal(attr.max_rd_atomic, 0);
    assert_int_equal(attr.timeout, 0);
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
    assert_int_equal(side_post(s, s, IBV_WR_SEND, 1, 0, 8, 0, 0), EINVAL);
    assert_int_equal(qp_to_state(s->id->qp, IBV_QPS_ERR), EINVAL);
    assert_int_equal(qp_to_state(s->id->qp, IBV_QPS_RTS), EINVAL);
    to_init(s);
    assert_int_equal(qp->qp_num, number);
}

static void drop_completions(struct side *s)
{
    struct ibv_wc wc[16];
    while (ibv_poll_cq(s->cq, 16, wc) > 0)
        ;
}

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

/* ---- a life: a connection of the two queue pairs, by their numbers ---- */

struct life {
    struct rdma_cm_id *a, *b;
};

static struct rdma_cm_id *request(struct side *s)
{
    struct rdma_cm_event *ev;
    assert_int_equal(rdma_get_cm_event(s->events, &ev), 0);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    return id;
}

static void life_ask(struct pair *p, struct life *l)
{
    struct rdma_conn_param param = {
        .initiator_depth = 4, .responder_resources = 4, .qp_num = p->a.id->qp->qp_num};
    struct sockaddr_storage to = p->a.id->route.addr.dst_storage;
    assert_int_equal(rdma_create_id(p->a.events, &l->a, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(l->a, NULL, (struct sockaddr *)&to, 2000), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(l->a, 2000), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    assert_int_equal(rdma_connect(l->a, &param), 0);
    l->b = request(&p->b);
}

static void life_begin(struct pair *p, struct life *l)
{
    struct rdma_conn_param param = {
        .initiator_depth = 4, .responder_resources = 4, .qp_num = p->b.id->qp->qp_num};
    life_ask(p, l);
    assert_int_equal(rdma_accept(l->b, &param), 0);
    assert_int_equal(side_event(&p->a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(side_event(&p->b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void life_end(struct life *l)
{
    if (l->a)
        assert_int_equal(rdma_destroy_id(l->a), 0);
    if (l->b)
        assert_int_equal(rdma_destroy_id(l->b), 0);
}

static void succeeds(struct side *s, uint64_t wr_id)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.qp_num, s->id->qp->qp_num);
}

/** Every kind of message, from @p s to @p peer, with long ones among them. */
static void traffic(struct side *s, struct side *peer)
{
    static uint8_t seed;
    memset(s->buf, ++seed, HALF);
    side_recv(peer, 10, HALF, HALF);
    assert_int_equal(side_post(s, peer, IBV_WR_SEND, 20, 0, HALF, 0, 0), 0);
    succeeds(s, 20);
    succeeds(peer, 10);
    assert_memory_equal(peer->buf + HALF, s->buf, HALF);

    memset(s->buf, ++seed, HALF);
    assert_int_equal(side_post(s, peer, IBV_WR_RDMA_WRITE, 21, 0, HALF, HALF, 0), 0);
    succeeds(s, 21);
    assert_int_equal(side_post(s, peer, IBV_WR_RDMA_READ, 22, HALF, HALF, HALF, 0), 0);
    succeeds(s, 22);
    assert_memory_equal(s->buf + HALF, s->buf, HALF);

    side_recv(peer, 11, 0, 0);
    assert_int_equal(side_post(s, peer, IBV_WR_RDMA_WRITE_WITH_IMM, 23, 0, 8, 0, 0), 0);
    succeeds(s, 23);
    succeeds(peer, 11);
    side_poll_none(s, 2);
}

/** The first life of the pair is over. */
static void reset_both(struct pair *p)
{
    reset(&p->a);
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    reset(&p->b);
}

/** One more goes well, and is the last. */
static void last_life(struct pair *p)
{
    struct life l;
    life_begin(p, &l);
    traffic(&p->a, &p->b);
    life_end(&l);
    pair_close(p, 0);
}

/* ---- endings: what is the matter with "a" when it is reset ---- */

static void idle(struct pair *p, struct life *l)
{
    (void)p;
    (void)l;
}

static void busy(struct pair *p, struct life *l)
{
    (void)l;
    for (unsigned i = 0; i < 4; i++) {
        side_recv(&p->a, 100 + i, 0, 8);
        side_recv(&p->b, 100 + i, 0, 8);
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, i, 0, QUARTER, QUARTER, 0), 0);
        assert_int_equal(
            side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, HALF, QUARTER, 3 * QUARTER, 0), 0);
        assert_int_equal(side_post(&p->b, &p->a, IBV_WR_RDMA_READ, i, 0, QUARTER, QUARTER, 0), 0);
        assert_int_equal(
            side_post(&p->b, &p->a, IBV_WR_RDMA_WRITE, i, HALF, QUARTER, 3 * QUARTER, 0), 0);
    }
}

/** Messages that no receive was posted for, beyond what is held for it. */
static void crowded(struct pair *p, struct life *l)
{
    (void)l;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(side_post(&p->b, &p->a, IBV_WR_SEND, i, 0, HALF, 0, 0), 0);
    pause_ms(20);
}

/** The first part of a long message is placed, the rest comes when it is over. */
static void half_received(struct pair *p, struct life *l)
{
    (void)l;
    side_recv(&p->a, 1, 0, SIDE_BYTES);
    side_recv(&p->a, 2, 0, SIDE_BYTES);
    assert_int_equal(side_post(&p->b, &p->a, IBV_WR_SEND, 1, 0, SIDE_BYTES, 0, 0), 0);
}

static void draining(struct pair *p, struct life *l)
{
    (void)l;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, i, 0, HALF, HALF, 0), 0);
    assert_int_equal(ibv_modify_qp(p->a.id->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
                     0);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 9, 0, 8, 0, 0), 0);
}

static void in_error(struct pair *p, struct life *l)
{
    (void)l;
    side_recv(&p->a, 1, 0, 8);
    assert_int_equal(qp_to_state(p->a.id->qp, IBV_QPS_ERR), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_WR_FLUSH_ERR);
}

/** "b" refuses an access, and its Terminate may be on its way or here. */
static void terminated(struct pair *p, struct life *l)
{
    (void)l;
    struct side nowhere = p->b;
    struct ibv_mr no_region = {.rkey = ~p->b.mr->rkey};
    nowhere.mr = &no_region;
    assert_int_equal(side_post(&p->a, &nowhere, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0), 0);
    if (p->b.buf[0] % 2)
        assert_int_not_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

static void hung_up(struct pair *p, struct life *l)
{
    side_recv(&p->a, 1, 0, 8);
    assert_int_equal(rdma_disconnect(l->b), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_WR_FLUSH_ERR);
}

static void hanging_up(struct pair *p, struct life *l)
{
    busy(p, l);
    assert_int_equal(rdma_disconnect(l->a), 0);
}

static void abandoned(struct pair *p, struct life *l)
{
    busy(p, l);
    assert_int_equal(rdma_destroy_id(l->a), 0);
    l->a = NULL;
}

static const struct {
    const char *what;
    void (*happens)(struct pair *p, struct life *l);
} endings[] = {
    {"idle", idle},
    {"busy", busy},
    {"crowded", crowded},
    {"half received", half_received},
    {"draining", draining},
    {"in error", in_error},
    {"terminated", terminated},
    {"hung up", hung_up},
    {"hanging up", hanging_up},
    {"abandoned", abandoned},
};

static void take_async_events(struct ibv_context *ctx)
{
    struct ibv_async_event ev;
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    while (poll(&p, 1, 0) == 1) {
        assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
        ibv_ack_async_event(&ev);
    }
}

static void many_lives(void **state)
{
    struct pair p;
    struct life l;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 4, .send_wr = 16, .recv_wr = 16});
    traffic(&p.a, &p.b);
    reset_both(&p);
    for (unsigned i = 0; i < 3 * sizeof(endings) / sizeof(endings[0]); i++) {
        unsigned kind = i % (sizeof(endings) / sizeof(endings[0]));
        print_message("life %u: %s\n", i, endings[kind].what);
        life_begin(&p, &l);
        traffic(&p.a, &p.b);
        traffic(&p.b, &p.a);
        endings[kind].happens(&p, &l);
        reset(&p.a);
        drop_completions(&p.a);
        side_poll_none(&p.a, 5);
        if (l.a)
            side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        assert_int_equal(state_of(p.a.id->qp), IBV_QPS_INIT);
        assert_int_equal(state_of(p.b.id->qp), IBV_QPS_ERR);
        reset(&p.b);
        drop_completions(&p.b);
        life_end(&l);
        take_async_events(p.a.id->verbs);
    }
    life_begin(&p, &l);
    traffic(&p.a, &p.b);
    traffic(&p.b, &p.a);
    life_end(&l);
    pair_close(&p, 0);
}

/* ---- what is forgotten and what is not ---- */

static void what_was_posted_does_not_complete(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 8, .recv_wr = 8});
    for (unsigned i = 0; i < 8; i++)
        side_recv(&p.b, i, 0, 8);
    for (unsigned i = 0; i < 8; i++)
        side_recv(&p.a, i, 0, 8);
    assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_SQD), 0); /* so that it does not go out */
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
    reset(&p.a);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(&p.a, 20);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_poll(&p.b).status, IBV_WC_WR_FLUSH_ERR);

    /* Both queues are empty. */
    for (unsigned i = 0; i < 8; i++)
        side_recv(&p.a, 50 + i, 0, 8);
    assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_ERR), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_poll(&p.a).wr_id, 50 + i);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 60 + i, 0, 8, 0, 0), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_poll(&p.a).wr_id, 60 + i);
    pair_close(&p, 0);
}

/** As when a queue pair is destroyed: what is complete is the program's. */
static void what_is_complete_stays(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 2, .recv_wr = 2});
    for (unsigned i = 0; i < 2; i++) {
        side_recv(&p.b, i, 0, 8);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 10 + i, 0, 8, 0, 0), 0);
        succeeds(&p.a, 10 + i);
    }
    pause_ms(20);
    reset(&p.b);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    struct ibv_recv_wr wr = {.wr_id = 2}, *bad;
    assert_int_equal(ibv_post_recv(p.b.id->qp, &wr, &bad), ENOMEM); /* they hold their places */
    succeeds(&p.b, 0);
    succeeds(&p.b, 1);
    assert_int_equal(ibv_post_recv(p.b.id->qp, &wr, &bad), 0);
    pair_close(&p, 0);
}

/** Receives of a shared queue are not the queue pair's; and it has not taken its last one. */
static void a_shared_receive_queue_goes_on(void **state)
{
    struct pair p;
    struct life l;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8, .send_wr = 8});
    struct pollfd async = {.fd = p.a.id->verbs->async_fd, .events = POLLIN};
    side_recv(&p.b, 1, 0, 8);
    side_recv(&p.b, 2, 0, 8);
    reset(&p.b);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(&p.b, 5);
    assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_RESET), 0);
    to_init(&p.a);
    struct ibv_async_event ev;
    while (poll(&async, 1, 20) == 1) {
        assert_int_equal(ibv_get_async_event(p.a.id->verbs, &ev), 0);
        assert_ptr_equal(ev.element.qp, p.a.id->qp); /* which was in error */
        ibv_ack_async_event(&ev);
    }

    life_begin(&p, &l);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 10 + i, 0, 8, 0, 0), 0);
        succeeds(&p.a, 10 + i);
        succeeds(&p.b, i);
    }
    life_end(&l);
    pair_close(&p, 0);
}

/** A window of type 2 belongs to the life in which it was bound. */
static void windows_are_free(void **state)
{
    struct pair p;
    struct life l;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 1});
    struct ibv_mr *mr =
        ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(p.b.pd, IBV_MW_TYPE_2);
    assert_non_null(mr);
    assert_non_null(mw);
    struct ibv_send_wr *bad,
        wr = {.wr_id = 1,
              .opcode = IBV_WR_BIND_MW,
              .send_flags = IBV_SEND_SIGNALED,
              .bind_mw = {.mw = mw,
                          .rkey = ibv_inc_rkey(mw->rkey),
                          .bind_info = {mr, (uintptr_t)p.b.buf, 64, IBV_ACCESS_REMOTE_WRITE}}};
    assert_int_equal(ibv_post_send(p.b.id->qp, &wr, &bad), 0);
    succeeds(&p.b, 1);
    assert_int_equal(ibv_dereg_mr(mr), EBUSY);
    reset(&p.b);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    reset(&p.a);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    life_begin(&p, &l);
    struct side window = p.b;
    struct ibv_mr old = {.rkey = wr.bind_mw.rkey};
    window.mr = &old;
    p.b.buf[0] = 1;
    p.a.buf[0] = 2;
    assert_int_equal(side_post(&p.a, &window, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(p.b.buf[0], 1);
    take_async_events(p.a.id->verbs);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    life_end(&l);
    pair_close(&p, 0);
}

/* ---- without a connection ---- */

static void while_it_connects(void **state)
{
    struct pair p;
    struct life l;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 1});
    reset_both(&p);
    for (int i = 0; i < 3; i++) {
        struct rdma_conn_param param = {.qp_num = p.b.id->qp->qp_num};
        side_recv(&p.a, 1, 0, 8);
        life_ask(&p, &l);
        reset(&p.a);
        assert_int_not_equal(side_event(&p.a, RDMA_CM_EVENT_CONNECT_ERROR), 0);
        pause_ms(300); /* the other end hears of it, on a slow machine, too */
        assert_int_equal(rdma_accept(l.b, &param), -1);
        assert_int_equal(errno, ECONNRESET);
        side_poll_none(&p.a, 2);
        life_end(&l);
    }
    last_life(&p);
}

static void after_an_error_without_a_connection(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 1});
    reset_both(&p);
    for (int i = 0; i < 2; i++) {
        side_recv(&p.a, 1, 0, 8);
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_ERR), 0);
        assert_int_equal(side_poll(&p.a).status, IBV_WC_WR_FLUSH_ERR);
        reset(&p.a);
    }
    last_life(&p);
}

/* ---- with other threads ---- */

struct poster {
    struct pair *p;
    atomic_bool over;
};

static void *post_for_ever(void *arg)
{
    struct poster *x = arg;
    struct side *s = &x->p->a;
    struct ibv_sge sge = {(uintptr_t)s->buf, 64, s->mr->lkey};
    while (!atomic_load(&x->over)) {
        struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
        struct ibv_wc wc[8];
        (void)ibv_post_recv(s->id->qp, &recv, &bad_recv);
        (void)side_post(s, &x->p->b, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0);
        (void)ibv_poll_cq(s->cq, 8, wc);
    }
    return NULL;
}

static void threads_post_meanwhile(void **state)
{
    struct pair p;
    struct life l;
    pthread_t thread[2];
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 4, .send_wr = 8, .recv_wr = 8});
    struct poster x = {.p = &p};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, post_for_ever, &x), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_RESET), 0);
        assert_int_equal(state_of(p.a.id->qp), IBV_QPS_RESET);
        side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        assert_int_equal(qp_to_state(p.b.id->qp, IBV_QPS_RESET), 0);
        if (i > 0)
            life_end(&l);
        life_begin(&p, &l);
        pause_ms(2);
        assert_int_equal(state_of(p.a.id->qp), IBV_QPS_RTS);
    }
    atomic_store(&x.over, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    life_end(&l);
    pair_close(&p, 0);
}

static void *post_receives(void *arg)
{
    struct poster *x = arg;
    struct side *s = &x->p->a;
    while (!atomic_load(&x->over)) {
        struct ibv_recv_wr recv = {.wr_id = 1}, *bad;
        (void)ibv_post_recv(s->id->qp, &recv, &bad);
    }
    return NULL;
}

/** What a thread posts before and during a RESET is of the old life, and flushes nothing of the new
 * one. */
static void a_late_receive_stays_in_its_life(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.recv_wr = 8});
    reset_both(&p);
    for (int i = 0; i < 1000; i++) {
        struct poster x = {.p = &p};
        pthread_t thread;
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_ERR), 0);
        assert_int_equal(pthread_create(&thread, NULL, post_receives, &x), 0);
        for (int k = 0; k < 50; k++)
            drop_completions(&p.a);
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_RESET), 0);
        atomic_store(&x.over, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        drop_completions(&p.a);

        to_init(&p.a);
        side_recv(&p.a, 2, 0, 8);
        struct ibv_wc wc;
        assert_int_equal(ibv_poll_cq(p.a.cq, 1, &wc), 0);
        assert_int_equal(qp_to_state(p.a.id->qp, IBV_QPS_ERR), 0);
        wc = side_poll(&p.a);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.wr_id, 2);
        reset(&p.a);
    }
    last_life(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_lives),
        cmocka_unit_test(what_was_posted_does_not_complete),
        cmocka_unit_test(what_is_complete_stays),
        cmocka_unit_test(a_shared_receive_queue_goes_on),
        cmocka_unit_test(windows_are_free),
        cmocka_unit_test(while_it_connects),
        cmocka_unit_test(after_an_error_without_a_connection),
        cmocka_unit_test(threads_post_meanwhile),
        cmocka_unit_test(a_late_receive_stays_in_its_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

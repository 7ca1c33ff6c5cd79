/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pongs in which a Send completes before the receive of the answer to it, at either end:
 * polled, with events, with two queues on one channel.
 */
#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ROUNDS   3000
#define PATIENCE 120 /* s, if the machine has much else to do */
#define BYTES    8
#define SEND     1
#define RECV     2

struct player {
    struct side *side;
    struct ibv_comp_channel *channel; /* NULL: it polls */
    struct ibv_cq *send_cq, *recv_cq;
    bool begins;
    unsigned rounds, early; /* answers whose question completed later */
    int error;              /* of a completion, or of a call */
};

static int post_send(struct player *p)
{
    struct ibv_sge sge = {(uintptr_t)p->side->buf, BYTES, p->side->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = SEND, .sg_list = &sge, .num_sge = 1};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return ibv_post_send(p->side->id->qp, &wr, &bad);
}

static int post_recv(struct player *p)
{
    struct ibv_sge sge = {(uintptr_t)p->side->buf + BYTES, BYTES, p->side->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = RECV, .sg_list = &sge, .num_sge = 1};
    return ibv_post_recv(p->side->id->qp, &wr, &bad);
}

/** Takes what is there. @return the wr_id of the first, 0: there is none */
static uint64_t take(struct player *p, struct ibv_cq *cq, unsigned *got)
{
    struct ibv_wc wc;
    uint64_t first = 0;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
        if (wc.status)
            p->error = (int)wc.status;
        first = first ? first : wc.wr_id;
        *got |= (unsigned)wc.wr_id;
    }
    if (n < 0)
        p->error = n;
    return first;
}

/** The queue that the next event is of, armed again. */
static struct ibv_cq *next_event(struct player *p)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(p->channel, &cq, &context)) {
        p->error = errno;
        return p->recv_cq;
    }
    ibv_ack_cq_events(cq, 1);
    p->error |= ibv_req_notify_cq(cq, 0);
    return cq;
}

/** Waits for those completions that are due. @return the wr_id of the first */
static uint64_t wait_for(struct player *p, unsigned due)
{
    unsigned got = 0;
    uint64_t first = 0;
    while ((got & due) != due && !p->error) {
        struct ibv_cq *cq = p->channel ? next_event(p) : p->send_cq;
        uint64_t now = take(p, cq, &got);
        first = first ? first : now;
    }
    return first;
}

static void *play(void *arg)
{
    struct player *p = arg;
    if (!p->begins)
        wait_for(p, RECV);
    while (p->rounds < ROUNDS && !p->error) {
        bool last = !p->begins && p->rounds + 1 == ROUNDS;
        p->error |= post_recv(p);
        p->error |= post_send(p);
        if (wait_for(p, last ? SEND : SEND | RECV) == RECV)
            p->early++;
        p->rounds++;
    }
    return NULL;
}

static void open_player(struct player *p, struct side *s, struct ibv_comp_channel *channel)
{
    *p = (struct player){.side = s, .channel = channel};
    p->send_cq = s->id->qp->send_cq;
    p->recv_cq = s->id->qp->recv_cq;
    if (!channel)
        return;
    assert_int_equal(ibv_req_notify_cq(p->send_cq, 0), 0);
    if (p->recv_cq != p->send_cq)
        assert_int_equal(ibv_req_notify_cq(p->recv_cq, 0), 0);
}

static void join(pthread_t t)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    assert_int_equal(pthread_timedjoin_np(t, NULL, &end), 0);
}

static void check(const struct player *p)
{
    assert_int_equal(p->error, 0);
    assert_int_equal(p->rounds, ROUNDS);
    assert_int_equal(p->early, 0);
}

/** Each end has a thread of its own. */
static void ping_pong(struct pair *p, struct player *a, struct player *b)
{
    pthread_t ta, tb;
    a->begins = true;
    assert_int_equal(post_recv(b), 0);
    assert_int_equal(pthread_create(&ta, NULL, play, a), 0);
    assert_int_equal(pthread_create(&tb, NULL, play, b), 0);
    join(ta);
    join(tb);
    check(a);
    check(b);
    pair_close(p, 1);
}

static void when_polled(void **state)
{
    struct pair p;
    struct player a, b;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    open_player(&a, &p.a, NULL);
    open_player(&b, &p.b, NULL);
    ping_pong(&p, &a, &b);
}

static void with_events(void **state)
{
    struct pair p;
    struct player a, b;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    open_player(&a, &p.a, p.a.channel);
    open_player(&b, &p.b, p.b.channel);
    ping_pong(&p, &a, &b);
}

/** The events of both come in order, too. */
static void with_two_queues_on_a_channel(void **state)
{
    struct pair keep, p;
    struct player a, b;
    struct pair_conf conf = {0};
    (void)state;
    pair_open(&keep, &conf);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(keep.b.id->verbs);
    conf.send_cq = ibv_create_cq(keep.b.id->verbs, 8, NULL, channel, 0);
    conf.recv_cq = ibv_create_cq(keep.b.id->verbs, 8, NULL, channel, 0);
    assert_true(conf.send_cq && conf.recv_cq);
    pair_open(&p, &conf);
    open_player(&a, &p.a, NULL);
    open_player(&b, &p.b, channel);
    ping_pong(&p, &a, &b);
    assert_int_equal(ibv_destroy_cq(conf.send_cq), 0);
    assert_int_equal(ibv_destroy_cq(conf.recv_cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    pair_close(&keep, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_polled),
        cmocka_unit_test(with_events),
        cmocka_unit_test(with_two_queues_on_a_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk over TCP on loopback. Who makes progress varies: polls, a program that waits on its
 * completion channel, the engine while the program does nothing.
 */
#include "cm_kit.h"
#include "walk/walk.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define STEPS   20000
#define ROUNDS  4 /* between settlements */
#define DEPTH   8
#define IDLE_NS 200000
#define WAIT_MS 2

struct links {
    struct cm_sides cm;
    struct rdma_cm_id *id[WALK_LINKS_MAX][2];
};

/** Waits a moment for an event of a channel whose CQs are armed. */
static void wait_for_event(struct walk_end *e)
{
    struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ibv_req_notify_cq(e->cq[i], 0), 0);
    if (poll(&p, 1, WAIT_MS) != 1)
        return;
    assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
    assert_true(cq == e->cq[0] || cq == e->cq[1]);
    ibv_ack_cq_events(cq, 1);
}

static void move(struct walk *w, void *arg)
{
    (void)arg;
    switch (walk_random(w, 200)) {
    case 0:
        wait_for_event(&w->end[walk_random(w, 2)]);
        break;
    case 1:
        nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
        break;
    }
}

static struct rdma_cm_id *resolve(struct links *l)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(l->cm.a, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&l->cm.addr, 2000), 0);
    assert_int_equal(cm_expect(l->cm.a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(cm_expect(l->cm.a, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    return id;
}

static void add_qp(struct walk *w, struct links *l, unsigned link, int s)
{
    struct ibv_qp_init_attr attr = walk_qp_attr(w, link, s);
    struct rdma_cm_id *id = l->id[link][s];
    assert_int_equal(rdma_create_qp(id, w->end[s].pd, &attr), 0);
    walk_add_qp(w, link, s, id->qp);
}

/** The id of side a is resolved. */
static void connect_link(struct walk *w, struct links *l, unsigned link)
{
    uint8_t ord = (uint8_t)(1 + walk_random(w, DEPTH));
    struct rdma_conn_param param = {.initiator_depth = ord, .responder_resources = DEPTH};
    add_qp(w, l, link, 0);
    assert_int_equal(rdma_connect(l->id[link][0], &param), 0);
    l->id[link][1] = cm_request(l->cm.b);
    add_qp(w, l, link, 1);
    assert_int_equal(rdma_accept(l->id[link][1], &param), 0);
    assert_int_equal(cm_expect(l->cm.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(l->cm.b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void disconnect_link(struct walk *w, struct links *l, unsigned link)
{
    assert_int_equal(rdma_disconnect(l->id[link][walk_random(w, 2)]), 0);
    assert_int_equal(cm_expect(l->cm.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(l->cm.b, RDMA_CM_EVENT_DISCONNECTED), 0);
}

/** @p settled: everything has its end before the connections have. */
static void walk(bool settled)
{
    struct links l = {0};
    uint64_t steps;
    struct walk *w = walk_new(STEPS, &steps);
    w->move = move;
    w->ext = true;
    cm_open(&l.cm, NULL);
    l.id[0][0] = resolve(&l);
    walk_open(w, l.id[0][0]->verbs, l.id[0][0]->verbs);
    for (unsigned i = 0; i < w->links; i++) {
        if (i > 0)
            l.id[i][0] = resolve(&l);
        connect_link(w, &l, i);
    }
    for (int i = 0; i < ROUNDS; i++) {
        walk_run(w, steps / ROUNDS);
        walk_settle(w);
    }
    if (!settled)
        walk_run(w, steps / ROUNDS / 2);
    print_message("%llu completions over %u links\n", (unsigned long long)w->completions, w->links);
    w->ending = true;
    for (unsigned i = 0; i < w->links; i++)
        disconnect_link(w, &l, i);
    walk_end(w);
    for (unsigned i = 0; i < w->links; i++)
        for (int s = 0; s < 2; s++) {
            rdma_destroy_qp(l.id[i][s]);
            assert_int_equal(rdma_destroy_id(l.id[i][s]), 0);
        }
    walk_close(w);
    cm_close(&l.cm);
}

static void to_the_end(void **state)
{
    (void)state;
    walk(true);
}

static void cut_short(void **state)
{
    (void)state;
    walk(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

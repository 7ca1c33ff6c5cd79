/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk over connections within a host. Who makes progress varies: polls, a program that
 * waits on its completion channel, the engine while the program does nothing; or threads that poll
 * the four CQs beside the one that walks, and so have shards of their own. Between its rounds some
 * connections are ended, in the midst of their work, too, and others made instead. At the same time
 * on a RoCE device, and over rings.
 */
#include "cm_kit.h"
#include "walk/walk.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STEPS   20000
#define ROUND   2500 /* steps */
#define DEPTH   8
#define IDLE_NS 200000
#define WAIT_MS 2
#define CQS     4
#define PLACES  64

struct links {
    struct cm_sides cm;
    struct rdma_cm_id *id[WALK_LINKS_MAX][2];
};

/* ---- threads that poll ---- */

/** What a thread took of a CQ, for the walk, which takes it in this order. */
struct taken {
    struct ibv_cq *cq;
    struct ibv_wc wc[PLACES];
    atomic_uint head, tail;
};

static struct taken taken[CQS];
static atomic_bool polling;

struct poller {
    pthread_t thread;
    int first, step;   /* of the CQs, those that it polls */
    atomic_int result; /* the last, of ibv_poll_cq() */
    atomic_uint rounds;
};

static int fetch(struct taken *t)
{
    uint32_t tail = atomic_load(&t->tail), room = PLACES - (tail - atomic_load(&t->head)),
             here = PLACES - tail % PLACES;
    int n = (int)(room < here ? room : here);
    n = n ? ibv_poll_cq(t->cq, n, &t->wc[tail % PLACES]) : 0;
    if (n > 0)
        atomic_store(&t->tail, tail + (uint32_t)n);
    return n;
}

static void *keep_polling(void *arg)
{
    struct poller *p = arg;
    for (unsigned empty = 0; atomic_load(&polling) && p->result >= 0;) {
        int n = 0;
        for (int i = p->first; i < CQS && p->result >= 0; i += p->step)
            n += p->result = fetch(&taken[i]);
        atomic_fetch_add(&p->rounds, 1);
        if (n <= 0 && ++empty % 64 == 0)
            sched_yield(); /* there may be fewer processors than threads */
    }
    return NULL;
}

/** Instead of ibv_poll_cq(). */
static int take(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    struct taken *t = taken;
    while (t->cq != cq)
        t++;
    uint32_t head = atomic_load(&t->head), there = atomic_load(&t->tail) - head;
    int got = 0;
    for (; got < n && got < (int)there; got++)
        wc[got] = t->wc[(head + (uint32_t)got) % PLACES];
    atomic_store(&t->head, head + (uint32_t)got);
    return got;
}

static void start_threads(struct walk *w, struct poller *p, int n)
{
    for (int i = 0; i < CQS; i++)
        taken[i] = (struct taken){.cq = w->end[i / 2].cq[i % 2]};
    w->poll = n ? take : ibv_poll_cq;
    atomic_store(&polling, true);
    for (int i = 0; i < n; i++) {
        p[i] = (struct poller){.first = i, .step = n};
        assert_int_equal(pthread_create(&p[i].thread, NULL, keep_polling, &p[i]), 0);
    }
}

/** What is in a CQ is taken, or there is no place for it. */
static void have_looked(struct poller *p, int n)
{
    for (int i = 0; i < n; i++)
        for (unsigned before = atomic_load(&p[i].rounds);
             p[i].result >= 0 && atomic_load(&p[i].rounds) - before < 2;)
            sched_yield();
}

static void stop_threads(struct poller *p, int n)
{
    atomic_store(&polling, false);
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(p[i].thread, NULL), 0);
        assert_true(p[i].result >= 0);
    }
}

/* ---- the walk ---- */

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
    struct rdma_conn_param param = {
        .initiator_depth = ord, .responder_resources = DEPTH, .rnr_retry_count = 7};
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
    for (int s = 0; s < 2; s++)
        assert_int_equal(rdma_disconnect(l->id[link][s]), 0);
}

static void drop_end(struct links *l, unsigned link, int s)
{
    rdma_destroy_qp(l->id[link][s]);
    assert_int_equal(rdma_destroy_id(l->id[link][s]), 0);
}

static bool uses_srq(const struct walk *w, unsigned link)
{
    return w->side[link][0].queue->srq || w->side[link][1].queue->srq;
}

/** One end is gone without a word, the other one is told. */
static void leave_link(struct walk *w, struct links *l, unsigned link)
{
    int first = (int)walk_random(w, 2);
    walk_purge(&w->side[link][first]);
    drop_end(l, link, first);
    assert_int_equal(cm_expect(first ? l->cm.a : l->cm.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(rdma_disconnect(l->id[link][!first]), 0);
    walk_drain(&w->side[link][!first]);
    drop_end(l, link, !first);
}

/** @param n  how many threads poll: completions may be lost if none does */
static void renew_link(struct walk *w, struct links *l, unsigned link, struct poller *p, int n)
{
    time_t since = time(NULL);
    walk_ending(w, link);
    if (!n && !uses_srq(w, link) && walk_random(w, 2)) {
        leave_link(w, l, link);
    } else {
        disconnect_link(w, l, link);
        for (int s = 0; s < 2; s++)
            walk_drain(&w->side[link][s]);
        do /* what it had of a SRQ may not be in a thread's hand yet */
            have_looked(p, n);
        while (walk_wait_on(w, &since));
        for (int s = 0; s < 2; s++)
            drop_end(l, link, s);
    }
    walk_renew(w, link);
    l->id[link][0] = resolve(l);
    connect_link(w, l, link);
}

/**
 * @param settled  everything has its end before the connections have
 * @param threads  that poll; 0: the one that walks does
 */
static void walk(bool settled, int threads)
{
    struct links l = {0};
    struct poller pollers[CQS];
    uint64_t steps;
    struct walk *w = walk_new(threads ? STEPS / 4 : STEPS, &steps);
    w->move = move;
    w->ext = true;
    cm_open(&l.cm, NULL);
    l.id[0][0] = resolve(&l);
    w->acknowledged = l.id[0][0]->verbs->device->transport_type == IBV_TRANSPORT_IB;
    walk_open(w, l.id[0][0]->verbs, l.id[0][0]->verbs);
    for (unsigned i = 0; i < w->links; i++) {
        if (i > 0)
            l.id[i][0] = resolve(&l);
        connect_link(w, &l, i);
    }
    start_threads(w, pollers, threads);
    for (uint64_t done = 0; done < steps; done += ROUND) {
        walk_run(w, ROUND);
        if (walk_random(w, 2))
            walk_settle(w);
        for (unsigned i = 0; i < w->links; i++)
            if (walk_random(w, 2))
                renew_link(w, &l, i, pollers, threads);
    }
    walk_run(w, ROUND);
    if (settled)
        walk_settle(w);
    walk_say(w);
    for (unsigned i = 0; i < w->links; i++)
        disconnect_link(w, &l, i);
    walk_end(w);
    stop_threads(pollers, threads);
    for (unsigned i = 0; i < w->links; i++)
        for (int s = 0; s < 2; s++)
            drop_end(&l, i, s);
    walk_close(w);
    cm_close(&l.cm);
}

static void to_the_end(void **state)
{
    (void)state;
    walk(true, 0);
}

static void cut_short(void **state)
{
    (void)state;
    walk(false, 0);
}

static void with_threads_that_poll(void **state)
{
    (void)state;
    for (int threads = 1; threads <= CQS; threads *= 2)
        walk(threads % 4, threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(with_threads_that_poll),
    };
    static const char *const other[][2] = {{"ANYWARP_DEVICES", "r0=roce:lo"},
                                           {"ANYWARP_SHM", "on"}};
    int status;
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            setenv(other[i][0], other[i][1], 1);
            exit(cmocka_run_group_tests(tests, NULL, NULL));
        }
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 2; i++)
        failed |= wait(&status) < 0 || status;
    return failed;
}

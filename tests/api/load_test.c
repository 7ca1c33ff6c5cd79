/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every verb from any thread: many threads on the same objects, with others made and destroyed
 * beside them, and tear-down while they are at it. ThreadSanitizer and AddressSanitizer are the
 * judges of most of it; what is counted here is that nothing is lost or doubled.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 120
#define SENDERS 3
#define POLLERS 2
#define EACH    400 /* messages of one sender */
#define TOTAL   (SENDERS * EACH)
#define WINDOW  64
#define BYTES   512

/* cmocka's asserts belong to the main thread. */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct work {
    struct pair p;
    atomic_uint sent, received, posted;
    atomic_int to_send, to_post; /* what may be posted before more is polled */
    atomic_uint by_id[TOTAL];    /* completions of each send */
    atomic_bool stop;            /* for those that only keep busy */
    atomic_bool failed;          /* the connection is over, as the test wants */
    pthread_t thread[16];
    unsigned threads;
};

struct arg {
    struct work *w;
    unsigned number;
};

static struct arg args[16];

static void start(struct work *w, void *(*body)(void *), unsigned number)
{
    struct arg *a = &args[w->threads];
    *a = (struct arg){w, number};
    assert_int_equal(pthread_create(&w->thread[w->threads++], NULL, body, a), 0);
}

static void join_all(struct work *w)
{
    while (w->threads)
        pthread_join(w->thread[--w->threads], NULL);
}

/* ---- the data path ---- */

/** Takes one of the places of a queue. @return whether there was one */
static bool take_place(atomic_int *places)
{
    if (atomic_fetch_sub(places, 1) > 0)
        return true;
    atomic_fetch_add(places, 1);
    sched_yield();
    return false;
}

static void *send_some(void *arg)
{
    struct arg *a = arg;
    struct work *w = a->w;
    for (unsigned i = 0; i < EACH && !atomic_load(&w->failed);) {
        if (!take_place(&w->to_send))
            continue;
        unsigned id = a->number * EACH + i++;
        CHECK(!side_post(&w->p.a, &w->p.b, IBV_WR_SEND, id, a->number * BYTES, BYTES, 0, 0));
    }
    return NULL;
}

static void *post_receives(void *arg)
{
    struct arg *a = arg;
    struct work *w = a->w;
    struct ibv_sge sge = {(uintptr_t)w->p.b.buf + a->number * BYTES, BYTES, w->p.b.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    while (atomic_load(&w->posted) < TOTAL && !atomic_load(&w->stop)) {
        if (!take_place(&w->to_post))
            continue;
        if (atomic_fetch_add(&w->posted, 1) < TOTAL)
            CHECK(!ibv_post_recv(w->p.b.id->qp, &wr, &bad));
    }
    return NULL;
}

static void count_sent(struct work *w, const struct ibv_wc *wc)
{
    CHECK(wc->wr_id < TOTAL);
    CHECK(atomic_fetch_add(&w->by_id[wc->wr_id], 1) == 0);
    CHECK(wc->status == IBV_WC_SUCCESS || atomic_load(&w->failed));
    atomic_fetch_add(&w->sent, 1);
    atomic_fetch_add(&w->to_send, 1);
}

static void *poll_sends(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    struct ibv_wc wc[8];
    while (atomic_load(&w->sent) < TOTAL && !atomic_load(&w->stop)) {
        int n = ibv_poll_cq(w->p.a.cq, 8, wc);
        CHECK(n >= 0);
        for (int i = 0; i < n; i++)
            count_sent(w, &wc[i]);
    }
    return NULL;
}

static void *poll_receives(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    struct ibv_wc wc;
    while (atomic_load(&w->received) < TOTAL && !atomic_load(&w->stop)) {
        int n = ibv_poll_cq(w->p.b.cq, 1, &wc);
        CHECK(n >= 0);
        if (n == 0)
            continue;
        CHECK((wc.status == IBV_WC_SUCCESS && wc.byte_len == BYTES) || atomic_load(&w->failed));
        atomic_fetch_add(&w->received, 1);
        atomic_fetch_add(&w->to_post, 1);
    }
    return NULL;
}

/* ---- others beside it ---- */

static void *resize_arm_query(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    for (unsigned i = 0; !atomic_load(&w->stop); i++) {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        struct ibv_port_attr port;
        struct ibv_device_attr device;
        struct ibv_cq *cq;
        void *context;
        int r = ibv_resize_cq(w->p.a.cq, i % 2 ? 4 * WINDOW : 3 * WINDOW);
        CHECK(r == 0 || r == EINVAL); /* too full for the smaller one */
        CHECK(!ibv_req_notify_cq(w->p.a.cq, 0));
        CHECK(!ibv_req_notify_cq(w->p.b.cq, 1));
        CHECK(!ibv_query_qp(w->p.a.id->qp, &attr, IBV_QP_STATE, &init));
        CHECK(attr.qp_state == IBV_QPS_RTS || atomic_load(&w->failed));
        CHECK(!ibv_query_port(w->p.a.id->verbs, 1, &port));
        CHECK(!ibv_query_device(w->p.a.id->verbs, &device));
        if (i % 16 == 0 && !ibv_get_cq_event(w->p.a.channel, &cq, &context))
            ibv_ack_cq_events(cq, 1);
        sched_yield();
    }
    return NULL;
}

static void *register_memory(void *arg)
{
    struct arg *a = arg;
    char *memory = malloc(65536);
    while (!atomic_load(&a->w->stop)) {
        struct ibv_mr *mr = ibv_reg_mr(a->w->p.b.pd, memory, 65536, IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr);
        CHECK(!ibv_dereg_mr(mr));
        sched_yield();
    }
    free(memory);
    return NULL;
}

static void *make_and_destroy(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    while (!atomic_load(&w->stop)) {
        struct ibv_qp_init_attr attr = {.send_cq = w->p.a.cq,
                                        .recv_cq = w->p.a.cq,
                                        .cap = {8, 8, 1, 1, 0},
                                        .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = ibv_create_qp(w->p.a.pd, &attr);
        CHECK(qp);
        CHECK(!ibv_destroy_qp(qp));
        struct ibv_comp_channel *ch = ibv_create_comp_channel(w->p.a.id->verbs);
        CHECK(ch);
        struct ibv_cq *cq = ibv_create_cq(w->p.a.id->verbs, 8, NULL, ch, 0);
        CHECK(cq);
        CHECK(!ibv_destroy_cq(cq));
        CHECK(!ibv_destroy_comp_channel(ch));
        sched_yield();
    }
    return NULL;
}

static void *connect_others(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    while (!atomic_load(&w->stop)) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        side_recv(&p.b, 1, 0, 64);
        CHECK(!side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 64, 0, 0));
        CHECK(side_poll(&p.b).status == IBV_WC_SUCCESS);
        pair_close(&p, 1);
    }
    return NULL;
}

static void clear_work(struct work *w)
{
    memset(w, 0, sizeof(*w));
    atomic_store(&w->to_send, WINDOW);
    atomic_store(&w->to_post, WINDOW);
}

static void open_work(struct work *w)
{
    clear_work(w);
    pair_open(&w->p, &(struct pair_conf){.send_wr = WINDOW, .recv_wr = WINDOW});
    assert_int_equal(fcntl(w->p.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
}

static void start_data_path(struct work *w)
{
    for (unsigned i = 0; i < POLLERS; i++) {
        start(w, poll_sends, i);
        start(w, poll_receives, i);
        start(w, post_receives, i);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        start(w, send_some, i);
}

static void drain_events(struct side *s)
{
    struct ibv_cq *cq;
    void *context;
    while (!ibv_get_cq_event(s->channel, &cq, &context))
        ibv_ack_cq_events(cq, 1);
}

static struct work work;

static void every_verb_from_any_thread(void **state)
{
    struct work *w = &work;
    (void)state;
    open_work(w);
    start_data_path(w);
    unsigned moving = w->threads;
    start(w, resize_arm_query, 0);
    start(w, register_memory, 0);
    start(w, make_and_destroy, 0);
    start(w, connect_others, 0);
    for (unsigned i = 0; i < moving; i++)
        pthread_join(w->thread[i], NULL);
    atomic_store(&w->stop, true);
    for (unsigned i = moving; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
    assert_int_equal(atomic_load(&w->sent), TOTAL);
    assert_int_equal(atomic_load(&w->received), TOTAL);
    drain_events(&w->p.a);
    pair_close(&w->p, 1);
}

/* ---- getters ---- */

static void *get_events(void *arg)
{
    struct work *w = ((struct arg *)arg)->w;
    while (atomic_load(&w->received) < TOTAL) {
        struct ibv_cq *cq;
        struct ibv_wc wc;
        void *context;
        CHECK(!ibv_get_cq_event(w->p.b.channel, &cq, &context));
        ibv_ack_cq_events(cq, 1);
        CHECK(!ibv_req_notify_cq(cq, 0));
        while (ibv_poll_cq(cq, 1, &wc) == 1) {
            CHECK(wc.status == IBV_WC_SUCCESS);
            atomic_fetch_add(&w->received, 1);
            atomic_fetch_add(&w->to_post, 1);
        }
    }
    return NULL;
}

static void one_sleeps_while_others_poll(void **state)
{
    struct work *w = &work;
    (void)state;
    open_work(w);
    assert_int_equal(ibv_req_notify_cq(w->p.b.cq, 0), 0);
    start(w, get_events, 0);
    for (unsigned i = 0; i < POLLERS; i++) {
        start(w, poll_sends, i);
        start(w, post_receives, i);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        start(w, send_some, i);
    join_all(w);
    assert_int_equal(atomic_load(&w->received), TOTAL);
    pair_close(&w->p, 1);
}

/* ---- tear-down under load ---- */

static void end_by_disconnect(struct work *w)
{
    rdma_disconnect(w->p.a.id);
}

static void end_by_the_peer(struct work *w)
{
    rdma_disconnect(w->p.b.id);
}

static void end_by_error(struct work *w)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(w->p.a.id->qp, &attr, IBV_QP_STATE));
}

static void end_by_destruction(struct work *w)
{
    rdma_destroy_qp(w->p.b.id); /* nobody uses it: its threads have ended */
}

static const struct end {
    const char *name;
    void (*now)(struct work *w);
    bool receiver_destroyed;
} ends[] = {
    {"disconnect", end_by_disconnect, false},
    {"disconnect of the peer", end_by_the_peer, false},
    {"error state", end_by_error, false},
    {"destroyed QP", end_by_destruction, true},
};

/** Every send that was posted completes once, whatever happens to the connection. */
static void tear_down(const struct end *end)
{
    struct work *w = &work;
    open_work(w);
    for (unsigned i = 0; i < POLLERS; i++) {
        start(w, poll_sends, i);
        if (!end->receiver_destroyed) {
            start(w, post_receives, i);
            start(w, poll_receives, i);
        }
    }
    for (unsigned i = 0; i < SENDERS; i++)
        start(w, send_some, i);
    start(w, register_memory, 0);
    for (unsigned i = 0; end->receiver_destroyed && i < WINDOW / 2; i++)
        side_recv(&w->p.b, i, 0, BYTES);
    while (atomic_load(&w->sent) < WINDOW / 4)
        sched_yield();
    atomic_store(&w->failed, true);
    end->now(w);
    side_event(&w->p.a, RDMA_CM_EVENT_DISCONNECTED);
    if (!end->receiver_destroyed)
        side_event(&w->p.b, RDMA_CM_EVENT_DISCONNECTED);
    atomic_store(&w->stop, true);
    join_all(w);
    pair_close(&w->p, 0);
}

static void tear_down_under_load(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
            tear_down(&ends[i]);
}

/* ---- the peer's process dies ---- */

static void child_server(int port_fd)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_id *listener;
    struct rdma_cm_event *ev;
    struct ibv_wc wc;
    CHECK(ch && !rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&any) && !rdma_listen(listener, 1));
    uint16_t port = rdma_get_src_port(listener);
    CHECK(write(port_fd, &port, sizeof(port)) == sizeof(port));
    CHECK(!rdma_get_cm_event(ch, &ev) && ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = ev->id;
    struct ibv_qp_init_attr attr = {.cap = {WINDOW, WINDOW, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &attr));
    char *buf = malloc(BYTES);
    struct ibv_mr *mr = ibv_reg_mr(id->pd, buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {(uintptr_t)buf, BYTES, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    for (int i = 0; i < WINDOW; i++)
        CHECK(!ibv_post_recv(id->qp, &wr, &bad));
    CHECK(!rdma_accept(id, &(struct rdma_conn_param){0}));
    for (;;)
        if (ibv_poll_cq(id->recv_cq, 1, &wc) == 1)
            CHECK(!ibv_post_recv(id->qp, &wr, &bad));
}

static void connect_to(struct work *w, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct side *s = &w->p.a;
    s->events = rdma_create_event_channel();
    assert_int_equal(rdma_create_id(s->events, &s->id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&to, 2000), 0);
    side_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(s->id, 2000), 0);
    side_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
    struct ibv_qp_init_attr attr = {.cap = {WINDOW, WINDOW, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    assert_int_equal(rdma_create_qp(s->id, NULL, &attr), 0);
    s->cq = s->id->send_cq;
    s->buf = malloc(SENDERS * BYTES);
    s->mr = ibv_reg_mr(s->id->pd, s->buf, SENDERS * BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(s->mr);
    w->p.b = *s; /* side_post() looks at the peer's region */
    assert_int_equal(rdma_connect(s->id, &(struct rdma_conn_param){0}), 0);
    side_event(s, RDMA_CM_EVENT_ESTABLISHED);
}

static void the_peer_is_killed(void **state)
{
    struct work *w = &work;
    (void)state;
    int fds[2], status;
    uint16_t port;
    clear_work(w);
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork(); /* main() does this test first: nothing is open yet */
    if (child == 0) {
        alarm(LIMIT_S);
        child_server(fds[1]);
    }
    assert_int_equal(read(fds[0], &port, sizeof(port)), sizeof(port));
    connect_to(w, port);
    for (unsigned i = 0; i < POLLERS; i++)
        start(w, poll_sends, i);
    for (unsigned i = 0; i < SENDERS; i++)
        start(w, send_some, i);
    while (atomic_load(&w->sent) < WINDOW / 4)
        sched_yield();
    atomic_store(&w->failed, true);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    side_event(&w->p.a, RDMA_CM_EVENT_DISCONNECTED);
    atomic_store(&w->stop, true);
    join_all(w);
    rdma_destroy_qp(w->p.a.id);
    assert_int_equal(ibv_dereg_mr(w->p.a.mr), 0);
    assert_int_equal(rdma_destroy_id(w->p.a.id), 0);
    rdma_destroy_event_channel(w->p.a.events);
    free(w->p.a.buf);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_is_killed),
        cmocka_unit_test(every_verb_from_any_thread),
        cmocka_unit_test(one_sleeps_while_others_poll),
        cmocka_unit_test(tear_down_under_load),
    };
    alarm(LIMIT_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

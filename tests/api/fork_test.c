/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() through the public API: what a child can go on with, what stays its parent's, and that
 * neither is disturbed whatever other threads are at.
 */
#include "child.h"
#include "logfile.h"
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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

#define LIMIT_S 60

static pid_t child_of(void (*body)(void *), void *arg)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(LIMIT_S);
        body(arg);
        _exit(0);
    }
    return pid;
}

static void expect_good_end(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status)
        fail_msg("child: status 0x%x", status);
}

static int same_eventfd_readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms);
}

/* ---- a client that needs nothing of what its process had ---- */

static bool event_is(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *ev;
    if (rdma_get_cm_event(ch, &ev))
        return false;
    bool is = ev->event == type;
    if (!is)
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(ev->event), rdma_event_str(type));
    rdma_ack_cm_event(ev);
    return is;
}

/** Connects to 127.0.0.1, sends four bytes, waits for the peer to disconnect. */
static void client(void *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = *(uint16_t *)port,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *id;
    CHECK(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
    CHECK(event_is(ch, RDMA_CM_EVENT_ADDR_RESOLVED));
    CHECK(!rdma_resolve_route(id, 2000));
    CHECK(event_is(ch, RDMA_CM_EVENT_ROUTE_RESOLVED));
    struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 16}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &attr));
    CHECK(!rdma_connect(id, &(struct rdma_conn_param){0}));
    CHECK(event_is(ch, RDMA_CM_EVENT_ESTABLISHED));
    struct ibv_sge sge = {.addr = (uintptr_t) "ping", .length = 4};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
                       *bad;
    CHECK(!ibv_post_send(id->qp, &wr, &bad));
    CHECK(event_is(ch, RDMA_CM_EVENT_DISCONNECTED));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(ch);
}

struct server {
    struct rdma_event_channel *ch;
    struct rdma_cm_id *listener;
    struct ibv_context *ctx;
    struct ibv_comp_channel *comp;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char buf[64];
    uint16_t port;
};

/** Everything that can be there before the first connection. */
static void server_open(struct server *s)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memset(s, 0, sizeof(*s));
    s->ch = rdma_create_event_channel();
    assert_non_null(s->ch);
    assert_int_equal(rdma_create_id(s->ch, &s->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s->listener, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_listen(s->listener, 8), 0);
    s->port = rdma_get_src_port(s->listener);
    s->ctx = s->listener->verbs;
    s->comp = ibv_create_comp_channel(s->ctx);
    s->pd = ibv_alloc_pd(s->ctx);
    s->cq = ibv_create_cq(s->ctx, 16, NULL, s->comp, 0);
    s->mr = ibv_reg_mr(s->pd, s->buf, sizeof(s->buf), IBV_ACCESS_LOCAL_WRITE);
    assert_true(s->comp && s->pd && s->cq && s->mr);
}

static void server_close(struct server *s)
{
    assert_int_equal(ibv_dereg_mr(s->mr), 0);
    assert_int_equal(ibv_destroy_cq(s->cq), 0);
    assert_int_equal(ibv_dealloc_pd(s->pd), 0);
    assert_int_equal(ibv_destroy_comp_channel(s->comp), 0);
    assert_int_equal(rdma_destroy_id(s->listener), 0);
    rdma_destroy_event_channel(s->ch);
}

/** One client from its request to its end, with the objects of the server. */
static void serve_one(struct server *s)
{
    struct rdma_cm_event *ev;
    CHECK(!rdma_get_cm_event(s->ch, &ev));
    CHECK(ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = ev->id;
    rdma_ack_cm_event(ev);
    struct ibv_qp_init_attr attr = {
        .send_cq = s->cq, .recv_cq = s->cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, s->pd, &attr));
    struct ibv_sge sge = {(uintptr_t)s->buf, sizeof(s->buf), s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(id->qp, &wr, &bad));
    CHECK(!ibv_req_notify_cq(s->cq, 0));
    CHECK(!rdma_accept(id, &(struct rdma_conn_param){0}));
    CHECK(event_is(s->ch, RDMA_CM_EVENT_ESTABLISHED));
    struct ibv_cq *cq;
    void *context;
    struct ibv_wc wc;
    CHECK(!ibv_get_cq_event(s->comp, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    CHECK(ibv_poll_cq(s->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == 4);
    CHECK(!memcmp(s->buf, "ping", 4));
    CHECK(!rdma_disconnect(id));
    CHECK(event_is(s->ch, RDMA_CM_EVENT_DISCONNECTED));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

/* ---- daemon(): the child goes on, the parent ends ---- */

struct daemon {
    struct server *server;
    int done; /* a pipe: a byte when all is well */
    bool asks_at_once;
};

static void daemon_main(void *arg)
{
    struct daemon *d = arg;
    struct server *s = d->server;
    pid_t parent = getppid();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        _exit(0); /* as daemon() does */
    alarm(LIMIT_S);
    /* A program that only sleeps in its own poll() must hear of requests, too. */
    if (!d->asks_at_once)
        CHECK(same_eventfd_readable(s->ch->fd, 1000 * LIMIT_S) == 1);
    serve_one(s);
    server_close(s);
    CHECK(write(d->done, &(char){parent != 0}, 1) == 1);
    _exit(0);
}

static void a_daemon_goes_on(void **state)
{
    (void)state;
    for (int asks_at_once = 0; asks_at_once < 2; asks_at_once++) {
        int done[2], port[2];
        assert_int_equal(pipe(done), 0);
        assert_int_equal(pipe(port), 0);
        pid_t first = fork(); /* this test stays the client */
        if (first == 0) {
            struct server s;
            alarm(LIMIT_S);
            server_open(&s);
            CHECK(write(port[1], &s.port, sizeof(s.port)) == sizeof(s.port));
            daemon_main(&(struct daemon){&s, done[1], asks_at_once});
        }
        close(done[1]);
        close(port[1]);
        uint16_t where;
        assert_int_equal(read(port[0], &where, sizeof(where)), sizeof(where));
        expect_good_end(first);
        expect_good_end(child_of(client, &where));
        char ok;
        assert_int_equal(read(done[0], &ok, 1), 1);
        close(done[0]);
        close(port[0]);
    }
}

/* ---- a child takes nothing from its parent ---- */

static void idle_child(void *hold)
{
    char c;
    CHECK(read(*(int *)hold, &c, 1) == 0);
}

static void a_listener_rests_in_a_child(void **state)
{
    struct server s;
    int hold[2];
    (void)state;
    server_open(&s);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT_S);
        close(hold[1]);
        idle_child(&hold[0]);
        CHECK(same_eventfd_readable(s.ch->fd, 0) == 0);
        _exit(0);
    }
    /* All of them are the parent's: a child that listened would get about half. */
    for (int i = 0; i < 10; i++) {
        pid_t peer = child_of(client, &s.port);
        serve_one(&s);
        expect_good_end(peer);
    }
    close(hold[1]);
    close(hold[0]);
    expect_good_end(child);
    server_close(&s);
}

/* ---- connections are the parent's ---- */

static void with_a_dead_connection(void *arg)
{
    struct pair *p = arg;
    struct ibv_wc wc;
    /* What was posted is flushed, what is posted now, too. */
    CHECK(ibv_poll_cq(p->b.cq, 1, &wc) == 1);
    CHECK(wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_sge sge = {(uintptr_t)p->a.buf, 4, p->a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
                       *bad;
    CHECK(!ibv_post_send(p->a.id->qp, &wr, &bad));
    CHECK(ibv_poll_cq(p->a.cq, 1, &wc) == 1);
    CHECK(wc.wr_id == 5 && wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(event_is(p->a.events, RDMA_CM_EVENT_DISCONNECTED));
    CHECK(event_is(p->b.events, RDMA_CM_EVENT_DISCONNECTED));
    /* All of it can be taken down. */
    pair_close(p, 0);
}

static void fresh_pair(void *arg)
{
    struct pair p;
    (void)arg;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 100);
    CHECK(!side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 100, 0, 0));
    CHECK(side_poll(&p.a).status == IBV_WC_SUCCESS);
    CHECK(side_poll(&p.b).status == IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

static void use_and_renew(void *arg)
{
    with_a_dead_connection(arg);
    fresh_pair(NULL);
    expect_good_end(child_of(fresh_pair, NULL)); /* and a child of the child */
}

static void a_connection_is_dead_in_the_child(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 77, 0, 100);
    log_clear();
    expect_good_end(child_of(use_and_renew, &p));
    assert_true(log_has("anywarp: QP *: TCP connection lost: behind fork() it is the parent's; *"));
    /* It lives here: not a byte and not a FIN came from the child. */
    memcpy(p.a.buf, "still there", 11);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 11, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    struct ibv_wc wc = side_poll(&p.b);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 77);
    assert_memory_equal(p.b.buf, "still there", 11);
    pair_close(&p, 1);
}

static void exit_at_once(void *arg)
{
    (void)arg;
    exit(0); /* with handlers and destructors */
}

static void readiness_is_not_shared(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
    side_recv(&p.b, 1, 0, 100);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 4, 0, 0), 0);
    assert_int_equal(same_eventfd_readable(p.b.channel->fd, 10000), 1);
    fcntl(p.b.channel->fd, F_SETFL, O_NONBLOCK);
    pid_t child = fork();
    if (child == 0) {
        struct ibv_cq *cq;
        void *context;
        alarm(LIMIT_S);
        /* It saw the event before it forked: so it is there, once, and the flags are kept. */
        CHECK(same_eventfd_readable(p.b.channel->fd, 0) == 1);
        CHECK(fcntl(p.b.channel->fd, F_GETFD) & FD_CLOEXEC);
        CHECK(!ibv_get_cq_event(p.b.channel, &cq, &context));
        CHECK(same_eventfd_readable(p.b.channel->fd, 0) == 0);
        CHECK(ibv_get_cq_event(p.b.channel, &cq, &context) == -1 && errno == EAGAIN);
        _exit(0);
    }
    expect_good_end(child);
    assert_int_equal(same_eventfd_readable(p.b.channel->fd, 0), 1);
    struct ibv_cq *cq;
    void *context;
    assert_int_equal(ibv_get_cq_event(p.b.channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

/* ---- a dead parent is seen by its peers though a child lives ---- */

static void parent_with_child(void *arg)
{
    int *fds = arg; /* the port comes in, the child's hold is open at both ends */
    struct server s;
    server_open(&s);
    CHECK(write(fds[1], &s.port, sizeof(s.port)) == sizeof(s.port));
    struct rdma_cm_event *ev;
    CHECK(!rdma_get_cm_event(s.ch, &ev));
    struct ibv_qp_init_attr attr = {
        .send_cq = s.cq, .recv_cq = s.cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(ev->id, s.pd, &attr));
    struct ibv_sge sge = {(uintptr_t)s.buf, sizeof(s.buf), s.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(ev->id->qp, &wr, &bad));
    CHECK(!rdma_accept(ev->id, &(struct rdma_conn_param){0}));
    rdma_ack_cm_event(ev);
    CHECK(event_is(s.ch, RDMA_CM_EVENT_ESTABLISHED));
    struct ibv_wc wc;
    while (ibv_poll_cq(s.cq, 1, &wc) == 0)
        ;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LIMIT_S);
        idle_child(&fds[2]);
        _exit(0);
    }
    kill(getpid(), SIGKILL);
}

static void a_dead_parent_is_seen(void **state)
{
    int fds[4], status;
    uint16_t port;
    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(fds + 2), 0);
    pid_t parent = fork();
    if (parent == 0) {
        alarm(LIMIT_S);
        close(fds[3]);
        parent_with_child(fds);
    }
    assert_int_equal(read(fds[0], &port, sizeof(port)), sizeof(port));
    expect_good_end(child_of(client, &port)); /* sees DISCONNECTED while the grandchild lives */
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* ---- under load ---- */

struct load {
    struct pair p;
    atomic_bool stop;
    atomic_uint moved;
    unsigned received;
    pthread_t thread[3];
};

/** Sends and receives without end; any failure shows as a wrong status. */
static void *traffic(void *arg)
{
    struct load *l = arg;
    unsigned out = 0;
    while (!atomic_load(&l->stop) || out) {
        struct ibv_wc wc;
        while (!atomic_load(&l->stop) && out < 16) {
            side_recv(&l->p.b, 1, 0, 4096);
            assert_int_equal(side_post(&l->p.a, &l->p.b, IBV_WR_SEND, 2, 0, 4096, 0, 0), 0);
            out++;
        }
        while (ibv_poll_cq(l->p.a.cq, 1, &wc) == 1)
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
        while (ibv_poll_cq(l->p.b.cq, 1, &wc) == 1) {
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            atomic_fetch_add(&l->moved, 1);
            out--;
        }
    }
    return NULL;
}

static void *registrations(void *arg)
{
    struct load *l = arg;
    static char memory[8192];
    while (!atomic_load(&l->stop)) {
        struct ibv_mr *mr = ibv_reg_mr(l->p.a.pd, memory, sizeof(memory), 0);
        assert_non_null(mr);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        struct ibv_cq *cq = ibv_create_cq(l->p.a.id->verbs, 10, NULL, l->p.a.channel, 0);
        assert_non_null(cq);
        assert_int_equal(ibv_destroy_cq(cq), 0);
    }
    return NULL;
}

static void *connections(void *arg)
{
    struct load *l = arg;
    while (!atomic_load(&l->stop)) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        pair_close(&p, 1);
    }
    return NULL;
}

static void poll_and_go(void *arg)
{
    struct load *l = arg;
    struct ibv_wc wc;
    for (int i = 0; i < 200; i++)
        ibv_poll_cq(l->p.a.cq, 1, &wc), ibv_poll_cq(l->p.b.cq, 1, &wc);
    struct ibv_sge sge = {(uintptr_t)l->p.a.buf, 4, l->p.a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    ibv_post_send(l->p.a.id->qp, &wr, &bad);
    ibv_req_notify_cq(l->p.a.cq, 0);
    struct ibv_mr *mr = ibv_reg_mr(l->p.a.pd, &wc, sizeof(wc), 0);
    CHECK(mr && !ibv_dereg_mr(mr));
}

static void tear_down(void *arg)
{
    struct load *l = arg;
    rdma_destroy_qp(l->p.a.id);
    rdma_destroy_qp(l->p.b.id);
    CHECK(!rdma_destroy_id(l->p.a.id));
    CHECK(!rdma_destroy_id(l->p.b.id));
    CHECK(!rdma_destroy_id(l->p.listener));
}

static void exec_true(void *arg)
{
    (void)arg;
    execl("/bin/true", "true", (char *)NULL);
}

static void forks_under_load(void **state)
{
    static void (*const bodies[])(void *) = {exit_at_once, poll_and_go, fresh_pair, tear_down,
                                             exec_true};
    static struct load l;
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its allocator does not know of fork(): a child finds locks of other threads */
#endif
    memset(&l, 0, sizeof(l));
    pair_open(&l.p, &(struct pair_conf){0});
    assert_int_equal(pthread_create(&l.thread[0], NULL, traffic, &l), 0);
    assert_int_equal(pthread_create(&l.thread[1], NULL, registrations, &l), 0);
    assert_int_equal(pthread_create(&l.thread[2], NULL, connections, &l), 0);
    for (int i = 0; i < 40; i++) {
        unsigned before = atomic_load(&l.moved);
        expect_good_end(child_of(bodies[i % 5], &l));
        while (atomic_load(&l.moved) == before)
            sched_yield(); /* the parent goes on, or alarm() ends the test */
    }
    assert_int_equal(system("true"), 0);
    atomic_store(&l.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(l.thread[i], NULL);
    pair_close(&l.p, 1);
}

static void *fork_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        expect_good_end(child_of(exit_at_once, NULL));
    return NULL;
}

static void forks_in_two_threads(void **state)
{
    pthread_t other;
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(pthread_create(&other, NULL, fork_often, NULL), 0);
    fork_often(NULL);
    pthread_join(other, NULL);
    pair_close(&p, 1);
}

/* What a child leaves behind is its parent's, or still in use when it exits. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_goes_on),
        cmocka_unit_test(a_listener_rests_in_a_child),
        cmocka_unit_test(a_connection_is_dead_in_the_child),
        cmocka_unit_test(readiness_is_not_shared),
        cmocka_unit_test(a_dead_parent_is_seen),
        cmocka_unit_test(forks_under_load),
        cmocka_unit_test(forks_in_two_threads),
    };
#ifdef __SANITIZE_THREAD__
    return 77; /* it starts no thread in a child of a process with threads */
#endif
    alarm(LIMIT_S);
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}

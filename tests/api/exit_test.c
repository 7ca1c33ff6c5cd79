/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exit() with live connections: the peer gets everything that was posted, then DISCONNECTED, and
 * the process ends, whatever its threads are at.
 */
#include "child.h"
#include "cm_kit.h"
#include "pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 60
#define SENDS   64
#define BYTES   (256 * 1024) /* all together more than sockets hold */

/* The child is the active side. */
struct exiting {
    struct rdma_event_channel *ch;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    char *buf;
};

static void child_connect(struct exiting *e, int port_fd)
{
    e->ch = rdma_create_event_channel();
    CHECK(e->ch);
    e->id = child_resolve(e->ch, port_fd);
    struct ibv_qp_init_attr attr = {.cap = {SENDS, SENDS, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(e->id, NULL, &attr));
    CHECK(!rdma_connect(e->id, &(struct rdma_conn_param){0}));
    child_event(e->ch, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    e->buf = calloc(SENDS, BYTES);
    e->mr = ibv_reg_mr(e->id->pd, e->buf, SENDS * BYTES, IBV_ACCESS_LOCAL_WRITE);
    CHECK(e->mr);
}

static void post(struct exiting *e, unsigned i)
{
    memset(e->buf + i * BYTES, (int)i + 1, BYTES);
    struct ibv_sge sge = {(uintptr_t)e->buf + i * BYTES, BYTES, e->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    CHECK(!ibv_post_send(e->id->qp, &wr, &bad));
}

/* ---- the ways to end ---- */

static void end_quietly(struct exiting *e)
{
    (void)e;
}

/** While a program polls, what it posts waits for its next empty poll: here there is none. */
static void end_polling(struct exiting *e)
{
    struct ibv_wc wc;
    for (int i = 0; i < 10000; i++)
        ibv_poll_cq(e->id->send_cq, 1, &wc);
}

static void *poll_for_ever(void *arg)
{
    struct exiting *e = arg;
    struct ibv_wc wc;
    for (;;)
        ibv_poll_cq(e->id->recv_cq, 1, &wc);
    return NULL;
}

static void *wait_for_ever(void *arg)
{
    struct exiting *e = arg;
    struct ibv_cq *cq;
    void *context;
    ibv_req_notify_cq(e->id->recv_cq, 0);
    ibv_get_cq_event(e->id->recv_cq_channel, &cq, &context);
    return NULL;
}

static void *wait_cm_for_ever(void *arg)
{
    struct exiting *e = arg;
    struct rdma_cm_event *ev;
    rdma_get_cm_event(e->ch, &ev);
    return NULL;
}

static void end_with(struct exiting *e, void *(*body)(void *))
{
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, body, e) && !pthread_detach(t));
}

static void end_beside_poller(struct exiting *e)
{
    end_with(e, poll_for_ever);
}

static void end_beside_waiters(struct exiting *e)
{
    end_with(e, wait_for_ever);
    end_with(e, wait_cm_for_ever);
}

static void *exit_here(void *arg)
{
    (void)arg;
    exit(0);
}

static void end_in_thread(struct exiting *e)
{
    pthread_t t;
    for (unsigned i = 0; i < SENDS; i++)
        post(e, i);
    CHECK(!pthread_create(&t, NULL, exit_here, NULL));
    pthread_join(t, NULL);
}

struct way {
    const char *name;
    void (*prepare)(struct exiting *e);
    bool posted; /* prepare() does that itself */
    bool peer_takes_nothing;
};

static const struct way ways[] = {
    {"quietly", end_quietly, false, false},
    {"while polling", end_polling, false, false},
    {"beside a poller", end_beside_poller, false, false},
    {"beside waiters", end_beside_waiters, false, false},
    {"in a thread", end_in_thread, true, false},
    {"with a peer that takes nothing", end_quietly, false, true}, /* the last */
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void child_main(const struct way *way, int port_fd)
{
    struct exiting e = {0};
    alarm(LIMIT_S);
    child_connect(&e, port_fd);
    way->prepare(&e);
    for (unsigned i = 0; !way->posted && i < SENDS; i++)
        post(&e, i);
    exit(0);
}

/* ---- the peer ---- */

struct peer {
    struct cm_sides sides;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    char *buf;
};

static void listen_for(struct peer *p, int port_fd)
{
    cm_open(&p->sides, NULL);
    uint16_t port = rdma_get_src_port(p->sides.listener);
    assert_int_equal(write(port_fd, &port, sizeof(port)), sizeof(port));
}

static void accept_it(struct peer *p, unsigned receives)
{
    struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
    p->id = cm_request(p->sides.b);
    struct ibv_qp_init_attr attr = {.cap = {SENDS, SENDS, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    assert_int_equal(rdma_create_qp(p->id, NULL, &attr), 0);
    p->buf = calloc(SENDS, BYTES);
    p->mr = ibv_reg_mr(p->id->pd, p->buf, SENDS * BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(p->mr);
    for (unsigned i = 0; i < receives; i++) {
        struct ibv_sge sge = {(uintptr_t)p->buf + i * BYTES, BYTES, p->mr->lkey};
        wr.sg_list = &sge;
        wr.wr_id = i;
        assert_int_equal(ibv_post_recv(p->id->qp, &wr, &bad), 0);
    }
    assert_int_equal(rdma_accept(p->id, &(struct rdma_conn_param){0}), 0);
}

static void expect_event(struct peer *p, enum rdma_cm_event_type type)
{
    cm_expect(p->sides.b, type);
}

static void peer_close(struct peer *p)
{
    assert_int_equal(ibv_dereg_mr(p->mr), 0);
    cm_drop(p->id);
    cm_close(&p->sides);
    free(p->buf);
}

static void expect_all_data(struct peer *p)
{
    struct side s = {.cq = p->id->recv_cq};
    for (unsigned i = 0; i < SENDS; i++) {
        struct ibv_wc wc = side_poll(&s);
        if (wc.status)
            print_error("send %u of %u is missing\n", i, SENDS);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.byte_len, BYTES);
        assert_int_equal(p->buf[i * BYTES], i + 1);
        assert_int_equal(p->buf[(i + 1) * BYTES - 1], i + 1);
    }
}

/* One child for each way to end, started before this process knows of RDMA. */
static struct child {
    pid_t pid;
    int port; /* a pipe that it waits at for the port */
} children[WAYS];

static void start_children(void)
{
    for (size_t i = 0; i < WAYS; i++) {
        int fds[2];
        if (pipe(fds))
            exit(1);
        children[i] = (struct child){fork(), fds[1]};
        if (children[i].pid == 0)
            child_main(&ways[i], fds[0]);
        close(fds[0]);
    }
}

static void expect_good_end(size_t i)
{
    int status;
    assert_int_equal(waitpid(children[i].pid, &status, 0), children[i].pid);
    if (status)
        fail_msg("%s: status 0x%x", ways[i].name, status);
}

static void everything_posted_arrives(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAYS; i++) {
        struct peer p = {0};
        if (ways[i].peer_takes_nothing)
            continue;
        print_message("  %s\n", ways[i].name);
        listen_for(&p, children[i].port);
        accept_it(&p, SENDS);
        expect_event(&p, RDMA_CM_EVENT_ESTABLISHED);
        expect_good_end(i); /* before the data is looked at */
        expect_event(&p, RDMA_CM_EVENT_DISCONNECTED);
        expect_all_data(&p);
        peer_close(&p);
    }
}

/** Its own alarm() would end the child otherwise. */
static void exit_is_bounded(void **state)
{
    struct peer p = {0};
    (void)state;
    listen_for(&p, children[WAYS - 1].port);
    accept_it(&p, 0);
    expect_event(&p, RDMA_CM_EVENT_ESTABLISHED);
    expect_good_end(WAYS - 1);
    peer_close(&p);
}

/* ---- exit() in a signal handler, wherever it comes ---- */

static void on_alarm(int sig)
{
    (void)sig;
    exit(0);
}

/** The child sends to itself until a signal ends it: its locks may be held in that very thread. */
static void busy_child(unsigned us)
{
    struct pair p;
    struct sigaction sa = {.sa_handler = on_alarm};
    alarm(LIMIT_S / 4);
    pair_open(&p, &(struct pair_conf){0});
    sigaction(SIGUSR1, &sa, NULL);
    timer_t timer;
    struct sigevent how = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, ._sigev_un._tid = gettid()};
    struct itimerspec when = {.it_value.tv_nsec = us * 1000};
    CHECK(!timer_create(CLOCK_MONOTONIC, &how, &timer));
    CHECK(!timer_settime(timer, 0, &when, NULL));
    for (;;) {
        struct ibv_wc wc;
        side_recv(&p.b, 1, 0, 100);
        if (side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 100, 0, 0))
            CHECK(0);
        while (ibv_poll_cq(p.a.cq, 1, &wc) == 0)
            ;
        while (ibv_poll_cq(p.b.cq, 1, &wc) == 0)
            ;
    }
}

static void a_signal_handler_may_exit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            busy_child(2000 + 137 * i);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

/* What is still in use at exit() is no leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_handler_may_exit),
        cmocka_unit_test(everything_posted_arrives),
        cmocka_unit_test(exit_is_bounded),
    };
    alarm(LIMIT_S);
    start_children();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

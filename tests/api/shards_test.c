/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that go on polling CQs of their own have shards of their own. What lies between them is
 * served by whoever is there, and nothing is lost. The test's main thread polls first, so that the
 * first shard is its own for good.
 */
#include "child.h"
#include "pair.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#define MESSAGES 2000
#define FEW      300
#define WINDOW   16
#define IN       4096 /* where messages come in; they are sent from 0 */
#define IN_VAIN  3000 /* polls of a thread, enough for a shard of its own */
#define LIMIT_S  60

/** A thread of the program at side b of a pair. */
struct worker {
    pthread_t thread;
    struct side *side;
    struct side *peer; /* side a, to which it sends; NULL: it does not */
    struct ibv_cq *cq; /* that it polls */
    atomic_uint got;   /* completions */
    atomic_bool ready, stop;
};

static void begin_with(struct worker *w, struct side *peer, struct side *side, struct ibv_cq *cq,
                       void *(*run)(void *))
{
    *w = (struct worker){.side = side, .peer = peer, .cq = cq};
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void begin(struct worker *w, struct side *side, struct ibv_cq *cq, void *(*run)(void *))
{
    begin_with(w, NULL, side, cq, run);
}

static void end(struct worker *w)
{
    atomic_store(&w->stop, true);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

static void wait_until(atomic_bool *flag)
{
    while (!atomic_load(flag))
        sched_yield();
}

/** In a worker, and in a child: there assertions of cmocka are of no use. */
static void poll_in_vain(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    for (int i = 0; i < IN_VAIN; i++)
        CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(cq, 1, wc);
    CHECK(n >= 0 && (n == 0 || wc->status == IBV_WC_SUCCESS));
    if (!n)
        sched_yield(); /* there may be fewer processors than threads */
    return n;
}

/** How many epoll sets the process has: that of the engine's thread, and one a shard. */
static unsigned epoll_sets(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char to[64];
        ssize_t len = readlinkat(dirfd(dir), e->d_name, to, sizeof(to));
        n += len > 0 && memmem(to, (size_t)len, "[eventpoll]", 11);
    }
    closedir(dir);
    return n;
}

/** Sends from side a, and takes the completions there, receives among them, until all is done. */
static void send_all(struct pair *p, unsigned messages, unsigned answers, atomic_uint *got)
{
    unsigned posted = 0, sent = 0, heard = 0;
    time_t limit = time(NULL) + LIMIT_S;
    struct ibv_wc wc;
    while (sent < messages || heard < answers || (got && atomic_load(got) < messages)) {
        assert_true(time(NULL) < limit);
        unsigned through = got ? atomic_load(got) : sent;
        if (posted < messages && posted - sent < WINDOW && posted - through < WINDOW)
            assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, posted++, 0, 8, 0, 0), 0);
        while (poll_one(p->a.cq, &wc)) {
            heard += wc.opcode == IBV_WC_RECV;
            sent += wc.opcode == IBV_WC_SEND;
            if (wc.opcode == IBV_WC_RECV)
                side_recv(&p->a, wc.wr_id, IN, 8);
        }
    }
}

static void post_receives(struct side *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        side_recv(s, i, IN, 8);
}

/* ---- what workers do ---- */

static void *count_completions(void *arg)
{
    struct worker *w = arg;
    struct ibv_wc wc;
    poll_in_vain(w->cq);
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->stop))
        atomic_fetch_add(&w->got, (unsigned)poll_one(w->cq, &wc));
    return NULL;
}

/** With room in the send queue, which is others' to make. */
static void answer(struct worker *w, uint64_t wr_id)
{
    int r;
    while ((r = side_post(w->side, w->peer, IBV_WR_SEND, wr_id, 0, 8, 0, 0)) == ENOMEM)
        sched_yield();
    CHECK(!r);
}

/** Puts each receive back, and answers if it is told to whom. */
static void *receive(void *arg)
{
    struct worker *w = arg;
    struct ibv_wc wc;
    poll_in_vain(w->cq);
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->stop))
        if (poll_one(w->cq, &wc)) {
            side_recv(w->side, wc.wr_id, IN, 8);
            if (w->peer)
                answer(w, wc.wr_id);
            atomic_fetch_add(&w->got, 1);
        }
    return NULL;
}

/* ---- the tests ---- */

static struct pair p;

static int setup(void **state)
{
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    poll_in_vain(p.a.cq);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pair_close(&p, 1);
    return 0;
}

static void a_thread_that_goes_on_polling_has_a_shard(void **state)
{
    struct worker w;
    (void)state;
    unsigned before = epoll_sets();
    post_receives(&p.b, 2 * WINDOW);
    begin(&w, &p.b, p.b.cq, receive);
    wait_until(&w.ready);
    assert_int_equal(epoll_sets(), before + 1);
    send_all(&p, MESSAGES, 0, &w.got);
    end(&w);
}

/** One thread sends and polls no more when it waits for nothing; the other is always there. */
static void two_threads_poll_the_two_cqs_of_a_qp(void **state)
{
    struct pair split;
    struct worker receiver, sender;
    struct ibv_cq *send_cq = ibv_create_cq(p.b.id->verbs, 128, NULL, NULL, 0),
                  *recv_cq = ibv_create_cq(p.b.id->verbs, 128, NULL, NULL, 0);
    (void)state;
    pair_open(&split, &(struct pair_conf){.send_cq = send_cq, .recv_cq = recv_cq});
    post_receives(&split.a, 2 * WINDOW);
    post_receives(&split.b, 2 * WINDOW);
    begin_with(&receiver, &split.a, &split.b, recv_cq, receive);
    begin(&sender, &split.b, send_cq, count_completions);
    wait_until(&receiver.ready);
    wait_until(&sender.ready);
    send_all(&split, FEW, FEW, &receiver.got);
    while (atomic_load(&sender.got) < FEW)
        sched_yield();
    end(&receiver);
    /* Nobody polls the CQ of the receives any more. */
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(side_post(&split.a, &split.b, IBV_WR_RDMA_READ, i, 0, 8, 0, 0), 0);
        struct ibv_wc wc = side_poll(&split.a);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
    }
    end(&sender);
    pair_close(&split, 1);
    assert_int_equal(ibv_destroy_cq(send_cq), 0);
    assert_int_equal(ibv_destroy_cq(recv_cq), 0);
}

static atomic_uint turn;
static atomic_uint arrived[MESSAGES];

#define IN_TURN 3

/** Polls when it is its turn, for some hundred polls, then lets the next one. */
static void *poll_in_turn(void *arg)
{
    struct worker *w = arg;
    unsigned me = atomic_fetch_add(&w->got, 1);
    struct ibv_wc wc;
    while (!atomic_load(&w->stop)) {
        if (atomic_load(&turn) % IN_TURN != me) {
            sched_yield();
            continue;
        }
        for (int i = 0; i < 400; i++)
            if (ibv_poll_cq(w->cq, 1, &wc) == 1) {
                CHECK(wc.status == IBV_WC_SUCCESS);
                uint64_t n;
                memcpy(&n, w->side->buf + 64 * wc.wr_id, sizeof(n));
                CHECK(n < MESSAGES);
                atomic_fetch_add(&arrived[n], 1);
                side_recv(w->side, wc.wr_id, 64 * wc.wr_id, 8);
            }
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

static unsigned arrivals(void)
{
    unsigned n = 0;
    for (int i = 0; i < MESSAGES; i++)
        n += atomic_load(&arrived[i]);
    return n;
}

static void threads_poll_one_cq_in_turn(void **state)
{
    struct worker w = {.side = &p.b, .cq = p.b.cq};
    pthread_t thread[IN_TURN];
    time_t limit = time(NULL) + LIMIT_S;
    (void)state;
    for (unsigned i = 0; i < 2 * WINDOW; i++)
        side_recv(&p.b, i, 64 * i, 8);
    for (int i = 0; i < IN_TURN; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, poll_in_turn, &w), 0);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        memcpy(p.a.buf, &i, sizeof(i));
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        assert_int_equal(side_poll(&p.a).wr_id, i);
    }
    while (arrivals() < MESSAGES && time(NULL) < limit)
        sched_yield();
    atomic_store(&w.stop, true);
    for (int i = 0; i < IN_TURN; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(atomic_load(&arrived[i]), 1);
}

static void take_events(struct worker *w)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *side;
    CHECK(!ibv_get_cq_event(w->side->channel, &cq, &side));
    ibv_ack_cq_events(cq, 1);
    CHECK(!ibv_req_notify_cq(cq, 0));
    while (poll_one(cq, &wc)) {
        side_recv(side, wc.wr_id, IN, 8);
        atomic_fetch_add(&w->got, 1);
    }
}

/** An event loop: the channel is in the program's own epoll set, and armed before each wait. */
static void *loop(void *arg)
{
    struct worker *w = arg;
    struct epoll_event ev = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, w->side->channel->fd, &ev));
    CHECK(!ibv_req_notify_cq(w->cq, 0));
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->stop))
        if (epoll_wait(set, &ev, 1, 100) == 1)
            take_events(w);
    close(set);
    return NULL;
}

static void a_loop_on_the_programs_own_epoll_set(void **state)
{
    struct pair other;
    struct worker looper, poller;
    (void)state;
    pair_open(&other, &(struct pair_conf){0});
    post_receives(&p.b, 2 * WINDOW);
    post_receives(&other.b, 2 * WINDOW);
    begin(&looper, &p.b, p.b.cq, loop);
    begin(&poller, &other.b, other.b.cq, receive);
    wait_until(&looper.ready);
    wait_until(&poller.ready);
    for (unsigned i = 1; i <= FEW; i++) { /* one by one: each is an event */
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        assert_int_equal(side_poll(&p.a).wr_id, i);
        time_t limit = time(NULL) + LIMIT_S;
        while (atomic_load(&looper.got) < i)
            assert_true(time(NULL) < limit);
    }
    send_all(&other, FEW, 0, &poller.got);
    end(&poller);
    end(&looper);
    pair_close(&other, 1);
}

static atomic_uint used; /* receives of the SRQ that are to be posted again */

static void *use_receives(void *arg)
{
    struct worker *w = arg;
    struct ibv_wc wc;
    poll_in_vain(w->cq);
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->stop))
        if (poll_one(w->cq, &wc)) {
            atomic_fetch_add(&used, 1);
            atomic_fetch_add(&w->got, 1);
        }
    return NULL;
}

/** Receives are posted by a thread whose CQ is none of the QP that waits for them. */
static void an_srq_of_qps_in_two_shards(void **state)
{
    struct pair one, two;
    struct worker w;
    struct ibv_wc wc;
    unsigned posted = 0, sent = 0, got = 0;
    size_t received = 0;
    time_t limit = time(NULL) + LIMIT_S;
    (void)state;
    pair_open(&one, &(struct pair_conf){.srq_wr = 64});
    pair_open(&two, &(struct pair_conf){.with = &one.b, .srq = one.b.srq});
    poll_in_vain(one.b.cq);
    begin(&w, &two.b, two.b.cq, use_receives);
    wait_until(&w.ready);
    atomic_store(&used, 2); /* fewer than what is under way */
    while (got + atomic_load(&w.got) < 2 * FEW || sent < 2 * FEW) {
        assert_true(time(NULL) < limit);
        if (posted < 2 * FEW && posted - sent < WINDOW) {
            struct pair *to = posted++ % 2 ? &two : &one;
            assert_int_equal(side_post(&to->a, &to->b, IBV_WR_SEND, 0, 0, 8, 0, 0), 0);
        }
        sent += (unsigned)poll_one(one.a.cq, &wc) + (unsigned)poll_one(two.a.cq, &wc);
        for (; atomic_load(&used); atomic_fetch_sub(&used, 1))
            side_recv(&one.b, 0, IN + 8 * received++, 8);
        int n = poll_one(one.b.cq, &wc);
        got += (unsigned)n;
        atomic_fetch_add(&used, (unsigned)n);
    }
    assert_int_equal(got, FEW);
    end(&w);
    pair_close(&two, 1);
    pair_close(&one, 1);
}

/** Posts and ends: what its next poll would have sent is sent all the same. */
static void *post_and_leave(void *arg)
{
    struct worker *w = arg;
    poll_in_vain(w->cq);
    for (unsigned i = 0; i < WINDOW; i++)
        CHECK(!side_post(w->side, w->peer, IBV_WR_SEND, i, 0, 8, 0, 0));
    return NULL;
}

static void a_thread_ends_with_work_left(void **state)
{
    unsigned sets = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct worker w;
        struct ibv_wc wc;
        unsigned got = 0;
        post_receives(&p.a, WINDOW);
        begin_with(&w, &p.a, &p.b, p.b.cq, post_and_leave);
        end(&w);
        for (time_t limit = time(NULL) + LIMIT_S; got < WINDOW;) {
            assert_true(time(NULL) < limit);
            got += (unsigned)poll_one(p.a.cq, &wc);
        }
        for (unsigned n = 0; n < WINDOW;) /* what it would have polled is anybody's */
            n += (unsigned)poll_one(p.b.cq, &wc);
        if (!sets)
            sets = epoll_sets();
        assert_int_equal(epoll_sets(), sets); /* the next one gets its shard */
    }
}

static void *poll_only(void *cq)
{
    poll_in_vain(cq);
    return NULL;
}

/** Two threads poll here, too; the parent's are not in the way. */
static void be_a_child(void)
{
    pthread_t thread;
    struct ibv_cq *mine = ibv_create_cq(p.a.id->verbs, 4, NULL, NULL, 0),
                  *other = ibv_create_cq(p.a.id->verbs, 4, NULL, NULL, 0);
    CHECK(mine && other);
    poll_in_vain(mine);
    CHECK(!pthread_create(&thread, NULL, poll_only, other));
    poll_in_vain(mine);
    CHECK(!pthread_join(thread, NULL));
    CHECK(!ibv_destroy_cq(mine) && !ibv_destroy_cq(other));
    _exit(0);
}

static void a_fork_between_shards(void **state)
{
    struct worker w;
    (void)state;
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
    post_receives(&p.b, 2 * WINDOW);
    begin(&w, &p.b, p.b.cq, receive);
    wait_until(&w.ready);
    for (unsigned i = 1; i <= 3; i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            alarm(LIMIT_S);
            be_a_child();
        }
        atomic_store(&w.got, 0);
        send_all(&p, FEW, 0, &w.got);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    end(&w);
}

static void *wait_for_event(void *arg)
{
    struct worker *w = arg;
    struct ibv_cq *cq;
    void *context;
    poll_in_vain(w->cq);
    CHECK(!ibv_req_notify_cq(w->cq, 0));
    atomic_store(&w->ready, true);
    ibv_get_cq_event(w->side->channel, &cq, &context);
    ibv_ack_cq_events(cq, 1); /* it came before it was cancelled */
    return NULL;
}

/** It sleeps on the sockets of its own shard, which are others' afterwards. */
static void a_waiter_in_its_own_shard_is_cancelled(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__ /* it does not see the locks that are taken after a call was cancelled  \
                            */
    skip();
#endif
    for (unsigned i = 0; i < 50; i++) {
        struct worker w;
        struct ibv_wc wc;
        post_receives(&p.b, 1);
        begin(&w, &p.b, p.b.cq, wait_for_event);
        wait_until(&w.ready);
        if (i % 2)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(pthread_cancel(w.thread), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        wc = side_poll(&p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(side_poll(&p.a).wr_id, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_that_goes_on_polling_has_a_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(two_threads_poll_the_two_cqs_of_a_qp, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_poll_one_cq_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_on_the_programs_own_epoll_set, setup, teardown),
        cmocka_unit_test_setup_teardown(an_srq_of_qps_in_two_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(a_thread_ends_with_work_left, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fork_between_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiter_in_its_own_shard_is_cancelled, setup, teardown),
    };
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

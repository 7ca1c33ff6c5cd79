/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-way streams of small messages, which complete before they are given to TCP while others are
 * behind them: whatever the program does then, everything arrives; and who waits for all of them
 * knows that TCP has them. The other side is another process, as a process that moves bytes both
 * ways has no such stream.
 */
#include "stream.h"

#include "calls.h"
#include "cm_kit.h"
#include "pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT_S 100
#define SEEN_S  10
#define SENDS   32
#define PINGS   300
#define EACH    20000
#define TRIES   200
#define BURST   1024
#define LOOK_NS 50000

#define FEW 64 /* messages at least for one send of a corked stream of depth 16 */

/* ---- how the child goes on after a completion ---- */

static void does_nothing(struct stream *s)
{
    stream_until_corked(s);
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void waits(struct stream *s)
{
    stream_until_corked(s);
    stream_finish(s);
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void waits_for_each(struct stream *s)
{
    for (int i = 0; i < EACH; i++) {
        stream_to(s, s->posted + 1);
        CHECK(s->sends_before != calls_sends);
    }
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void disconnects(struct stream *s)
{
    stream_until_corked(s);
    CHECK(!rdma_disconnect(s->id));
    stream_tell(s, s->posted);
    child_event(s->ch, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
}

static void destroys(struct stream *s)
{
    stream_until_corked(s);
    rdma_destroy_qp(s->id);
    CHECK(!rdma_destroy_id(s->id));
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void exits(struct stream *s)
{
    stream_until_corked(s);
    stream_tell(s, s->posted);
    exit(0);
}

static void arms(struct stream *s)
{
    stream_until_corked(s);
    CHECK(!ibv_req_notify_cq(s->id->send_cq, 0));
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void drains(struct stream *s)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    stream_until_corked(s);
    CHECK(!ibv_modify_qp(s->id->qp, &attr, IBV_QP_STATE));
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void takes_memory_away(struct stream *s)
{
    stream_until_corked(s);
    stream_finish(s);
    CHECK(!ibv_dereg_mr(s->mr));
    CHECK(!munmap(s->buf, STREAM_PEER));
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void reads(struct stream *s)
{
    stream_until_corked(s);
    uint32_t len = s->shape->slots * s->shape->slot;
    uint8_t *into = s->buf + STREAM_AREA / 2;
    struct ibv_sge sge = {(uintptr_t)into, len, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {s->peer.addr, s->peer.rkey}},
                       *bad;
    uint8_t *image = calloc(1, STREAM_AREA);
    CHECK(image);
    stream_image(s->shape, s->posted, image);
    CHECK(!ibv_post_send(s->id->qp, &wr, &bad));
    stream_rest(s);
    CHECK(stream_poll(s->id->send_cq).status == IBV_WC_SUCCESS);
    CHECK(!memcmp(into, image, len));
    free(image);
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void send_one(struct stream *s, uint8_t fill)
{
    uint8_t *from = s->buf + STREAM_AREA + STREAM_SHORT;
    struct ibv_sge sge = {(uintptr_t)from, STREAM_SHORT, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    memset(from, fill, STREAM_SHORT);
    CHECK(!ibv_post_send(s->id->qp, &wr, &bad));
    stream_rest(s);
    CHECK(stream_poll(s->id->send_cq).status == IBV_WC_SUCCESS);
    memset(from, 0, STREAM_SHORT);
}

static void sends(struct stream *s)
{
    stream_until_corked(s);
    stream_tell(s, s->posted);
    for (uint8_t i = 0; i < SENDS; i++)
        send_one(s, 1 + i);
    stream_sleep(s);
}

static void errs(struct stream *s)
{
    stream_until_corked(s);
    uint64_t good = s->posted;
    stream_post(s, s->peer.rkey ^ 0x5a5a5a00);
    stream_until_flushed(s);
    stream_tell(s, good);
    stream_sleep(s);
}

static void is_left(struct stream *s)
{
    stream_tell(s, 0);
    stream_until_flushed(s);
}

/** A child of fork() ends as a process does that has this connection; it is not its business. */
static void forks(struct stream *s)
{
    struct ibv_wc wc;
    int status;
    stream_until_corked(s);
    pid_t pid = fork();
    if (pid == 0) {
        ibv_poll_cq(s->id->send_cq, 1, &wc);
        rdma_destroy_qp(s->id);
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    does_nothing(s);
}

static atomic_bool enough;

static void *poll_beside(void *arg)
{
    struct ibv_wc wc;
    while (!enough)
        ibv_poll_cq(arg, 1, &wc);
    return NULL;
}

static void has_two_pollers(struct stream *s)
{
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, poll_beside, s->id->recv_cq));
    stream_until_corked(s);
    enough = true;
    CHECK(!pthread_join(t, NULL));
    stream_tell(s, s->posted);
    stream_sleep(s);
}

/** The system calls are few, however few messages are under way. */
static void sends_few(struct stream *s)
{
    unsigned before, tries = 0;
    stream_until_corked(s);
    do {
        before = calls_sends;
        stream_to(s, s->posted + BURST);
    } while (calls_sends - before > BURST / FEW && ++tries < TRIES);
    CHECK(tries < TRIES);
    stream_tell(s, s->posted);
    stream_sleep(s);
}

static void ping(struct stream *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + STREAM_AREA, STREAM_SHORT, s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(s->id->qp, &wr, &bad));
    send_one(s, 1);
    CHECK(stream_poll(s->id->recv_cq).status == IBV_WC_SUCCESS);
}

/** Nothing is kept from a peer that answers: a send for each, and not by the engine's thread. */
static void pings(struct stream *s)
{
    unsigned all, here, tries = 0;
    stream_until_corked(s);
    ping(s);
    do {
        all = calls_sends;
        here = calls_sends_here;
        for (int i = 0; i < PINGS; i++)
            ping(s);
        CHECK(calls_sends - all == PINGS);
    } while (calls_sends_here - here != PINGS && ++tries < TRIES);
    CHECK(tries < TRIES);
    stream_tell(s, s->posted);
}

/* ---- the peer ---- */

struct peer {
    const struct shape *shape;
    int told, telling;
    struct cm_sides sides;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t *buf, *image;
};

static uint64_t be_told(struct peer *p)
{
    uint64_t n;
    if (read(p->told, &n, sizeof(n)) != sizeof(n))
        fail_msg("the child ended");
    return n;
}

static void expect_event(struct peer *p, enum rdma_cm_event_type type)
{
    cm_expect(p->sides.b, type);
}

static void expect_image(struct peer *p, uint64_t n)
{
    stream_image(p->shape, n, p->image);
    for (size_t i = 0; i < STREAM_AREA; i++)
        if (p->buf[i] != p->image[i])
            fail_msg("slot %zu, byte %zu: %u, not %u, after %lu messages", i / p->shape->slot,
                     i % p->shape->slot, p->buf[i], p->image[i], n);
}

/** Waits, without a call of the library, until the slot of message @p i ends as @p fill, 0: any. */
static void see(struct peer *p, uint64_t i, uint8_t fill)
{
    const uint8_t *last = p->buf + (i % p->shape->slots + 1) * p->shape->slot - 1;
    time_t end = time(NULL) + SEEN_S;
    uint8_t now;
    do {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        now = __atomic_load_n(last, __ATOMIC_ACQUIRE);
    } while ((fill ? now != fill : now == 0) && time(NULL) < end);
    assert_int_equal(now, fill ? fill : now);
    assert_int_not_equal(now, 0);
}

static void release_child(struct peer *p)
{
    assert_int_equal(write(p->telling, "", 1), 1);
}

static void sees_all(struct peer *p)
{
    uint64_t n = be_told(p);
    see(p, n - 1, stream_message(p->shape, n - 1).fill);
    expect_image(p, n);
    release_child(p);
    expect_event(p, RDMA_CM_EVENT_DISCONNECTED);
}

static void is_disconnected(struct peer *p)
{
    uint64_t n = be_told(p);
    expect_event(p, RDMA_CM_EVENT_DISCONNECTED);
    expect_image(p, n);
}

static void is_disconnected_first(struct peer *p)
{
    is_disconnected(p);
    release_child(p);
}

static void receives(struct peer *p)
{
    struct side s = {.cq = p->id->recv_cq};
    uint64_t n = be_told(p);
    for (unsigned i = 0; i < SENDS; i++) {
        struct ibv_wc wc = side_poll(&s);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(p->buf[STREAM_AREA + i * STREAM_SHORT], 1 + i);
        if (i == 0)
            expect_image(p, n);
    }
    release_child(p);
    expect_event(p, RDMA_CM_EVENT_DISCONNECTED);
}

static void leaves(struct peer *p)
{
    be_told(p);
    see(p, 0, 0);
    assert_int_equal(rdma_disconnect(p->id), 0);
    expect_event(p, RDMA_CM_EVENT_DISCONNECTED);
}

static void post_recv(struct peer *p, unsigned i)
{
    struct ibv_sge sge = {(uintptr_t)p->buf + STREAM_AREA + (size_t)i * STREAM_SHORT, STREAM_SHORT,
                          p->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_recv(p->id->qp, &wr, &bad), 0);
}

static void answers(struct peer *p)
{
    struct side in = {.cq = p->id->recv_cq}, out = {.cq = p->id->send_cq};
    for (;;) {
        struct ibv_wc wc = side_poll(&in);
        struct ibv_sge sge = {(uintptr_t)p->buf, STREAM_SHORT, p->mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        if (wc.status == IBV_WC_WR_FLUSH_ERR)
            break;
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        post_recv(p, (unsigned)wc.wr_id);
        assert_int_equal(ibv_post_send(p->id->qp, &wr, &bad), 0);
        assert_int_equal(side_poll(&out).status, IBV_WC_SUCCESS);
    }
    is_disconnected(p);
}

static void peer_open(struct peer *p)
{
    struct ibv_qp_init_attr attr = {.cap = {STREAM_SENDS, STREAM_SENDS, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC};
    cm_open(&p->sides, NULL);
    uint16_t port = rdma_get_src_port(p->sides.listener);
    assert_int_equal(write(p->telling, &port, sizeof(port)), sizeof(port));
    p->id = cm_request(p->sides.b);
    assert_int_equal(rdma_create_qp(p->id, NULL, &attr), 0);
    p->buf = calloc(1, STREAM_PEER);
    p->image = calloc(1, STREAM_AREA);
    p->mr = ibv_reg_mr(p->id->pd, p->buf, STREAM_PEER,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_true(p->buf && p->image && p->mr);
}

static void peer_accept(struct peer *p)
{
    struct stream_peer me = {(uintptr_t)p->buf, p->mr->rkey};
    struct rdma_conn_param param = {
        .private_data = &me, .private_data_len = sizeof(me), .responder_resources = 1};
    for (unsigned i = 0; i < STREAM_SENDS; i++)
        post_recv(p, i);
    assert_int_equal(rdma_accept(p->id, &param), 0);
    expect_event(p, RDMA_CM_EVENT_ESTABLISHED);
}

static void peer_close(struct peer *p)
{
    assert_int_equal(ibv_dereg_mr(p->mr), 0);
    cm_drop(p->id);
    cm_close(&p->sides);
    free(p->buf);
    free(p->image);
}

/* ---- both ---- */

static const struct shape small = {1024, STREAM_SHORT, 64, false, false};
static const struct shape built = {1024, STREAM_SHORT, 64, false, true};
static const struct shape at_16 = {1024, STREAM_SHORT, 16, false, false};
static const struct shape mixed = {100, 9216, 64, true, false};
static const struct shape mixed_built = {100, 9216, 64, true, true};

static const struct way {
    const char *name;
    const struct shape *shape;
    void (*child)(struct stream *s);
    void (*peer)(struct peer *p);
} ways[] = {
    {"does nothing", &small, does_nothing, sees_all},
    {"does nothing, ibv_wr_*", &built, does_nothing, sees_all},
    {"does nothing, mixed", &mixed, does_nothing, sees_all},
    {"does nothing, mixed, ibv_wr_*", &mixed_built, does_nothing, sees_all},
    {"waits", &small, waits, sees_all},
    {"waits, mixed", &mixed, waits, sees_all},
    {"waits for each", &small, waits_for_each, sees_all},
    {"disconnects", &small, disconnects, is_disconnected},
    {"disconnects, mixed", &mixed, disconnects, is_disconnected},
    {"destroys", &small, destroys, is_disconnected_first},
    {"exits", &small, exits, is_disconnected},
    {"arms", &small, arms, sees_all},
    {"drains", &small, drains, sees_all},
    {"takes the memory away", &small, takes_memory_away, sees_all},
    {"takes the memory away, mixed", &mixed, takes_memory_away, sees_all},
    {"reads", &small, reads, sees_all},
    {"sends", &small, sends, receives},
    {"errs", &small, errs, is_disconnected_first},
    {"is left", &small, is_left, leaves},
    {"forks", &small, forks, sees_all},
    {"has two pollers", &small, has_two_pollers, sees_all},
    {"pings", &small, pings, answers},
    {"sends few", &at_16, sends_few, sees_all}, /* the last */
};

#ifdef __SANITIZE_THREAD__
#define LEFT_OUT 1 /* it makes messages so slow that hardly any are corked */
#else
#define LEFT_OUT 0
#endif

#define WAYS (sizeof(ways) / sizeof(ways[0]) - LEFT_OUT)

/* One child for each way, started before this process knows of RDMA. */
static struct child {
    pid_t pid;
    int told, telling;
} children[WAYS];

static void child_main(const struct way *way, int told, int telling)
{
    struct stream s = {.shape = way->shape, .told = told, .telling = telling};
    alarm(LIMIT_S);
    stream_open(&s);
    way->child(&s);
    exit(0);
}

static void start_children(void)
{
    for (size_t i = 0; i < WAYS; i++) {
        int to[2], from[2];
        if (pipe(to) || pipe(from))
            exit(1);
        children[i] = (struct child){fork(), from[0], to[1]};
        if (children[i].pid == 0)
            child_main(&ways[i], to[0], from[1]);
        close(to[0]);
        close(from[1]);
    }
}

static void everything_arrives(void **state)
{
    const struct way *way = *state;
    const struct child *c = &children[way - ways];
    struct peer p = {.shape = way->shape, .told = c->told, .telling = c->telling};
    int status;
    peer_open(&p);
    peer_accept(&p);
    way->peer(&p);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_int_equal(status, 0);
    peer_close(&p);
}

/* What is still in use at exit() is no leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    struct CMUnitTest tests[WAYS];
    alarm(LIMIT_S);
    start_children();
    for (size_t i = 0; i < WAYS; i++)
        tests[i] = (struct CMUnitTest){.name = ways[i].name,
                                       .test_func = everything_arrives,
                                       .initial_state = (void *)&ways[i]};
    setenv("ANYWARP_SHM", "off", 1); /* it counts what TCP does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

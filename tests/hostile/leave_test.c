/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leaving with work in the send queue: all of it goes out if the peer reads, and if not, not; then
 * the peer hears of the end by a reset, which no closed window holds up.
 */
#include "api/child.h"
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#define WRS       64  /* of SIDE_BYTES each: more than the sockets hold */
#define CPU_MS    300 /* of the thread that waits; it would be a second if it did not sleep */
#define LIMIT_S   10  /* the wait is bounded at all */
#define HEARD_MS  2000
#define PART      (SIDE_BYTES / 2) /* TCP takes it, the peer's window does not */
#define SLOW_MS   200              /* between two reads of a peer that is slow */
#define SLOW      (SIDE_BYTES / 16)
#define NS_PER_MS 1000000

static long ms_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

static void post_writes(struct side *v, int n)
{
    struct side remote = {.buf = v->buf, .mr = v->mr};
    for (int i = 0; i < n; i++)
        assert_int_equal(side_post(v, &remote, IBV_WR_RDMA_WRITE, 1, 0, SIDE_BYTES, 0, 0), 0);
}

static void disconnect(struct side *v)
{
    assert_int_equal(rdma_disconnect(v->id), 0);
}

static void destroy_qp(struct side *v)
{
    rdma_destroy_qp(v->id);
}

static void disconnect_and_destroy(struct side *v)
{
    assert_int_equal(rdma_disconnect(v->id), 0);
    rdma_destroy_qp(v->id);
}

static void leaving_is_bounded_and_sleeps(void **state)
{
    static const struct {
        void (*open)(struct peer *, const struct peer_conf *);
        void (*leave)(struct side *);
    } rows[] = {
        {peer_open, destroy_qp},
        {peer_open, disconnect_and_destroy},
        {peer_open_active, destroy_qp},
        {peer_open_active, disconnect_and_destroy},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct peer p;
        rows[i].open(&p, &(struct peer_conf){.side = {.send_wr = WRS}});
        post_writes(&p.victim, WRS);
        long cpu = ms_of(CLOCK_THREAD_CPUTIME_ID), start = ms_of(CLOCK_MONOTONIC);
        rows[i].leave(&p.victim);
        assert_true(ms_of(CLOCK_THREAD_CPUTIME_ID) - cpu < CPU_MS);
        assert_true(ms_of(CLOCK_MONOTONIC) - start < LIMIT_S * 1000);
        peer_close(&p);
    }
}

/** @return when the peer's socket got a reset, and -1 if it did not in time */
static long reset_at(struct peer *p)
{
    struct pollfd f = {.fd = p->fd};
    int error = 0;
    socklen_t len = sizeof(error);
    poll(&f, 1, LIMIT_S * 1000);
    long at = ms_of(CLOCK_MONOTONIC);
    assert_int_equal(getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    return error == ECONNRESET ? at : -1;
}

/** What TCP took, and the peer's does not, is in front of our FIN. */
static void a_peer_that_takes_nothing_hears_of_it(void **state)
{
    static const struct {
        int writes;
        uint32_t len;
        void (*leave)(struct side *);
    } rows[] = {
        {1, PART, disconnect},         {WRS, SIDE_BYTES, disconnect},     {1, PART, destroy_qp},
        {WRS, SIDE_BYTES, destroy_qp}, {1, PART, disconnect_and_destroy},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct peer p;
        peer_open(&p, &(struct peer_conf){.small_window = true, .side = {.send_wr = WRS}});
        struct side remote = {.buf = p.victim.buf, .mr = p.victim.mr};
        for (int n = 0; n < rows[i].writes; n++)
            assert_int_equal(
                side_post(&p.victim, &remote, IBV_WR_RDMA_WRITE, 1, 0, rows[i].len, 0, 0), 0);
        long start = ms_of(CLOCK_MONOTONIC);
        rows[i].leave(&p.victim);
        assert_in_range(reset_at(&p), start, start + HEARD_MS);
        side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p);
    }
}

/** A peer that takes something now and then gets all of it, though it is longer at it. */
static void a_slow_peer_gets_all(void **state)
{
    static struct peer p;
    static uint8_t bytes[SLOW];
    size_t total = 0;
    ssize_t n;
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    post_writes(&p.victim, 1);
    assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
    assert_int_equal(rdma_disconnect(p.victim.id), 0);
    while ((n = recv(p.fd, bytes, sizeof(bytes), MSG_WAITALL)) > 0) {
        total += (size_t)n;
        nanosleep(&(struct timespec){.tv_nsec = SLOW_MS * NS_PER_MS}, NULL);
    }
    assert_int_equal(n, 0);
    assert_true(total > SIDE_BYTES);
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    peer_close(&p);
}

/** A peer that goes on sending does not keep the connection, nor the thread that drops the bytes.
 */
static void a_peer_that_goes_on_sending_is_left(void **state)
{
    static struct peer p;
    static uint8_t bytes[SLOW];
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    destroy_qp(&p.victim);
    long start = ms_of(CLOCK_MONOTONIC);
    while (send(p.fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0 &&
           ms_of(CLOCK_MONOTONIC) - start < LIMIT_S * 1000)
        ;
    assert_in_range(ms_of(CLOCK_MONOTONIC) - start, 0, 2 * HEARD_MS);
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    peer_close(&p);
}

/* ---- exit() ---- */

static struct {
    pid_t pid;
    int port, go; /* pipes */
} child;

static void child_main(int port_fd, int go_fd)
{
    char c;
    static struct rdma_event_channel *ch; /* what is in use at exit() is no leak */
    static struct rdma_cm_id *id;
    static struct ibv_mr *volatile mr; /* not left out, as nobody reads it */
    static char *volatile buf;
    ch = rdma_create_event_channel();
    CHECK(ch);
    id = child_resolve(ch, port_fd);
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &attr));
    struct rdma_conn_param param = {.initiator_depth = 4, .responder_resources = 4};
    CHECK(!rdma_connect(id, &param));
    child_event(ch, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    buf = calloc(1, PART);
    mr = ibv_reg_mr(id->pd, buf, PART, 0);
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)buf, PART, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    CHECK(!ibv_post_send(id->qp, &wr, &bad));
    CHECK(read(go_fd, &c, 1) == 1);
    exit(0);
}

static void start_child(void)
{
    int port[2], go[2];
    if (pipe(port) || pipe(go))
        exit(1);
    child.pid = fork();
    child.port = port[1];
    child.go = go[1];
    if (child.pid == 0)
        child_main(port[0], go[0]);
    close(port[0]);
    close(go[0]);
}

static void the_peer_of_a_process_that_exits_hears_of_it(void **state)
{
    static struct peer p = {.fd = -1, .quoted = -1};
    uint8_t reply[PEER_REPLY_MAX];
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int status;
    (void)state;
    p.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(p.listening, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    assert_return_code(bind(p.listening, (struct sockaddr *)&addr, len), errno);
    assert_return_code(listen(p.listening, 1), errno);
    assert_return_code(getsockname(p.listening, (struct sockaddr *)&addr, &len), errno);
    assert_int_equal(write(child.port, &addr.sin_port, sizeof(addr.sin_port)),
                     sizeof(addr.sin_port));
    peer_take_request(&p);
    peer_send(&p, reply, peer_reply(&p, reply));
    poll(NULL, 0, SLOW_MS);
    long start = ms_of(CLOCK_MONOTONIC);
    assert_int_equal(write(child.go, "", 1), 1);
    assert_in_range(reset_at(&p), start, start + HEARD_MS);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(status, 0);
    peer_hang_up(&p, false);
    close(p.listening);
}

/** More than goes out at a time, and more than the sockets hold. */
static void what_was_posted_goes_out(void **state)
{
    static void (*const open[])(struct peer *, const struct peer_conf *) = {peer_open,
                                                                            peer_open_active};
    (void)state;
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        static struct peer p;
        size_t bytes = 0;
        ssize_t n;
        open[i](&p, &(struct peer_conf){.side = {.send_wr = WRS}});
        post_writes(&p.victim, 16);
        assert_int_equal(rdma_disconnect(p.victim.id), 0);
        while ((n = recv(p.fd, p.in, sizeof(p.in), 0)) > 0)
            bytes += (size_t)n;
        assert_int_equal(n, 0); /* a FIN, no reset */
        assert_true(bytes > 16 * SIDE_BYTES);
        for (int wc = 0; wc < 16; wc++)
            assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
        side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p);
    }
}

/** Like an adapter, it waits for no answer of the peer once it leaves. */
static void what_waits_for_an_answer_is_flushed(void **state)
{
    static const struct {
        int reads, sent; /* the reads that go out */
        unsigned flags;  /* of the Send behind them */
    } rows[] = {{1, 1, IBV_SEND_FENCE}, {4, 4, IBV_SEND_FENCE}, {6, 4, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct peer p;
        struct peer_seg s;
        struct side *v = &p.victim;
        uint64_t id = 0;
        peer_open(&p, &(struct peer_conf){.no_crc = true});
        while (id < (uint64_t)rows[i].reads)
            assert_int_equal(side_post(v, v, IBV_WR_RDMA_READ, ++id, 0, 8, 8, 0), 0);
        assert_int_equal(side_post(v, v, IBV_WR_SEND, ++id, 0, 8, 0, rows[i].flags), 0);
        assert_int_equal(rdma_disconnect(v->id), 0);
        for (int k = 0; k < rows[i].sent; k++) {
            assert_true(peer_next(&p, &s));
            assert_int_equal(s.rdmap & 0xf, PEER_READ_REQUEST);
        }
        assert_false(peer_next(&p, &s) || p.reset);
        peer_hang_up(&p, false);
        for (uint64_t k = 1; k <= id; k++) {
            struct ibv_wc wc = side_poll(v);
            assert_int_equal(wc.wr_id, k);
            assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        }
        side_event(v, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_of_a_process_that_exits_hears_of_it),
        cmocka_unit_test(a_peer_that_takes_nothing_hears_of_it),
        cmocka_unit_test(a_slow_peer_gets_all),
        cmocka_unit_test(a_peer_that_goes_on_sending_is_left),
        cmocka_unit_test(what_was_posted_goes_out),
        cmocka_unit_test(leaving_is_bounded_and_sleeps),
        cmocka_unit_test(what_waits_for_an_answer_is_flushed),
    };
    start_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

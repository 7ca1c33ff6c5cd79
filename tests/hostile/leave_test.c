/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaving with work in the send queue: all of it goes out if the peer reads, and if not, not. */
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#define WRS       64  /* of SIDE_BYTES each: more than the sockets hold */
#define CPU_MS    300 /* of the thread that waits; it would be a second if it did not sleep */
#define LIMIT_S   10  /* the wait is bounded at all */
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
        cmocka_unit_test(what_was_posted_goes_out),
        cmocka_unit_test(leaving_is_bounded_and_sleeps),
        cmocka_unit_test(what_waits_for_an_answer_is_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

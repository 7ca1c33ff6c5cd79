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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_posted_goes_out),
        cmocka_unit_test(leaving_is_bounded_and_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of a lasting ping-pong is left to who polls, and stands in no epoll set. It goes back
 * later, and that may fail: the user's watches are used up by then. The connection goes on.
 */
#include "calls.h"
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define WRS     128
#define PINGS   100000 /* at most, until a socket is adopted; some hundreds do */
#define WRITES  32
#define WAIT_MS 10000

static atomic_bool used_up;
static atomic_uint taken_out, put_back, refused;

static int before(long number, const long args[6])
{
    bool add = number == SYS_epoll_ctl && args[1] == EPOLL_CTL_ADD;
    atomic_fetch_add(&taken_out, number == SYS_epoll_ctl && args[1] == EPOLL_CTL_DEL);
    if (add)
        atomic_fetch_add(used_up ? &refused : &put_back, 1);
    return add && used_up ? ENOSPC : 0;
}

static void ping(struct pair *p, uint64_t id)
{
    side_recv(&p->b, id, 4096, 64);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, id, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p->b).wr_id, id);
    assert_int_equal(side_poll(&p->a).wr_id, id);
}

/** A pair whose side b polls a socket of its own, which can not go back. */
static void open_adopted(struct pair *p)
{
    unsigned i = 0, out, back;
    pair_open(p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    refused = 0;
    do {
        used_up = false;
        out = taken_out;
        back = put_back;
        for (; taken_out == out && i < PINGS; i++)
            ping(p, i);
        used_up = true;
    } while (put_back != back); /* on a slow machine, already */
    assert_true(i < PINGS);
}

static void arm(struct side *s)
{
    assert_int_equal(ibv_req_notify_cq(s->cq, 0), 0);
}

/** Sleeps until there is a completion. */
static void await(struct side *s)
{
    struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
}

static void wake(struct pair *p)
{
    side_recv(&p->b, 0, 4096, 64);
    arm(&p->b);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 0, 0, 64, 0, 0), 0);
    await(&p->b);
    assert_int_equal(side_poll(&p->b).status, IBV_WC_SUCCESS);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

/** Whoever polled goes to sleep. */
static void sleeps(void **state)
{
    struct pair p;
    (void)state;
    open_adopted(&p);
    wake(&p);
    assert_true(refused > 0);

    unsigned was = put_back;
    used_up = false;
    for (int i = 0; i < PINGS && put_back == was; i++)
        wake(&p);
    assert_int_equal(put_back - was, 1);
    pair_close(&p, 1);
}

/** More than TCP takes at once: the rest goes out when there is room, with nobody polling. */
static void sends(void **state)
{
    struct pair p;
    struct ibv_wc wc;
    (void)state;
    open_adopted(&p);
    arm(&p.b);
    for (int i = 0; i < WRITES; i++)
        assert_int_equal(side_post(&p.b, &p.a, IBV_WR_RDMA_WRITE, i, 0, SIDE_BYTES, 0, 0), 0);
    for (int done = 0; done < WRITES;) {
        await(&p.b);
        arm(&p.b);
        for (; ibv_poll_cq(p.b.cq, 1, &wc) > 0; done++)
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
    assert_true(refused > 0);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps),
        cmocka_unit_test(sends),
    };
    calls_before = before;
    setenv("ANYWARP_SHM", "off", 1); /* it counts what TCP does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

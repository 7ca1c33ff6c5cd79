/* SPDX-License-Identifier: BSD-2-Clause */
/* Who makes progress when a program polls and arms: post.c on a scripted CQ and engine. */
#include "cq/cq.h"
#include "cq/visibility.h"
#include "engine/poller.h"
#include "qp/qp.h"
#include "verbs/ops.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char
    calls[64]; /* t take, c count, p poll, o order, a arm of the engine, s S arm of the CQ */
static struct iw_cq cq;
static int ready, arrives;     /* completions in the CQ; what a pass adds */
static int crowded, meanwhile; /* what others add, who get the processor */

static void note(char c)
{
    size_t n = strlen(calls);
    assert_true(n + 1 < sizeof(calls));
    calls[n] = c;
    calls[n + 1] = '\0';
}

int iw_cq_take(struct iw_cq *taken, int n, struct ibv_wc *wc)
{
    (void)wc;
    assert_ptr_equal(taken, &cq);
    note('t');
    int got = ready < n ? ready : n;
    ready -= got;
    return got;
}

void iw_engine_polled(struct iw_poller *p)
{
    assert_ptr_equal(p, &cq.poller);
    note('c');
}

bool iw_engine_give_way(void)
{
    if (crowded)
        note('w');
    ready += meanwhile;
    return crowded;
}

void iw_engine_poll(struct iw_poller *p)
{
    assert_ptr_equal(p, &cq.poller);
    note('p');
    ready += arrives;
    arrives = 0;
}

void iw_engine_found(struct iw_poller *p)
{
    assert_ptr_equal(p, &cq.poller);
    note('f');
}

void iw_visibility_show(struct iw_cq *shown, const struct ibv_wc *wc, int n)
{
    (void)wc;
    assert_ptr_equal(shown, &cq);
    assert_true(n > 0);
    note('o');
}

void iw_engine_arm(struct iw_poller *p)
{
    assert_ptr_equal(p, &cq.poller);
    note('a');
}

void iw_cq_arm(struct iw_cq *armed, bool solicited_only)
{
    assert_ptr_equal(armed, &cq);
    note(solicited_only ? 'S' : 's');
}

int iw_post_send(struct iw_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
                 enum iw_post how)
{
    (void)qp;
    assert_int_equal(how, IW_POST_EACH);
    *bad_wr = wr;
    return ENOMEM;
}

int iw_post_recv(struct iw_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    (void)qp;
    *bad_wr = wr;
    return EINVAL;
}

static const struct {
    int ready, arrives, n;
    int got;
    const char *calls;
    int crowded, meanwhile;
} polls[] = {
    {0, 0, 4, 0, "tcpt", 0, 0},    /* nothing, and a pass in vain */
    {2, 0, 4, 2, "tcfo", 0, 0},    /* it was there */
    {0, 3, 2, 2, "tcpto", 0, 0},   /* a pass brought something */
    {1, 0, 4, 1, "tcfo", 0, 0},    /* the rest of that */
    {0, 0, 0, 0, "", 0, 0},        /* no room */
    {0, 0, -1, -EINVAL, "", 0, 0}, /* less than none */
    {0, 3, 4, 2, "tcwtfo", 1, 2},  /* somebody else's pass brought something */
    {0, 3, 4, 3, "tcwtpto", 1, 0}, /* or did not */
    {1, 3, 4, 1, "tcfo", 1, 2},    /* nobody gives way to find what is there */
};

static void test_poll(void **state)
{
    struct ibv_wc wc[4];
    (void)state;
    for (size_t i = 0; i < sizeof(polls) / sizeof(polls[0]); i++) {
        calls[0] = '\0';
        ready = polls[i].ready;
        arrives = polls[i].arrives;
        crowded = polls[i].crowded;
        meanwhile = polls[i].meanwhile;
        if (op_poll_cq(&cq.pub, polls[i].n, wc) != polls[i].got ||
            strcmp(calls, polls[i].calls) != 0)
            fail_msg("row %zu: calls %s", i, calls);
    }
}

/** The engine takes over before the CQ is armed, or a completion in between would wake nobody. */
static void test_arm(void **state)
{
    (void)state;
    calls[0] = '\0';
    assert_int_equal(op_req_notify_cq(&cq.pub, 0), 0);
    assert_int_equal(op_req_notify_cq(&cq.pub, 7), 0);
    assert_string_equal(calls, "asaS");
}

static void test_post(void **state)
{
    static struct iw_qp qp;
    struct ibv_send_wr send, *bad_send = NULL;
    struct ibv_recv_wr recv, *bad_recv = NULL;
    (void)state;
    assert_int_equal(op_post_send(&qp.pub, &send, &bad_send), ENOMEM);
    assert_ptr_equal(bad_send, &send);
    assert_int_equal(op_post_recv(&qp.pub, &recv, &bad_recv), EINVAL);
    assert_ptr_equal(bad_recv, &recv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poll),
        cmocka_unit_test(test_arm),
        cmocka_unit_test(test_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

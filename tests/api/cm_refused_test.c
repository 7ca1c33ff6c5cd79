/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nobody listens yet: peers that agree over another connection when to connect leave it to chance
 * who is first. TCP refuses some attempts, and then one goes through, or a last one does not.
 */
#include "calls.h"
#include "cm_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define REFUSALS 6 /* that a program does not hear of */
#define FOREVER  1000000

static atomic_int left;  /* attempts that are going to be refused */
static atomic_int tried; /* attempts */
static struct cm_sides s;

static int before(long number, const long args[6])
{
    if (number != SYS_connect || ((const struct sockaddr *)args[1])->sa_family != AF_INET)
        return 0;
    atomic_fetch_add(&tried, 1);
    return atomic_fetch_sub(&left, 1) > 0 ? ECONNREFUSED : 0;
}

/** A connect that has been asked for, of which TCP will refuse so many attempts. */
static struct rdma_cm_id *begin(int refusals)
{
    left = 0; /* the look for a route connects, too */
    struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
    left = refusals;
    tried = 0;
    assert_int_equal(rdma_connect(id, NULL), 0);
    return id;
}

static void it_connects_once_somebody_listens(void **state)
{
    (void)state;
    for (int refusals = 1; refusals <= REFUSALS; refusals++) {
        struct rdma_cm_id *a = begin(refusals);
        struct rdma_cm_id *b = cm_request(s.b);
        cm_add_qp(b);
        assert_int_equal(rdma_accept(b, NULL), 0);
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
        assert_int_equal(tried, refusals + 1);
        cm_drop(a);
        cm_drop(b);
    }
}

static void in_the_end_it_is_rejected(void **state)
{
    (void)state;
    struct rdma_cm_id *a = begin(FOREVER);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    assert_int_equal(tried, REFUSALS + 1);
    cm_drop(a);
}

/** At any point of the attempts. */
static void it_is_given_up_on(void **state)
{
    (void)state;
    for (int attempts = 1; attempts <= REFUSALS; attempts++) {
        struct rdma_cm_id *a = begin(FOREVER);
        while (tried < attempts)
            ;
        cm_drop(a);
        assert_true(tried <= REFUSALS + 1);
    }
    cm_quiet(s.a, 100);
}

static int set_up(void **state)
{
    (void)state;
    cm_open(&s, NULL);
    calls_before = before;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cm_close(&s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_connects_once_somebody_listens),
        cmocka_unit_test(in_the_end_it_is_rejected),
        cmocka_unit_test(it_is_given_up_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

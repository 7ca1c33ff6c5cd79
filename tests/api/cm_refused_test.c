/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nobody listens yet: peers that agree over another connection when to connect leave it to chance
 * who is first. TCP refuses some attempts, and then one goes through, or a last one does not.
 */
#include "calls.h"
#include "cm_kit.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#define REFUSALS 6 /* that a program does not hear of */
#define FOREVER  1000000
#define LIMIT_S  10
#define PAUSE_MS 100 /* longer than all of the attempts */

static atomic_int left;    /* attempts that are going to be refused, beside what the kernel does */
static atomic_int tried;   /* attempts */
static atomic_int hold_at; /* this attempt waits, 0: none does */
static struct cm_sides s;

/** Until @p n is at least @p least, with a limit. */
static bool reaches(atomic_int *n, int least)
{
    time_t end = time(NULL) + LIMIT_S;
    while (*n < least && time(NULL) < end)
        sched_yield();
    return *n >= least;
}

static int before(long number, const long args[6])
{
    if (number != SYS_connect || ((const struct sockaddr *)args[1])->sa_family != AF_INET)
        return 0;
    int attempt = atomic_fetch_add(&tried, 1) + 1;
    for (time_t end = time(NULL) + LIMIT_S; attempt == hold_at && time(NULL) < end;)
        sched_yield();
    return atomic_fetch_sub(&left, 1) > 0 ? ECONNREFUSED : 0;
}

/** A connect that has been asked for, of which so many attempts will be refused at once. */
static struct rdma_cm_id *begin(const struct sockaddr_storage *to, int refusals)
{
    left = 0; /* the look for a route connects, too */
    struct rdma_cm_id *id = cm_prepare(s.a, to);
    left = refusals;
    tried = 0;
    assert_int_equal(rdma_connect(id, NULL), 0);
    return id;
}

static void expect_connection(struct rdma_cm_id *a)
{
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_drop(a);
    cm_drop(b);
}

static void it_connects_in_the_end(void **state)
{
    (void)state;
    for (int refusals = 1; refusals <= REFUSALS; refusals++) {
        expect_connection(begin(&s.addr, refusals));
        assert_int_equal(tried, refusals + 1);
    }
}

static void in_the_end_it_is_rejected(void **state)
{
    (void)state;
    struct rdma_cm_id *a = begin(&s.addr, FOREVER);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    assert_int_equal(tried, REFUSALS + 1);
    cm_drop(a);
}

/** An id that has a port, and does not listen. @param to  gets its address */
static struct rdma_cm_id *bind_only(struct sockaddr_storage *to)
{
    struct rdma_cm_id *id;
    cm_address(to, "127.0.0.1", 0);
    assert_int_equal(rdma_create_id(s.b, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)to), 0);
    cm_address(to, "127.0.0.1", rdma_get_src_port(id));
    return id;
}

/** The kernel refuses, and says so later. */
static void it_connects_once_somebody_listens(void **state)
{
    struct sockaddr_storage to;
    struct rdma_cm_id *listener = bind_only(&to);
    (void)state;
    hold_at = REFUSALS;
    struct rdma_cm_id *a = begin(&to, 0);
    assert_true(reaches(&tried, REFUSALS));
    assert_int_equal(rdma_listen(listener, 0), 0);
    hold_at = 0;
    expect_connection(a);
    assert_int_equal(tried, REFUSALS);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

static void it_is_rejected_if_nobody_does(void **state)
{
    struct sockaddr_storage to;
    struct rdma_cm_id *listener = bind_only(&to);
    (void)state;
    struct rdma_cm_id *a = begin(&to, 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    assert_int_equal(tried, REFUSALS + 1);
    cm_drop(a);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/** At any point of the attempts. */
static void it_is_given_up_on(void **state)
{
    (void)state;
    for (int attempts = 1; attempts <= REFUSALS; attempts++) {
        struct rdma_cm_id *a = begin(&s.addr, FOREVER);
        assert_true(reaches(&tried, attempts));
        cm_drop(a);
        int at_the_end = tried;
        cm_quiet(s.a, PAUSE_MS);
        assert_int_equal(tried, at_the_end);
    }
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
        cmocka_unit_test(it_connects_in_the_end),
        cmocka_unit_test(in_the_end_it_is_rejected),
        cmocka_unit_test(it_connects_once_somebody_listens),
        cmocka_unit_test(it_is_rejected_if_nobody_does),
        cmocka_unit_test(it_is_given_up_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

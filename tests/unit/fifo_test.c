/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/fifo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A CQ that numbers its completions. */
static struct ibv_context context;
static struct ibv_cq cq = {.context = &context};
static uint64_t there, taken;
static int failure;

static int poll_cq(struct ibv_cq *of, int n, struct ibv_wc *wc)
{
    assert_ptr_equal(of, &cq);
    if (failure)
        return failure;
    int i = 0;
    for (; i < n && taken < there; i++)
        wc[i].wr_id = taken++;
    return i;
}

static int setup(void **state)
{
    (void)state;
    context.ops.poll_cq = poll_cq;
    there = taken = 0;
    failure = 0;
    return 0;
}

static void expect(struct wc_fifo *f, int n, uint64_t first, int count)
{
    struct ibv_wc wc[100];
    assert_int_equal(fifo_poll(f, n, wc), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(wc[i].wr_id, first + (uint64_t)i);
}

static void what_was_looked_at_comes_first(void **state)
{
    (void)state;
    struct wc_fifo f = {.cq = &cq};
    assert_int_equal(fifo_pull(&f, 1), 0);
    there = 5;
    assert_int_equal(fifo_pull(&f, 0), 0);
    assert_true(fifo_pull(&f, 3) >= 3);
    there = 40;
    assert_true(fifo_pull(&f, 33) >= 33);
    assert_true(fifo_pull(&f, 1) >= 33);
    assert_int_equal(f.pulled, taken);
    expect(&f, 2, 0, 2);
    expect(&f, 0, 0, 0);
    expect(&f, 100, 2, 38);
    expect(&f, 1, 0, 0);
    assert_int_equal(f.pulled, 40);
    fifo_fini(&f);
}

/* Round the ring, however much is taken at a time. */
static void order_is_kept(void **state)
{
    (void)state;
    struct wc_fifo f = {.cq = &cq};
    uint64_t next = 0;
    for (uint64_t step = 1; step < 60; step++) {
        there += step % 7 * 3;
        int n = fifo_pull(&f, (uint32_t)(step % 23));
        assert_true(n >= 0 && (n >= (int)(step % 23) || taken == there));
        int want = (int)(step * 5 % 13);
        int most = (int)(there - next);
        expect(&f, want, next, want < most ? want : most);
        next += (uint64_t)(want < most ? want : most);
    }
    fifo_fini(&f);
}

static void a_failed_cq_still_gives_what_was_taken(void **state)
{
    (void)state;
    struct wc_fifo f = {.cq = &cq};
    there = 3;
    assert_int_equal(fifo_pull(&f, 3), 3);
    failure = -EIO;
    assert_int_equal(fifo_pull(&f, 4), -EIO);
    expect(&f, 100, 0, 3);
    struct ibv_wc wc;
    assert_int_equal(fifo_poll(&f, 1, &wc), -EIO);
    fifo_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_looked_at_comes_first, setup),
        cmocka_unit_test_setup(order_is_kept, setup),
        cmocka_unit_test_setup(a_failed_cq_still_gives_what_was_taken, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

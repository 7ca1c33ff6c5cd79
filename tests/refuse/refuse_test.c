/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each row of IW_REFUSALS is provoked, by the call that a program would make, and what stands in
 * the log is its sentence. A row that no case names fails the test.
 */
#include "cases.h"

#include "../api/logfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE 1200

struct world w;

static struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_true(list && list[0]);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    assert_non_null(ctx);
    ibv_free_device_list(list);
    return ctx;
}

static int set_up(void **state)
{
    struct ibv_qp_init_attr attr;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 2, .max_sge = 1}};
    if (log_setup(state))
        return -1;
    w.ctx = open_first();
    w.other_ctx = open_first();
    w.pd = ibv_alloc_pd(w.ctx);
    w.other_pd = ibv_alloc_pd(w.other_ctx);
    w.channel = ibv_create_comp_channel(w.ctx);
    w.cq = ibv_create_cq(w.ctx, 64, NULL, w.channel, 0);
    w.other_cq = ibv_create_cq(w.other_ctx, 8, NULL, NULL, 0);
    w.srq = ibv_create_srq(w.pd, &srq);
    attr = qp_attr();
    w.qp = ibv_create_qp(w.pd, &attr);
    attr = qp_attr();
    w.fresh = ibv_create_qp(w.pd, &attr);
    w.bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    w.mr = ibv_reg_mr(w.pd, w.bytes, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    w.events = rdma_create_event_channel();
    assert_true(w.pd && w.other_pd && w.cq && w.other_cq && w.srq && w.qp && w.fresh && w.mr);
    assert_int_equal(modify(w.qp, IBV_QPS_ERR), 0);
    return rdma_create_id(w.events, &w.id, NULL, RDMA_PS_TCP);
}

static int tear_down(void **state)
{
    rdma_destroy_id(w.id);
    rdma_destroy_event_channel(w.events);
    ibv_dereg_mr(w.mr);
    munmap(w.bytes, BYTES);
    ibv_destroy_qp(w.qp);
    ibv_destroy_qp(w.fresh);
    ibv_destroy_srq(w.srq);
    ibv_destroy_cq(w.cq);
    ibv_destroy_cq(w.other_cq);
    ibv_destroy_comp_channel(w.channel);
    ibv_dealloc_pd(w.pd);
    ibv_dealloc_pd(w.other_pd);
    ibv_close_device(w.ctx);
    ibv_close_device(w.other_ctx);
    return log_teardown(state);
}

static int (*const provoke[IW_REFUSED_COUNT])(void) = {
#define X(name, function) [IW_REFUSED_##name] = refused_##function,
    CASES(X)
#undef X
};

static const struct {
    const char *name, *sentence;
    int error;
} rows[] = {
#define X(name, error, sentence) {#name, sentence, error},
    IW_REFUSALS(X)
#undef X
};

/** Writes an fnmatch() pattern of the log's line: what printf() fills in may be anything. */
static void pattern_of(const char *sentence, char pattern[LINE])
{
    char *to = pattern + sprintf(pattern, "anywarp: *: ");
    for (const char *at = sentence; *at; at++) {
        if (*at == '%') {
            at += strcspn(at, "duxs");
            *to++ = '*';
        } else {
            *to++ = *at;
        }
    }
    strcpy(to, "\n");
}

static void test_each_row(void **unused)
{
    char pattern[LINE];
    (void)unused;
    for (unsigned i = 0; i < IW_REFUSED_COUNT; i++) {
        if (!provoke[i])
            fail_msg("nothing provokes %s", rows[i].name);
        log_clear();
        int error = provoke[i]();
        if (error != rows[i].error)
            fail_msg("%s: %d, not %d", rows[i].name, error, rows[i].error);
        pattern_of(rows[i].sentence, pattern);
        if (!log_has(pattern))
            fail_msg("%s: not in the log", rows[i].name);
    }
}

static void test_once(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    log_clear();
    assert_int_equal(post(qp, IBV_WR_SEND, 0, 0, 0), EINVAL);
    assert_true(log_has("*: the QP is in INIT: *"));
    log_clear();
    assert_int_equal(post(qp, IBV_WR_SEND, 0, 0, 0), EINVAL);
    assert_false(log_has("*"));
    ibv_destroy_qp(qp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row),
        cmocka_unit_test(test_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that a test asks for, one by one. */
#include <anywarp/chaos.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct ibv_context *open_one(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(ctx);
    return ctx;
}

static int post(struct ibv_qp *qp)
{
    struct ibv_recv_wr *bad, wr = {0};
    return ibv_post_recv(qp, &wr, &bad);
}

static int made_ready(void)
{
    assert_int_equal(anywarp_chaos_next(NULL, 0), 0);
    struct ibv_context *ctx = open_one();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    assert_non_null(qp);
    assert_int_equal(
        ibv_modify_qp(qp, &init,
                      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
        0);
    assert_int_equal(anywarp_chaos_next("post_recv", 2), 0);
    assert_int_equal(post(qp), 0);
    assert_int_equal(post(qp), 0);
    assert_int_equal(post(qp), ENOMEM);
    assert_int_equal(post(qp), 0); /* once */
    assert_int_equal(anywarp_chaos_next("post_recv", 0), 0);
    assert_int_equal(anywarp_chaos_next(NULL, 0), 0);
    assert_int_equal(post(qp), 0); /* forgotten */
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    return 0;
}

static int too_late(void)
{
    struct ibv_context *ctx = open_one();
    assert_int_equal(anywarp_chaos_next("post_send", 0), EBUSY);
    assert_int_equal(anywarp_chaos_next("cut_rst", 0), EBUSY);
    assert_int_equal(anywarp_chaos_next("alloc_pd", 0), 0);
    assert_null(ibv_alloc_pd(ctx));
    assert_int_equal(errno, ENOMEM);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    assert_non_null(pd);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    return 0;
}

static int refused(void)
{
    assert_int_equal(anywarp_chaos_next("nothing", 0), ENOENT);
    return 0;
}

static int (*scene)(void);

static void play(void **state)
{
    (void)state;
    assert_int_equal(scene(), 0);
}

/** Each begins in a process that has opened nothing. */
static void in_child(int (*f)(void))
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(play)};
    int status;
    scene = f;
    pid_t pid = fork();
    if (pid == 0)
        _exit(cmocka_run_group_tests(tests, NULL, NULL));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void once_when_it_is_ready(void **state)
{
    (void)state;
    in_child(made_ready);
}

static void too_late_for_some(void **state)
{
    (void)state;
    in_child(too_late);
}

static void what_is_refused(void **state)
{
    (void)state;
    in_child(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_when_it_is_ready),
        cmocka_unit_test(too_late_for_some),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

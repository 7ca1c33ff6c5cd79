/* SPDX-License-Identifier: BSD-2-Clause */
/* The eight XRC calls of OFED 1.x, declared in <rdma/xrc.h>: EINVAL on NULL, else ENOSYS. */
#include "fails.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>
#include <rdma/xrc.h>

/* No call looks at what it cannot use: any pointers will do. */
static uint64_t thing;
#define A_CONTEXT ((struct ibv_context *)(void *)&thing)
#define A_DOMAIN  ((struct ibv_xrc_domain *)(void *)&thing)
#define A_PD      ((struct ibv_pd *)(void *)&thing)
#define A_CQ      ((struct ibv_cq *)(void *)&thing)

static struct ibv_srq_init_attr srq_attr;
static struct ibv_qp_init_attr init_attr;
static struct ibv_qp_attr attr;

static void test_domain(void **state)
{
    (void)state;
    NULL_AND(EINVAL, ibv_open_xrc_domain(NULL, -1, 0));
    NULL_AND(ENOSYS, ibv_open_xrc_domain(A_CONTEXT, -1, 0));
    assert_int_equal(ibv_close_xrc_domain(NULL), EINVAL);
    assert_int_equal(ibv_close_xrc_domain(A_DOMAIN), ENOSYS);
}

static void test_srq(void **state)
{
    (void)state;
    NULL_AND(EINVAL, ibv_create_xrc_srq(NULL, A_DOMAIN, A_CQ, &srq_attr));
    NULL_AND(EINVAL, ibv_create_xrc_srq(A_PD, NULL, A_CQ, &srq_attr));
    NULL_AND(EINVAL, ibv_create_xrc_srq(A_PD, A_DOMAIN, NULL, &srq_attr));
    NULL_AND(EINVAL, ibv_create_xrc_srq(A_PD, A_DOMAIN, A_CQ, NULL));
    NULL_AND(ENOSYS, ibv_create_xrc_srq(A_PD, A_DOMAIN, A_CQ, &srq_attr));
}

static void test_receive_qp(void **state)
{
    uint32_t number = 7;
    (void)state;
    assert_int_equal(ibv_create_xrc_rcv_qp(NULL, &number), EINVAL);
    assert_int_equal(ibv_create_xrc_rcv_qp(&init_attr, NULL), EINVAL);
    assert_int_equal(ibv_create_xrc_rcv_qp(&init_attr, &number), ENOSYS);
    assert_int_equal(ibv_modify_xrc_rcv_qp(NULL, number, &attr, IBV_QP_STATE), EINVAL);
    assert_int_equal(ibv_modify_xrc_rcv_qp(A_DOMAIN, number, NULL, IBV_QP_STATE), EINVAL);
    assert_int_equal(ibv_modify_xrc_rcv_qp(A_DOMAIN, number, &attr, IBV_QP_STATE), ENOSYS);
    assert_int_equal(ibv_query_xrc_rcv_qp(NULL, number, &attr, 0, &init_attr), EINVAL);
    assert_int_equal(ibv_query_xrc_rcv_qp(A_DOMAIN, number, NULL, 0, &init_attr), EINVAL);
    assert_int_equal(ibv_query_xrc_rcv_qp(A_DOMAIN, number, &attr, 0, NULL), EINVAL);
    assert_int_equal(ibv_query_xrc_rcv_qp(A_DOMAIN, number, &attr, 0, &init_attr), ENOSYS);
    assert_int_equal(ibv_reg_xrc_rcv_qp(NULL, number), EINVAL);
    assert_int_equal(ibv_reg_xrc_rcv_qp(A_DOMAIN, number), ENOSYS);
    assert_int_equal(ibv_unreg_xrc_rcv_qp(NULL, number), EINVAL);
    assert_int_equal(ibv_unreg_xrc_rcv_qp(A_DOMAIN, number), ENOSYS);
    assert_int_equal(number, 7);
}

static void test_nothing_is_written(void **state)
{
    static const struct ibv_qp_attr zero_attr;
    static const struct ibv_qp_init_attr zero_init;
    static const struct ibv_srq_init_attr zero_srq;
    (void)state;
    assert_int_equal(thing, 0);
    assert_memory_equal(&attr, &zero_attr, sizeof(attr));
    assert_memory_equal(&init_attr, &zero_init, sizeof(init_attr));
    assert_memory_equal(&srq_attr, &zero_srq, sizeof(srq_attr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_domain),
        cmocka_unit_test(test_srq),
        cmocka_unit_test(test_receive_qp),
        cmocka_unit_test(test_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* ANYWARP_LIKE=siw: what Soft-iWARP would refuse is refused, what it offers works. */
#include "logfile.h"
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

static struct pair p;

static int connect_pair(void **state)
{
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 8, .recv_wr = 8, .sge = 2});
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    pair_close(&p, 1);
    return 0;
}

static void the_attributes_are_the_adapters(void **state)
{
    struct ibv_device_attr a;
    (void)state;
    assert_int_equal(ibv_query_device(p.a.id->verbs, &a), 0);
    assert_int_equal(a.max_sge, 6);
    assert_int_equal(a.max_sge_rd, 1);
    assert_int_equal(a.max_mw, 0);
    assert_int_equal(a.atomic_cap, IBV_ATOMIC_NONE);
    assert_int_equal(a.max_cqe, 3276800);
    assert_int_equal(a.max_qp_wr, 32768);
    assert_false(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    assert_string_equal(p.a.id->verbs->device->name, "anywarp0");
}

static int try_qp(struct ibv_qp_cap cap)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p.a.cq, .recv_cq = p.a.cq, .cap = cap, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.a.pd, &init);
    return qp ? ibv_destroy_qp(qp) : errno;
}

static int try_cq(int cqe)
{
    struct ibv_cq *cq = ibv_create_cq(p.a.id->verbs, cqe, NULL, NULL, 0);
    return cq ? ibv_destroy_cq(cq) : errno;
}

static int try_srq(uint32_t sge)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = sge}};
    struct ibv_srq *srq = ibv_create_srq(p.a.pd, &init);
    return srq ? ibv_destroy_srq(srq) : errno;
}

static int try_ops(uint64_t ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = p.a.cq,
        .recv_cq = p.a.cq,
        .cap = {.max_send_wr = 1, .max_send_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = p.a.pd,
        .send_ops_flags = ops,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(p.a.id->verbs, &init);
    return qp ? ibv_destroy_qp(qp) : errno;
}

static void sizes_and_objects_have_its_limits(void **state)
{
    (void)state;
    assert_int_equal(try_qp((struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 6}), 0);
    assert_int_equal(try_qp((struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 7}), EINVAL);
    assert_int_equal(try_qp((struct ibv_qp_cap){.max_recv_wr = 1, .max_recv_sge = 7}), EINVAL);
    assert_int_equal(try_cq(100), 0);
    assert_int_equal(try_cq(3276801), EINVAL);
    assert_int_equal(ibv_resize_cq(p.a.cq, 3276801), EINVAL);
    assert_int_equal(try_srq(6), 0);
    assert_int_equal(try_srq(7), EINVAL);
    assert_int_equal(try_ops(IBV_QP_EX_WITH_SEND), 0);
    assert_int_equal(try_ops(IBV_QP_EX_WITH_SEND_WITH_IMM), EOPNOTSUPP);
    assert_int_equal(try_ops(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD), EOPNOTSUPP);
    assert_null(ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_2));
    assert_int_equal(errno, EOPNOTSUPP);
}

/* A Send before, a Write after the one that siw has not: the Send goes, the rest does not. */
static void a_list_ends_where_it_would(void **state)
{
    struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
    struct ibv_send_wr write = {.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE}, *bad = NULL;
    struct ibv_send_wr atomic = {
        .wr_id = 2, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr send = {.wr_id = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1};
    (void)state;
    send.next = &atomic;
    atomic.next = &write;
    side_recv(&p.b, 9, 0, 64);
    assert_int_equal(ibv_post_send(p.a.id->qp, &send, &bad), EINVAL);
    assert_ptr_equal(bad, &atomic);
    assert_ptr_equal(send.next, &atomic);
    assert_int_equal(side_poll(&p.a).wr_id, 1);
    assert_int_equal(side_poll(&p.b).wr_id, 9);
    side_poll_none(&p.a, 20);
}

static void a_read_has_one_entry(void **state)
{
    struct ibv_sge sge[2] = {{(uintptr_t)p.a.buf, 8, p.a.mr->lkey},
                             {(uintptr_t)p.a.buf + 8, 8, p.a.mr->lkey}};
    struct ibv_send_wr *bad, read = {
                                 .wr_id = 4,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = sge,
                                 .num_sge = 2,
                                 .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey},
                             };
    (void)state;
    assert_int_equal(ibv_post_send(p.a.id->qp, &read, &bad), EINVAL);
    read.num_sge = 1;
    assert_int_equal(ibv_post_send(p.a.id->qp, &read, &bad), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
}

static void the_log_says_why(void **state)
{
    (void)state;
    try_qp((struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 7});
    FILE *f = fopen(getenv("VERBS_LOG_FILE"), "r");
    assert_non_null(f);
    char line[200] = "";
    while (fgets(line, sizeof(line), f))
        ;
    fclose(f);
    assert_string_equal(line, "anywarp: refused as siw would: max_send_sge 7, it has 6 "
                              "(include/uapi/rdma/siw-abi.h)\n");
}

static int open_all(void **state)
{
    setenv("ANYWARP_LIKE", "siw", 1);
    return log_setup(state) || connect_pair(state);
}

static int close_all(void **state)
{
    return close_pair(state) || log_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_attributes_are_the_adapters),
        cmocka_unit_test(sizes_and_objects_have_its_limits),
        cmocka_unit_test(a_list_ends_where_it_would),
        cmocka_unit_test(a_read_has_one_entry),
        cmocka_unit_test(the_log_says_why),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

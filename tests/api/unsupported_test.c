/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an iWARP device of this kind does not have: each call fails where the object would be made,
 * with the documented error, and leaves everything as it was.
 */
#include "fails.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int open_objects(void **state)
{
    (void)state;
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!ctx)
        return -1;
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    qp = ibv_create_qp(pd, &(struct ibv_qp_init_attr){
                               .send_cq = cq,
                               .recv_cq = cq,
                               .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1},
                               .qp_type = IBV_QPT_RC});
    return pd && cq && qp ? 0 : -1;
}

static int close_objects(void **state)
{
    (void)state;
    return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

/* Objects that cannot exist; the calls must not look at them. */
#define FAKE ((void *)sizeof(int))

/* ---- datagrams ---- */

static void test_qp_types(void **state)
{
    static const enum ibv_qp_type types[] = {
        IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER,
    };
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .qp_type = types[i]};
        struct ibv_qp_init_attr_ex ex = {.send_cq = cq,
                                         .recv_cq = cq,
                                         .qp_type = types[i],
                                         .comp_mask =
                                             IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                         .pd = pd};
        NULL_AND(EOPNOTSUPP, ibv_create_qp(pd, &a));
        NULL_AND(EOPNOTSUPP, ibv_create_qp_ex(ctx, &ex));
    }
}

/** Attributes of datagrams and of second paths, where an RC QP takes others: nothing changes. */
static void test_qp_attributes(void **state)
{
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    static const int others[] = {IBV_QP_QKEY, IBV_QP_PATH_MIG_STATE, IBV_QP_ALT_PATH};
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7, .path_mig_state = IBV_MIG_REARM};
    struct ibv_qp_init_attr caps;
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct ibv_qp_attr now;
        assert_int_equal(ibv_modify_qp(qp, &attr, init | others[i]), EINVAL);
        assert_int_equal(ibv_query_qp(qp, &now, IBV_QP_STATE, &caps), 0);
        assert_int_equal(now.qp_state, IBV_QPS_INIT);
    }
}

static void test_address_handles(void **state)
{
    struct ibv_ah_attr attr = {.port_num = 1};
    struct ibv_wc wc = {.slid = 1};
    (void)state;
    NULL_AND(EINVAL, ibv_create_ah(pd, &attr)); /* without a GID */
    NULL_AND(EINVAL, ibv_create_ah_from_wc(pd, &wc, NULL, 1));
    NULL_AND(EINVAL, ibv_create_ah_from_wc(pd, &wc, NULL, 2));
    NULL_AND(EINVAL, ibv_create_ah_from_wc(NULL, &wc, NULL, 1));
    assert_int_equal(ibv_destroy_ah(NULL), EINVAL);
    uint8_t mac[ETHERNET_LL_SIZE];
    uint16_t vid;
    assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &attr, mac, &vid), -EOPNOTSUPP);
}

/** Only arithmetic, so that it works. */
static void test_ah_attributes(void **state)
{
    struct ibv_ah_attr attr;
    struct ibv_wc wc = {.slid = 0x1234, .sl = 5, .dlid_path_bits = 3};
    struct ibv_grh grh = {
        .version_tclass_flow = htobe32(6u << 28 | 0xabu << 20 | 0xcdef1),
        .hop_limit = 17,
        .sgid.raw = {1, 2, 3, [15] = 9},
    };
    (void)state;
    memset(&attr, 0xff, sizeof(attr));
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), 0);
    assert_int_equal(attr.dlid, 0x1234);
    assert_int_equal(attr.sl, 5);
    assert_int_equal(attr.src_path_bits, 3);
    assert_int_equal(attr.port_num, 1);
    assert_int_equal(attr.is_global, 0);

    wc.wc_flags = IBV_WC_GRH;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &grh.dgid), 0);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
    assert_int_equal(attr.is_global, 1);
    assert_memory_equal(&attr.grh.dgid, &grh.sgid, sizeof(grh.sgid));
    assert_int_equal(attr.grh.sgid_index, 1);
    assert_int_equal(attr.grh.flow_label, 0xcdef1);
    assert_int_equal(attr.grh.traffic_class, 0xab);
    assert_int_equal(attr.grh.hop_limit, 17);

    memset(&grh.dgid, 0x5a, sizeof(grh.dgid)); /* not an address of this host */
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), -1);
    wc.wc_flags = 0;
    errno = 0;
    assert_int_equal(ibv_init_ah_from_wc(ctx, 2, &wc, NULL, &attr), -1);
    assert_int_equal(errno, EINVAL);
}

static void test_multicast(void **state)
{
    union ibv_gid gid = {.raw = {0xff, 0x12, [15] = 1}};
    (void)state;
    assert_int_equal(ibv_attach_mcast(qp, &gid, 0), EINVAL); /* a QP that is connected */
    assert_int_equal(ibv_detach_mcast(qp, &gid, 0), EINVAL);
}

/* ---- XRC, as rdma-core has it; the eight calls of OFED 1.x are in tests/unit/xrc_test.c ---- */

static void test_xrc(void **state)
{
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = 1, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_XRCD,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .cq = cq,
    };
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = 2,
                                    .qp_type = IBV_QPT_XRC_RECV};
    uint32_t number;
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_open_xrcd(ctx, &domain));
    NULL_AND(EOPNOTSUPP, ibv_create_srq_ex(ctx, &srq));
    NULL_AND(EOPNOTSUPP, ibv_open_qp(ctx, &open));
    srq.srq_type = IBV_SRQT_TM;
    NULL_AND(EOPNOTSUPP, ibv_create_srq_ex(ctx, &srq));

    struct ibv_srq *basic =
        ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}});
    struct ibv_ops_wr op = {0}, *bad = NULL;
    assert_non_null(basic);
    assert_int_equal(ibv_get_srq_num(basic, &number), EOPNOTSUPP);
    assert_int_equal(ibv_post_srq_ops(basic, &op, &bad), EOPNOTSUPP);
    assert_ptr_equal(bad, &op);
    assert_int_equal(ibv_destroy_srq(basic), 0);
}

/* ---- raw Ethernet: flows, counters, work queues ---- */

static void test_flows(void **state)
{
    struct ibv_flow_action_esp_attr esp = {0};
    struct ibv_flow flow = {.context = ctx};
    struct ibv_flow_action action = {.context = ctx};
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_create_flow(qp, &(struct ibv_flow_attr){.port = 1}));
    assert_int_equal(ibv_destroy_flow(&flow), EOPNOTSUPP);
    NULL_AND(EOPNOTSUPP, ibv_create_flow_action_esp(ctx, &esp));
    assert_int_equal(ibv_modify_flow_action_esp(&action, &esp), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_flow_action(&action), EOPNOTSUPP);
}

static void test_counters(void **state)
{
    struct ibv_counters counters = {.context = ctx};
    struct ibv_flow flow = {.context = ctx};
    uint64_t value;
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_create_counters(ctx, &(struct ibv_counters_init_attr){0}));
    assert_int_equal(
        ibv_attach_counters_point_flow(&counters, &(struct ibv_counter_attach_attr){0}, &flow),
        EOPNOTSUPP);
    assert_int_equal(ibv_read_counters(&counters, &value, 1, 0), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_counters(&counters), EOPNOTSUPP);
}

static void test_work_queues(void **state)
{
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};
    struct ibv_wq wq = {.context = ctx};
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    struct ibv_rwq_ind_table table = {.context = ctx};
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_create_wq(ctx, &init));
    assert_int_equal(ibv_modify_wq(&wq, &attr), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_wq(&wq), EOPNOTSUPP);
    NULL_AND(EOPNOTSUPP, ibv_create_rwq_ind_table(ctx, &(struct ibv_rwq_ind_table_init_attr){0}));
    assert_int_equal(ibv_destroy_rwq_ind_table(&table), EOPNOTSUPP);
    assert_int_equal(
        ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){.rate_limit = 1}),
        EOPNOTSUPP);
}

/* ---- memory of the device, of other processes, of graphics cards ---- */

static void test_memory(void **state)
{
    struct ibv_dm dm = {.context = ctx};
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 64}));
    NULL_AND(EOPNOTSUPP, ibv_reg_dm_mr(pd, &dm, 0, 64, IBV_ACCESS_ZERO_BASED));
    assert_int_equal(ibv_free_dm(&dm), EOPNOTSUPP);
    NULL_AND(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE));
}

static void test_import(void **state)
{
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_import_device(ctx->cmd_fd));
    NULL_AND(EOPNOTSUPP, ibv_import_pd(ctx, pd->handle));
    NULL_AND(EOPNOTSUPP, ibv_import_mr(pd, 1));
    NULL_AND(EOPNOTSUPP, ibv_import_dm(ctx, 1));
    ibv_unimport_pd(FAKE);
    ibv_unimport_mr(FAKE);
    ibv_unimport_dm(FAKE);
}

static void test_ece(void **state)
{
    struct ibv_ece ece = {.vendor_id = 1};
    (void)state;
    assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
    assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_SEND, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qp_types),        cmocka_unit_test(test_qp_attributes),
        cmocka_unit_test(test_address_handles), cmocka_unit_test(test_ah_attributes),
        cmocka_unit_test(test_multicast),       cmocka_unit_test(test_xrc),
        cmocka_unit_test(test_flows),           cmocka_unit_test(test_counters),
        cmocka_unit_test(test_work_queues),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_import),          cmocka_unit_test(test_ece),
    };
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, open_objects, close_objects);
}

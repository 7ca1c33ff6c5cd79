/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_query_device() and ibv_query_device_ex() advertise: each size is had at that size and
 * refused above it, each capability bit is set if, and only if, what it names works.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

/**
 * The part of all objects that is made. Sanitizers make one ten times as large and slow, and QEMU's
 * emulation of Linux, which does not know MADV_POPULATE_READ, a region ten thousand times as slow:
 * each reads a /proc/self/maps that is composed anew.
 */
static int share(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 64;
#else
    return getenv("ANYWARP_TEST_EMULATED") ? 256 : 1;
#endif
}

static struct ibv_context *ctx;
static struct ibv_device_attr attr;
static struct ibv_device_attr_ex attr_ex;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int open_device(void **state)
{
    (void)state;
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!ctx || ibv_query_device(ctx, &attr) || ibv_query_device_ex(ctx, NULL, &attr_ex))
        return -1;
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    return pd && cq ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    return ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

/* ---- objects; each function returns 0 or the errno of its creation ---- */

static struct ibv_qp *make_qp(struct ibv_qp_cap cap)
{
    return ibv_create_qp(pd, &(struct ibv_qp_init_attr){
                                 .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC});
}

static int try_qp(struct ibv_qp_cap cap)
{
    errno = 0;
    struct ibv_qp *qp = make_qp(cap);
    return qp ? ibv_destroy_qp(qp) : errno;
}

static int try_send_wr(int64_t n)
{
    return try_qp((struct ibv_qp_cap){.max_send_wr = (uint32_t)n, .max_send_sge = 1});
}

static int try_recv_wr(int64_t n)
{
    return try_qp((struct ibv_qp_cap){.max_recv_wr = (uint32_t)n, .max_recv_sge = 1});
}

static int try_send_sge(int64_t n)
{
    return try_qp((struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = (uint32_t)n});
}

static int try_recv_sge(int64_t n)
{
    return try_qp((struct ibv_qp_cap){.max_recv_wr = 1, .max_recv_sge = (uint32_t)n});
}

static int try_cqe(int64_t n)
{
    errno = 0;
    struct ibv_cq *c = ibv_create_cq(ctx, (int)n, NULL, NULL, 0);
    if (!c)
        return errno;
    assert_true(c->cqe >= n);
    return ibv_destroy_cq(c);
}

static int try_comp_vector(int64_t n)
{
    errno = 0;
    struct ibv_cq *c = ibv_create_cq(ctx, 1, NULL, NULL, (int)n - 1);
    return c ? ibv_destroy_cq(c) : errno;
}

static int try_srq(struct ibv_srq_attr a)
{
    errno = 0;
    struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = a});
    return srq ? ibv_destroy_srq(srq) : errno;
}

static int try_srq_wr(int64_t n)
{
    return try_srq((struct ibv_srq_attr){.max_wr = (uint32_t)n, .max_sge = 1});
}

static int try_srq_sge(int64_t n)
{
    return try_srq((struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)n});
}

static int try_port(int64_t n)
{
    struct ibv_port_attr port;
    return ibv_query_port(ctx, (uint8_t)n, &port);
}

static int try_pkeys(int64_t n)
{
    __be16 pkey;
    return ibv_query_pkey(ctx, 1, (int)n - 1, &pkey) ? errno : 0;
}

static void test_sizes(void **state)
{
    const struct {
        const char *name;
        int64_t max;
        int (*try)(int64_t n);
    } sizes[] = {
        {"max_qp_wr, send", attr.max_qp_wr, try_send_wr},
        {"max_qp_wr, receive", attr.max_qp_wr, try_recv_wr},
        {"max_sge, send", attr.max_sge, try_send_sge},
        {"max_sge, receive", attr.max_sge, try_recv_sge},
        {"max_cqe", attr.max_cqe, try_cqe},
        {"max_srq_wr", attr.max_srq_wr, try_srq_wr},
        {"max_srq_sge", attr.max_srq_sge, try_srq_sge},
        {"phys_port_cnt", attr.phys_port_cnt, try_port},
        {"max_pkeys", attr.max_pkeys, try_pkeys},
        {"num_comp_vectors", ctx->num_comp_vectors, try_comp_vector},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int at_max = sizes[i].try(sizes[i].max), above = sizes[i].try(sizes[i].max + 1);
        if (sizes[i].max < 1 || at_max != 0 || above != EINVAL)
            fail_msg("%s = %lld: %s; one more: %s", sizes[i].name, (long long)sizes[i].max,
                     strerror(at_max), strerror(above));
    }
}

/* ---- how many there can be at a time ---- */

static char byte;

static void *one_pd(void)
{
    return ibv_alloc_pd(ctx);
}

static void *one_cq(void)
{
    return ibv_create_cq(ctx, 1, NULL, NULL, 0);
}

static void *one_srq(void)
{
    return ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}});
}

static void *one_qp(void)
{
    return make_qp((struct ibv_qp_cap){
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1});
}

static void *one_mr(void)
{
    return ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
}

static void test_counts(void **state)
{
    const struct {
        const char *name;
        int max;
        void *(*make)(void);
        int (*destroy)(void *);
    } counts[] = {
        {"max_pd", attr.max_pd, one_pd, (int (*)(void *))ibv_dealloc_pd},
        {"max_cq", attr.max_cq, one_cq, (int (*)(void *))ibv_destroy_cq},
        {"max_srq", attr.max_srq, one_srq, (int (*)(void *))ibv_destroy_srq},
        {"max_qp", attr.max_qp, one_qp, (int (*)(void *))ibv_destroy_qp},
        {"max_mr", attr.max_mr, one_mr, (int (*)(void *))ibv_dereg_mr},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int n = counts[i].max / share();
        void **objects = calloc((size_t)n, sizeof(*objects));
        assert_non_null(objects);
        for (int k = 0; k < n; k++)
            if (!(objects[k] = counts[i].make()))
                fail_msg("%s = %d: number %d: %s", counts[i].name, n, k, strerror(errno));
        for (int k = 0; k < n; k++)
            assert_int_equal(counts[i].destroy(objects[k]), 0);
        free(objects);
    }
}

/** max_qp_rd_atom and max_qp_init_rd_atom: as many Reads under way as a connection may ask for. */
static void test_depth(void **state)
{
    const int depth = attr.max_qp_init_rd_atom;
    struct pair p;
    (void)state;
    assert_in_range(depth, 1, UINT8_MAX);
    assert_int_equal(attr.max_qp_rd_atom, depth);
    assert_true(attr.max_res_rd_atom >= depth);
    pair_open(&p, &(struct pair_conf){.send_wr = (unsigned)depth, .depth = (uint8_t)depth});
    for (int i = 0; i < SIDE_BYTES; i++)
        p.b.buf[i] = (uint8_t)(i * 7 >> 3);
    for (int i = 0; i < depth; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, (uint64_t)i, (size_t)i * 4096,
                                   4096, (size_t)i * 4096, 0),
                         0);
    for (int i = 0; i < depth; i++) {
        struct ibv_wc wc = side_poll(&p.a);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
    }
    assert_memory_equal(p.a.buf, p.b.buf, (size_t)depth * 4096);
    struct ibv_qp_attr qa;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(p.a.id->qp, &qa, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
    assert_int_equal(qa.max_rd_atomic, depth);
    pair_close(&p, 1);
}

/** More than that is refused before anything is sent. */
static void test_depth_above(void **state)
{
    struct rdma_conn_param param = {.initiator_depth = (uint8_t)(attr.max_qp_init_rd_atom + 1)};
    struct rdma_cm_id *id;
    struct side side = {.events = rdma_create_event_channel()};
    struct sockaddr_in nobody = {
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    (void)state;
    assert_int_equal(rdma_create_id(side.events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nobody, 2000), 0);
    assert_int_equal(side_event(&side, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(side_event(&side, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    errno = 0;
    assert_int_equal(rdma_connect(id, &param), -1);
    assert_int_equal(errno, EINVAL);
    param.initiator_depth--;
    assert_int_equal(rdma_connect(id, &param), 0);
    assert_int_not_equal(side_event(&side, RDMA_CM_EVENT_REJECTED), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(side.events);
}

/* ---- capability bits ---- */

/** A QP in INIT with the attributes that programs give. */
static struct ibv_qp *make_init(void)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
    struct ibv_qp *qp = make_qp((struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 1});
    assert_non_null(qp);
    assert_int_equal(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    return qp;
}

static bool modifies(struct ibv_qp_attr a, int mask)
{
    struct ibv_qp *qp = make_init();
    bool ok = ibv_modify_qp(qp, &a, mask) == 0;
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return ok;
}

static bool resizes_qp(void)
{
    return modifies((struct ibv_qp_attr){.cap = {.max_send_wr = 8}}, IBV_QP_CAP);
}

static bool checks_current_state(void)
{
    const int mask = IBV_QP_STATE | IBV_QP_CUR_STATE;
    struct ibv_qp_attr right = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTS};
    struct ibv_qp_attr wrong = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    bool checked = !ibv_modify_qp(p.a.id->qp, &right, mask) &&
                   ibv_modify_qp(p.a.id->qp, &wrong, mask) == EINVAL;
    pair_close(&p, true);
    return checked;
}

static bool changes_port(void)
{
    return modifies((struct ibv_qp_attr){.port_num = 2}, IBV_QP_PORT);
}

static bool migrates_paths(void)
{
    return modifies((struct ibv_qp_attr){.alt_port_num = 1}, IBV_QP_ALT_PATH);
}

static bool has_image_guid(void)
{
    return attr.sys_image_guid != 0;
}

static bool resizes_srq(void)
{
    struct ibv_srq *srq = one_srq();
    bool ok = ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = 8}, IBV_SRQ_MAX_WR) == 0;
    assert_int_equal(ibv_destroy_srq(srq), 0);
    return ok;
}

static bool has_xrc(void)
{
    struct ibv_xrcd *d = ibv_open_xrcd(ctx, &(struct ibv_xrcd_init_attr){.fd = -1});
    return d && ibv_close_xrcd(d) == 0;
}

static bool has_windows(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    return mw && ibv_dealloc_mw(mw) == 0;
}

static bool has_datagrams(void)
{
    struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(pd, &a);
    return qp && ibv_destroy_qp(qp) == 0;
}

static bool steers_flows(void)
{
    struct ibv_qp *qp = make_init();
    struct ibv_flow *flow = ibv_create_flow(qp, &(struct ibv_flow_attr){.port = 1});
    bool ok = flow && ibv_destroy_flow(flow) == 0;
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return ok;
}

/** Send with Invalidate and Local Invalidate: the peer's key, then the own one, is gone. */
static bool invalidates(void)
{
    struct pair p;
    struct loan loan;
    struct ibv_send_wr *bad, wr = {.send_flags = IBV_SEND_SIGNALED};
    pair_open(&p, &(struct pair_conf){0});
    side_lend(&p.b, &loan, 0, 64, IBV_ACCESS_REMOTE_WRITE);
    side_recv(&p.b, 1, 0, 16);
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = loan.mw->rkey;
    bool sent =
        ibv_post_send(p.a.id->qp, &wr, &bad) == 0 && side_poll(&p.a).status == IBV_WC_SUCCESS;
    struct ibv_wc wc = sent ? side_poll(&p.b) : (struct ibv_wc){0};
    bool remote = sent && wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_INV) &&
                  wc.invalidated_rkey == loan.mw->rkey;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = p.a.mr->rkey;
    bool local =
        ibv_post_send(p.a.id->qp, &wr, &bad) == 0 && side_poll(&p.a).status == IBV_WC_SUCCESS;
    /* Either key is tried once more. */
    bool gone = side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0) == 0 &&
                side_poll(&p.a).status == IBV_WC_LOC_PROT_ERR;
    side_end_loan(&loan);
    pair_close(&p, 0);
    return remote && local && gone;
}

static bool never(void)
{
    return false;
}

/** What a bit names is there if, and only if, the bit is set. PORT_ACTIVE_EVENT: port_test.c. */
static void test_bits(void **state)
{
    static const struct {
        const char *name;
        uint64_t bit;
        bool (*works)(void);
    } bits[] = {
        {"RESIZE_MAX_WR", IBV_DEVICE_RESIZE_MAX_WR, resizes_qp},
        {"CURR_QP_STATE_MOD", IBV_DEVICE_CURR_QP_STATE_MOD, checks_current_state},
        {"CHANGE_PHY_PORT", IBV_DEVICE_CHANGE_PHY_PORT, changes_port},
        {"AUTO_PATH_MIG", IBV_DEVICE_AUTO_PATH_MIG, migrates_paths},
        {"SYS_IMAGE_GUID", IBV_DEVICE_SYS_IMAGE_GUID, has_image_guid},
        {"SRQ_RESIZE", IBV_DEVICE_SRQ_RESIZE, resizes_srq},
        {"XRC", IBV_DEVICE_XRC, has_xrc},
        {"MEM_WINDOW", IBV_DEVICE_MEM_WINDOW, has_windows},
        {"UD_AV_PORT_ENFORCE", IBV_DEVICE_UD_AV_PORT_ENFORCE, has_datagrams},
        {"UD_IP_CSUM", IBV_DEVICE_UD_IP_CSUM, never},
        {"MANAGED_FLOW_STEERING", IBV_DEVICE_MANAGED_FLOW_STEERING, steers_flows},
        {"MEM_MGT_EXTENSIONS", IBV_DEVICE_MEM_MGT_EXTENSIONS, invalidates},
        /* No such thing is on a TCP stream: a late receive is waited for without a NAK. */
        {"RC_RNR_NAK_GEN", IBV_DEVICE_RC_RNR_NAK_GEN, never},
        {"BAD_PKEY_CNTR", IBV_DEVICE_BAD_PKEY_CNTR, never},
        {"BAD_QKEY_CNTR", IBV_DEVICE_BAD_QKEY_CNTR, never},
        {"RAW_MULTI", IBV_DEVICE_RAW_MULTI, never},
        {"N_NOTIFY_CQ", IBV_DEVICE_N_NOTIFY_CQ, never},
        {"RC_IP_CSUM", IBV_DEVICE_RC_IP_CSUM, never},
        {"RAW_IP_CSUM", IBV_DEVICE_RAW_IP_CSUM, never},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
        if (bits[i].works() != !!(attr.device_cap_flags & bits[i].bit))
            fail_msg("IBV_DEVICE_%s is %sset", bits[i].name,
                     attr.device_cap_flags & bits[i].bit ? "" : "not ");
    assert_true(attr.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT);
    assert_int_equal(attr_ex.device_cap_flags_ex, attr.device_cap_flags);
}

/* ---- what is not there ---- */

static void test_absent(void **state)
{
    static const unsigned char zero[64];
    (void)state;
    assert_int_equal(attr.max_mw != 0, has_windows());
    assert_int_equal(attr.max_fmr | attr.max_map_per_fmr | attr.max_ee | attr.max_rdd, 0);
    assert_int_equal(attr.max_ah != 0, has_datagrams());
    assert_int_equal(attr.max_ee_rd_atom | attr.max_ee_init_rd_atom | attr.max_raw_ipv6_qp |
                         attr.max_raw_ethy_qp,
                     0);
    assert_true(!has_datagrams() == !(attr.max_mcast_grp && attr.max_mcast_qp_attach &&
                                      attr.max_total_mcast_qp_attach));
    errno = 0;
    assert_null(ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(attr_ex.odp_caps.general_caps | attr_ex.xrc_odp_caps, 0);
    assert_memory_equal(&attr_ex.tso_caps, zero, sizeof(attr_ex.tso_caps));
    assert_memory_equal(&attr_ex.rss_caps, zero, sizeof(attr_ex.rss_caps));
    assert_memory_equal(&attr_ex.tm_caps, zero, sizeof(attr_ex.tm_caps));
    assert_memory_equal(&attr_ex.packet_pacing_caps, zero, sizeof(attr_ex.packet_pacing_caps));
    assert_int_equal(attr_ex.max_wq_type_rq | attr_ex.raw_packet_caps, 0);
    assert_int_equal(attr_ex.max_dm_size, 0);
}

static void test_same_in_both(void **state)
{
    (void)state;
    assert_memory_equal(&attr_ex.orig_attr, &attr, sizeof(attr));
    assert_int_equal(attr.node_guid, ibv_get_device_guid(ctx->device));
    assert_int_equal(attr_ex.phys_port_cnt_ex, attr.phys_port_cnt);
}

/* ---- reading the clock of time stamps ---- */

static void test_clock(void **state)
{
    struct ibv_values_ex a = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, b = a;
    (void)state;
    assert_int_not_equal(attr_ex.completion_timestamp_mask, 0);
    assert_int_not_equal(attr_ex.hca_core_clock, 0);
    assert_int_equal(ibv_query_rt_values_ex(ctx, &a), 0);
    assert_int_equal(ibv_query_rt_values_ex(ctx, &b), 0);
    assert_int_equal(a.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    assert_true(
        b.raw_clock.tv_sec > a.raw_clock.tv_sec ||
        (b.raw_clock.tv_sec == a.raw_clock.tv_sec && b.raw_clock.tv_nsec >= a.raw_clock.tv_nsec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_depth),        cmocka_unit_test(test_depth_above),
        cmocka_unit_test(test_bits),         cmocka_unit_test(test_absent),
        cmocka_unit_test(test_same_in_both), cmocka_unit_test(test_clock),
    };
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, open_device, close_device);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's verbs that need no device: conversions, headers, keys, states. What is absent. */
#include <infiniband/verbs.h> /* first: it has parameters of the name "current", a macro of kernels */

#include "kverbs_kit.h"

#include <errno.h>
#include <stdlib.h>

#include <linux/string.h>

/* The interface has no room for these in a program: the header leaves the names to it. */
struct rdma_netdev {
    int ours;
};
struct ib_t10_dif_domain {
    int ours;
};
struct ib_sig_domain {
    int ours;
};
struct ib_sig_attrs {
    int ours;
};
struct sk_buff {
    int ours;
};
enum ib_t10_dif_bg_type { ours_too };
enum ib_signature_type { and_ours };

static void what_has_no_meaning_is_not_declared(void **state)
{
    (void)state;
    struct rdma_netdev n = {1};
    struct ib_t10_dif_domain t = {1};
    struct ib_sig_domain d = {1};
    struct ib_sig_attrs a = {1};
    struct sk_buff b = {1};
    enum ib_t10_dif_bg_type bg = ours_too;
    enum ib_signature_type sig = and_ours;
    assert_int_equal(n.ours + t.ours + d.ours + a.ours + b.ours + (int)bg + (int)sig, 5);
#ifdef IB_MR_CEHCK_SIG_STATUS /* the document's slip of the pen */
    fail();
#endif
    assert_int_equal(IB_MR_CHECK_SIG_STATUS, 1);
}

static void rates(void **state)
{
    (void)state;
    static const struct {
        enum ib_rate rate;
        int mult, mbps;
    } t[] = {
        {IB_RATE_2_5_GBPS, 1, 2500},     {IB_RATE_5_GBPS, 2, 5000},
        {IB_RATE_10_GBPS, 4, 10000},     {IB_RATE_14_GBPS, 6, 14062},
        {IB_RATE_20_GBPS, 8, 20000},     {IB_RATE_25_GBPS, 10, 25781},
        {IB_RATE_30_GBPS, 12, 30000},    {IB_RATE_40_GBPS, 16, 40000},
        {IB_RATE_56_GBPS, 22, 56250},    {IB_RATE_60_GBPS, 24, 60000},
        {IB_RATE_80_GBPS, 32, 80000},    {IB_RATE_100_GBPS, 40, 103125},
        {IB_RATE_112_GBPS, 45, 112500},  {IB_RATE_120_GBPS, 48, 120000},
        {IB_RATE_168_GBPS, 67, 168750},  {IB_RATE_200_GBPS, 80, 206250},
        {IB_RATE_300_GBPS, 120, 309375},
    };
    for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
        assert_int_equal(ib_rate_to_mult(t[i].rate), t[i].mult);
        assert_int_equal(ib_rate_to_mbps(t[i].rate), t[i].mbps);
        assert_int_equal(mult_to_ib_rate(t[i].mult), t[i].rate);
        /* Verbs of programs have the same numbers, where they know them. */
        int mult = ibv_rate_to_mult((enum ibv_rate)t[i].rate);
        assert_true(mult == -1 || mult == t[i].mult);
        assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)t[i].rate), t[i].mbps);
    }
    assert_int_equal(ib_rate_to_mult(IB_RATE_PORT_CURRENT), -1);
    assert_int_equal(ib_rate_to_mbps((enum ib_rate)99), -1);
    assert_int_equal(mult_to_ib_rate(3), IB_RATE_PORT_CURRENT);
}

static void keys_change_in_their_last_byte(void **state)
{
    (void)state;
    assert_int_equal(ib_inc_rkey(0x123456ff), 0x12345600);
    assert_int_equal(ib_inc_rkey(0x12345600), 0x12345601);
    for (u32 i = 0; i < 0x10000; i += 0x77)
        assert_int_equal(ib_inc_rkey(i), ibv_inc_rkey(i));
    struct ib_mr mr = {.lkey = 0xabcdef12, .rkey = 0x12345678};
    ib_update_fast_reg_key(&mr, 0x99);
    assert_int_equal(mr.lkey, 0xabcdef99);
    assert_int_equal(mr.rkey, 0x12345699);
}

/* RFC 791 with the checksum that tcpdump finds right. */
static const u8 ipv4[20] = {0x45, 0,    0,   0x3c, 0x1c, 0x46, 0x40, 0,  0x40, 6,
                            0xb1, 0xe6, 172, 16,   10,   99,   172,  16, 10,   12};

static void headers_before_a_datagram(void **state)
{
    (void)state;
    union rdma_network_hdr h;
    union ib_gid s, d;
    memset(&h, 0, sizeof h);
    assert_int_equal(sizeof h, 40);
    assert_int_equal(ib_get_rdma_header_version(&h), 0);

    memcpy(h.roce4grh, ipv4, sizeof ipv4);
    assert_int_equal(ib_get_rdma_header_version(&h), 4);
    h.reserved[0] = 0x60; /* what is before it may be anything */
    assert_int_equal(ib_get_rdma_header_version(&h), 4);
    h.roce4grh[10] ^= 1; /* but then the checksum has to be right */
    assert_int_equal(ib_get_rdma_header_version(&h), 6);
    h.roce4grh[10] ^= 1;
    h.roce4grh[0] = 0x46; /* and options there are none */
    assert_int_equal(ib_get_rdma_header_version(&h), 6);
    h.roce4grh[0] = 0x45;

    assert_int_equal(ib_get_gids_from_rdma_hdr(&h, RDMA_NETWORK_IPV4, &s, &d), 0);
    static const u8 mapped[12] = {[10] = 0xff, [11] = 0xff};
    assert_memory_equal(s.raw, mapped, 12);
    assert_memory_equal(s.raw + 12, &ipv4[12], 4);
    assert_memory_equal(d.raw, mapped, 12);
    assert_memory_equal(d.raw + 12, &ipv4[16], 4);

    for (size_t i = 0; i < 16; i++) {
        h.ibgrh.sgid.raw[i] = (u8)i;
        h.ibgrh.dgid.raw[i] = (u8)(100 + i);
    }
    assert_int_equal(ib_get_rdma_header_version(&h), 6);
    for (enum rdma_network_type t = RDMA_NETWORK_IB; t <= RDMA_NETWORK_IPV6; t++) {
        if (t == RDMA_NETWORK_IPV4)
            continue;
        assert_int_equal(ib_get_gids_from_rdma_hdr(&h, t, &s, &d), 0);
        assert_memory_equal(&s, &h.ibgrh.sgid, sizeof s);
        assert_memory_equal(&d, &h.ibgrh.dgid, sizeof d);
    }
    assert_int_equal(ib_get_gids_from_rdma_hdr(&h, (enum rdma_network_type)9, &s, &d), -EINVAL);
}

static void counters_of_a_driver(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two", "three"};
    struct rdma_hw_stats *s = rdma_alloc_hw_stats_struct(names, 3, RDMA_HW_STATS_DEFAULT_LIFESPAN);
    assert_non_null(s);
    assert_int_equal(s->num_counters, 3);
    assert_ptr_equal(s->names, names);
    assert_int_equal(s->lifespan, msecs_to_jiffies(10));
    assert_int_equal(s->value[0] | s->value[1] | s->value[2], 0);
    kfree(s);
}

/* The row of RC, written down once more: what is wanted, and what may be there, too. */
#define B(name) IB_QP_##name
static const struct {
    int cur, next;
    unsigned required, optional;
} rc[] = {
    {IB_QPS_RESET, IB_QPS_RESET, 0, 0},
    {IB_QPS_RESET, IB_QPS_INIT, B(PKEY_INDEX) | B(PORT) | B(ACCESS_FLAGS), 0},
    {IB_QPS_INIT, IB_QPS_RESET, 0, 0},
    {IB_QPS_INIT, IB_QPS_ERR, 0, 0},
    {IB_QPS_INIT, IB_QPS_INIT, 0, B(PKEY_INDEX) | B(PORT) | B(ACCESS_FLAGS)},
    {IB_QPS_INIT, IB_QPS_RTR,
     B(AV) | B(PATH_MTU) | B(DEST_QPN) | B(RQ_PSN) | B(MAX_DEST_RD_ATOMIC) | B(MIN_RNR_TIMER),
     B(ALT_PATH) | B(ACCESS_FLAGS) | B(PKEY_INDEX)},
    {IB_QPS_RTR, IB_QPS_RESET, 0, 0},
    {IB_QPS_RTR, IB_QPS_ERR, 0, 0},
    {IB_QPS_RTR, IB_QPS_RTS,
     B(TIMEOUT) | B(RETRY_CNT) | B(RNR_RETRY) | B(SQ_PSN) | B(MAX_QP_RD_ATOMIC),
     B(CUR_STATE) | B(ALT_PATH) | B(ACCESS_FLAGS) | B(MIN_RNR_TIMER) | B(PATH_MIG_STATE)},
    {IB_QPS_RTS, IB_QPS_RESET, 0, 0},
    {IB_QPS_RTS, IB_QPS_ERR, 0, 0},
    {IB_QPS_RTS, IB_QPS_RTS, 0,
     B(CUR_STATE) | B(ACCESS_FLAGS) | B(ALT_PATH) | B(PATH_MIG_STATE) | B(MIN_RNR_TIMER)},
    {IB_QPS_RTS, IB_QPS_SQD, 0, B(EN_SQD_ASYNC_NOTIFY)},
    {IB_QPS_SQD, IB_QPS_RESET, 0, 0},
    {IB_QPS_SQD, IB_QPS_ERR, 0, 0},
    {IB_QPS_SQD, IB_QPS_RTS, 0,
     B(CUR_STATE) | B(ALT_PATH) | B(ACCESS_FLAGS) | B(MIN_RNR_TIMER) | B(PATH_MIG_STATE)},
    {IB_QPS_SQD, IB_QPS_SQD, 0,
     B(PORT) | B(AV) | B(TIMEOUT) | B(RETRY_CNT) | B(RNR_RETRY) | B(MAX_QP_RD_ATOMIC) |
         B(MAX_DEST_RD_ATOMIC) | B(ALT_PATH) | B(ACCESS_FLAGS) | B(PKEY_INDEX) | B(MIN_RNR_TIMER) |
         B(PATH_MIG_STATE)},
    {IB_QPS_SQE, IB_QPS_RESET, 0, 0},
    {IB_QPS_SQE, IB_QPS_ERR, 0, 0},
    {IB_QPS_SQE, IB_QPS_RTS, 0, 0},
    {IB_QPS_ERR, IB_QPS_RESET, 0, 0},
    {IB_QPS_ERR, IB_QPS_ERR, 0, 0},
};

static bool ok(int cur, int next, int type, unsigned mask)
{
    int a = ib_modify_qp_is_ok((enum ib_qp_state)cur, (enum ib_qp_state)next, (enum ib_qp_type)type,
                               (enum ib_qp_attr_mask)mask, IB_LINK_LAYER_ETHERNET);
    int b = ib_modify_qp_is_ok((enum ib_qp_state)cur, (enum ib_qp_state)next, (enum ib_qp_type)type,
                               (enum ib_qp_attr_mask)mask, IB_LINK_LAYER_INFINIBAND);
    assert_int_equal(a, b);
    return a;
}

static void qp_mask_check_of_rc(void **state)
{
    (void)state;
    for (int cur = IB_QPS_RESET; cur <= IB_QPS_ERR; cur++) {
        for (int next = IB_QPS_RESET; next <= IB_QPS_ERR; next++) {
            size_t i = 0;
            while (i < ARRAY_SIZE(rc) && (rc[i].cur != cur || rc[i].next != next))
                i++;
            if (i == ARRAY_SIZE(rc)) {
                assert_false(ok(cur, next, IB_QPT_RC, IB_QP_STATE));
                continue;
            }
            unsigned least = IB_QP_STATE | rc[i].required, most = least | rc[i].optional;
            assert_true(ok(cur, next, IB_QPT_RC, least));
            assert_true(ok(cur, next, IB_QPT_RC, rc[i].required)); /* the state by itself */
            assert_true(ok(cur, next, IB_QPT_RC, most));
            for (unsigned bit = 1; bit <= IB_QP_RATE_LIMIT; bit <<= 1) {
                assert_int_equal(ok(cur, next, IB_QPT_RC, least & ~bit), !(rc[i].required & bit));
                assert_int_equal(ok(cur, next, IB_QPT_RC, least | bit), (most & bit) != 0);
            }
        }
    }
}

/* Of the other types: a type that is there has a way to RTS, and back, with what it wants. */
static void qp_mask_check_of_all(void **state)
{
    (void)state;
    static const unsigned conn = B(PKEY_INDEX) | B(PORT) | B(ACCESS_FLAGS);
    static const unsigned path = B(AV) | B(PATH_MTU) | B(DEST_QPN) | B(RQ_PSN);
    static const unsigned ask = B(TIMEOUT) | B(RETRY_CNT) | B(RNR_RETRY) | B(MAX_QP_RD_ATOMIC);
    static const unsigned answer = B(MAX_DEST_RD_ATOMIC) | B(MIN_RNR_TIMER);
    static const struct {
        int type;
        unsigned init, rtr, rts;
    } ways[] = {
        {IB_QPT_SMI, B(PKEY_INDEX) | B(QKEY), 0, B(SQ_PSN)},
        {IB_QPT_GSI, B(PKEY_INDEX) | B(QKEY), 0, B(SQ_PSN)},
        {IB_QPT_RC, conn, path | answer, ask | B(SQ_PSN)},
        {IB_QPT_UC, conn, path, B(SQ_PSN)},
        {IB_QPT_UD, B(PKEY_INDEX) | B(PORT) | B(QKEY), 0, B(SQ_PSN)},
        {IB_QPT_RAW_PACKET, B(PORT), 0, 0},
        {IB_QPT_XRC_INI, conn, path, ask | B(SQ_PSN)},
        {IB_QPT_XRC_TGT, conn, path | answer, B(TIMEOUT) | B(SQ_PSN)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        int t = ways[i].type;
        assert_true(ok(IB_QPS_RESET, IB_QPS_INIT, t, IB_QP_STATE | ways[i].init));
        assert_true(ok(IB_QPS_INIT, IB_QPS_RTR, t, IB_QP_STATE | ways[i].rtr));
        assert_true(ok(IB_QPS_RTR, IB_QPS_RTS, t, IB_QP_STATE | ways[i].rts));
        assert_true(ok(IB_QPS_RTS, IB_QPS_SQD, t, IB_QP_STATE));
        assert_true(ok(IB_QPS_SQD, IB_QPS_RTS, t, IB_QP_STATE));
        assert_true(ok(IB_QPS_RTS, IB_QPS_ERR, t, IB_QP_STATE));
        assert_true(ok(IB_QPS_ERR, IB_QPS_RESET, t, IB_QP_STATE));
        assert_false(ok(IB_QPS_RESET, IB_QPS_RTS, t, IB_QP_STATE | ways[i].rts));
        for (unsigned bit = 1; bit <= IB_QP_RATE_LIMIT; bit <<= 1) {
            assert_int_equal(ok(IB_QPS_RESET, IB_QPS_INIT, t, ways[i].init & ~bit),
                             !(ways[i].init & bit));
            assert_int_equal(ok(IB_QPS_INIT, IB_QPS_RTR, t, ways[i].rtr & ~bit),
                             !(ways[i].rtr & bit));
            assert_int_equal(ok(IB_QPS_RTR, IB_QPS_RTS, t, ways[i].rts & ~bit),
                             !(ways[i].rts & bit));
        }
    }
    assert_true(ok(IB_QPS_RTS, IB_QPS_RTS, IB_QPT_RAW_PACKET, IB_QP_STATE | IB_QP_RATE_LIMIT));
    assert_true(ok(IB_QPS_SQE, IB_QPS_RTS, IB_QPT_UD, IB_QP_STATE | IB_QP_QKEY));
    assert_false(ok(IB_QPS_ERR + 1, IB_QPS_RESET, IB_QPT_RC, IB_QP_STATE));
    assert_false(ok(-1, IB_QPS_RESET, IB_QPT_RC, IB_QP_STATE));
    assert_false(ok(IB_QPS_RESET, IB_QPS_ERR + 1, IB_QPT_RC, IB_QP_STATE));
    assert_false(ok(IB_QPS_RESET, IB_QPS_INIT, IB_QPT_MAX, IB_QP_STATE));
}

static void numbers_of_the_interface(void **state)
{
    (void)state;
    assert_int_equal(IB_SRQ_MAX_WR, 1);
    assert_int_equal(IB_SRQ_LIMIT, 2);
    assert_int_equal(IB_CQ_SOLICITED, 1);
    assert_int_equal(IB_CQ_NEXT_COMP, 2);
    assert_int_equal(IB_CQ_REPORT_MISSED_EVENTS, 4);
    assert_int_equal(IB_QPT_UD, 4);
    enum ib_mr_type type = IB_MR_TYPE_MEM_REG;
    assert_int_equal(type, 0);
    assert_int_equal(IB_MR_TYPE_SIGNATURE, 1);
    assert_int_equal(IB_MR_TYPE_SG_GAPS, 2);
    assert_int_equal(ib_mtu_enum_to_int(IB_MTU_1024), 1024);
    assert_int_equal(ib_mtu_enum_to_int((enum ib_mtu)0), -1);
    assert_string_equal(ib_wc_status_msg(IB_WC_SUCCESS), "success");
    assert_string_equal(ib_event_msg(IB_EVENT_CQ_ERR), "CQ error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_meaning_is_not_declared),
        cmocka_unit_test(rates),
        cmocka_unit_test(keys_change_in_their_last_byte),
        cmocka_unit_test(headers_before_a_datagram),
        cmocka_unit_test(counters_of_a_driver),
        cmocka_unit_test(qp_mask_check_of_rc),
        cmocka_unit_test(qp_mask_check_of_all),
        cmocka_unit_test(numbers_of_the_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

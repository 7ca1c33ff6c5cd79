/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs as an old program uses them: every call is there as a function, also where the header
 * has an inline or a macro of its name, and takes flags as variables of their enumeration types.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define FUNCTION(name)                                                                             \
    {                                                                                              \
#name, (void (*)(void))(name)                                                              \
    }

static void test_functions(void **state)
{
    static const struct {
        const char *name;
        void (*address)(void);
    } functions[] = {
        FUNCTION(ibv_fork_init),
        FUNCTION(ibv_get_device_list),
        FUNCTION(ibv_free_device_list),
        FUNCTION(ibv_get_device_name),
        FUNCTION(ibv_get_device_guid),
        FUNCTION(ibv_open_device),
        FUNCTION(ibv_close_device),
        FUNCTION(ibv_query_device),
        FUNCTION(ibv_query_port),
        FUNCTION(ibv_query_pkey),
        FUNCTION(ibv_query_gid),
        FUNCTION(ibv_get_async_event),
        FUNCTION(ibv_ack_async_event),
        FUNCTION(ibv_alloc_pd),
        FUNCTION(ibv_dealloc_pd),
        FUNCTION(ibv_reg_mr),
        FUNCTION(ibv_dereg_mr),
        FUNCTION(ibv_create_ah),
        FUNCTION(ibv_init_ah_from_wc),
        FUNCTION(ibv_create_ah_from_wc),
        FUNCTION(ibv_destroy_ah),
        FUNCTION(ibv_create_comp_channel),
        FUNCTION(ibv_destroy_comp_channel),
        FUNCTION(ibv_create_cq),
        FUNCTION(ibv_destroy_cq),
        FUNCTION(ibv_resize_cq),
        FUNCTION(ibv_poll_cq),
        FUNCTION(ibv_req_notify_cq),
        FUNCTION(ibv_get_cq_event),
        FUNCTION(ibv_ack_cq_events),
        FUNCTION(ibv_create_srq),
        FUNCTION(ibv_destroy_srq),
        FUNCTION(ibv_modify_srq),
        FUNCTION(ibv_query_srq),
        FUNCTION(ibv_create_qp),
        FUNCTION(ibv_destroy_qp),
        FUNCTION(ibv_modify_qp),
        FUNCTION(ibv_query_qp),
        FUNCTION(ibv_post_send),
        FUNCTION(ibv_post_recv),
        FUNCTION(ibv_post_srq_recv),
        FUNCTION(ibv_attach_mcast),
        FUNCTION(ibv_detach_mcast),
        FUNCTION(ibv_rate_to_mult),
        FUNCTION(mult_to_ibv_rate),
        FUNCTION(ibv_event_type_str),
        FUNCTION(ibv_node_type_str),
        FUNCTION(ibv_port_state_str),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (!functions[i].address)
            fail_msg("%s", functions[i].name);
}

static void test_enumerations(void **state)
{
    enum ibv_access_flags access = IBV_ACCESS_LOCAL_WRITE;
    enum ibv_qp_attr_mask init = IBV_QP_STATE;
    enum ibv_srq_attr_mask limit = IBV_SRQ_LIMIT;
    enum ibv_wc_flags grh = IBV_WC_GRH;
    enum ibv_qp_type type = IBV_QPT_RC;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    struct ibv_ah_attr ah_attr = {.port_num = 1};
    char buf[64];
    (void)state;
    struct ibv_mr *mr = (ibv_reg_mr)(pd, buf, sizeof(buf), access);
    assert_non_null(mr);
    struct ibv_srq *srq =
        ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 8, .max_sge = 1}});
    assert_int_equal(ibv_modify_srq(srq, &(struct ibv_srq_attr){.srq_limit = 3}, limit), 0);
    struct ibv_qp *qp = ibv_create_qp(
        pd, &(struct ibv_qp_init_attr){
                .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1}, .qp_type = type});
    assert_non_null(qp);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    assert_int_equal(ibv_modify_qp(qp, &attr, init), 0);
    struct ibv_wc wc = {.wc_flags = grh};
    struct ibv_ah *ah = ibv_create_ah_from_wc(pd, &wc, NULL, 1);
    assert_null(ah);
    assert_null(ibv_create_ah(pd, &ah_attr));
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

/** Inline data needs no registration: whatever stands for its key is not looked at. */
static void test_inline_ignores_the_key(void **state)
{
    static const char text[] = "not registered";
    static const uint32_t keys[] = {0, 1, UINT32_MAX};
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.inline_data = sizeof(text)});
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct ibv_sge sge = {(uintptr_t)text, sizeof(text), keys[i]};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
        side_recv(&p.b, i, i * 64, 64);
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
        assert_int_equal(side_poll(&p.b).byte_len, sizeof(text));
        assert_string_equal((char *)p.b.buf + i * 64, text);
    }
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_enumerations),
        cmocka_unit_test(test_inline_ignores_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

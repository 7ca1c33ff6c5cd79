/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is refused, with the status that the document has for it; what is only a type or a number;
 * and what is not there at all, since it has no meaning in a program.
 */
#include "al_kit.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- refused ---- */

static void ports_are_not_managed(void **state)
{
    (void)state;
    const ib_port_attr_mod_t mod = {.pkey_ctr = 1};
    const ib_ca_mod_t what = IB_CA_MOD_QKEY_CTR | IB_CA_MOD_PKEY_CTR;
    IS(ib_modify_ca(NULL, 1, what, &mod), INVALID_CA_HANDLE);
    IS(ib_modify_ca(w.ca, 2, what, &mod), INVALID_PORT);
    IS(ib_modify_ca(w.ca, 1, 0, &mod), INVALID_PARAMETER);
    IS(ib_modify_ca(w.ca, 1, IB_CA_MOD_RESERVED_MASK, &mod), INVALID_PARAMETER);
    IS(ib_modify_ca(w.ca, 1, what, NULL), INVALID_PARAMETER);
    IS(ib_modify_ca(w.ca, 1, what, &mod), UNSUPPORTED);

    uint8_t in[256] = {0}, out[256];
    IS(ib_local_mad(NULL, 1, in, out), INVALID_CA_HANDLE);
    IS(ib_local_mad(w.ca, 0, in, out), INVALID_PORT);
    IS(ib_local_mad(w.ca, 1, NULL, out), INVALID_PARAMETER);
    IS(ib_local_mad(w.ca, 1, in, NULL), INVALID_PARAMETER);
    IS(ib_local_mad(w.ca, 1, in, out), UNSUPPORTED);
}

static void no_special_queue_pairs(void **state)
{
    (void)state;
    ib_qp_handle_t qp;
    ib_pool_key_t key;
    ib_qp_create_t how = {.qp_type = IB_QPT_QP1};
    IS(ib_get_spl_qp(NULL, w.guid, &how, NULL, NULL, &key, &qp), INVALID_PD_HANDLE);
    IS(ib_get_spl_qp(w.pd, w.guid, NULL, NULL, NULL, &key, &qp), INVALID_PARAMETER);
    IS(ib_get_spl_qp(w.pd, w.guid, &how, NULL, NULL, &key, NULL), INVALID_PARAMETER);
    IS(ib_get_spl_qp(w.pd, 1, &how, NULL, NULL, &key, &qp), INVALID_PORT);
    IS(ib_get_spl_qp(w.pd, w.guid, &how, NULL, NULL, &key, &qp), UNSUPPORTED);
    how.qp_type = IB_QPT_RELIABLE_CONN;
    IS(ib_get_spl_qp(w.pd, w.guid, &how, NULL, NULL, NULL, &qp), INVALID_SETTING);
}

static void no_physical_memory(void **state)
{
    (void)state;
    net32_t key;
    uint64_t vaddr = 0;
    ib_mr_handle_t mr;
    ib_phys_range_t range = {4096, 4096};
    ib_phys_create_t how = {.length = 4096, .num_ranges = 1, .range_array = &range};
    IS(ib_reg_phys(NULL, &how, &vaddr, &key, &key, &mr), INVALID_PD_HANDLE);
    IS(ib_reg_phys(w.pd, NULL, &vaddr, &key, &key, &mr), INVALID_PARAMETER);
    IS(ib_reg_phys(w.pd, &how, NULL, &key, &key, &mr), INVALID_PARAMETER);
    IS(ib_reg_phys(w.pd, &how, &vaddr, NULL, &key, &mr), INVALID_PARAMETER);
    IS(ib_reg_phys(w.pd, &how, &vaddr, &key, NULL, &mr), INVALID_PARAMETER);
    IS(ib_reg_phys(w.pd, &how, &vaddr, &key, &key, NULL), INVALID_PARAMETER);
    IS(ib_reg_phys(w.pd, &how, &vaddr, &key, &key, &mr), UNSUPPORTED);
}

/* The rule "send before response" has nothing to rule: no MAD is ever sent. */
static void no_mads(void **state)
{
    (void)state;
    ib_mad_t mad = {.base_ver = 1};
    ib_mad_element_t element = {.p_mad_buf = &mad, .size = sizeof mad}, *failure = NULL;
    ib_mad_svc_handle_t svc = NULL;
    assert_ptr_equal(ib_get_mad_buf(&element), &mad);
    IS(ib_send_mad(svc, &element, &failure), INVALID_HANDLE);
    assert_ptr_equal(failure, &element);
    IS(ib_send_mad(svc, &element, NULL), INVALID_HANDLE);
    IS(ib_cancel_mad(svc, &element), NOT_FOUND);
    IS(ib_cancel_mad(svc, NULL), INVALID_PARAMETER);
}

static void joined(ib_mcast_rec_t *rec)
{
    fail_msg("a group of multicast: %s", ib_get_err_str(rec->status));
}

static void no_multicast(void **state)
{
    (void)state;
    struct al_end e;
    ib_mcast_req_t req = {.create = TRUE, .pfn_mcast_cb = joined, .port_guid = w.guid};
    ib_pfn_mcast_cb_t cb = joined;
    ib_mcast_handle_t none = NULL;
    al_end_make(&e, &w);
    assert_ptr_equal(cb, req.pfn_mcast_cb);
    IS(ib_join_mcast(NULL, &req), INVALID_QP_HANDLE);
    IS(ib_join_mcast(e.qp, NULL), INVALID_PARAMETER);
    IS(ib_join_mcast(e.qp, &req), INVALID_SERVICE_TYPE);
    IS(ib_leave_mcast(none, NULL), INVALID_MCAST_HANDLE);
    ib_cm_lap_t lap = {.h_qp = e.qp};
    IS(ib_cm_lap(NULL), INVALID_PARAMETER);
    IS(ib_cm_lap(&lap), UNSUPPORTED);
    lap.h_qp = NULL;
    IS(ib_cm_lap(&lap), INVALID_QP_HANDLE);
    al_end_drop(&e);
}

/* The rule "optional operations": a CA may refuse these two; this one has them. */
static void optional_operations(void **state)
{
    (void)state;
    struct al_end e;
    uint32_t count = 1;
    al_end_make(&e, &w);
    OK(ib_peek_cq(e.cq, &count));
    assert_int_equal(count, 0);
    OK(ib_rearm_n_cq(e.cq, 1));
    al_end_drop(&e);
}

/* ---- numbers and their names ---- */

static void statuses_have_their_numbers(void **state)
{
    (void)state;
    static const struct {
        ib_api_status_t status;
        int number;
        const char *name;
    } rows[] = {
        {IB_SUCCESS, 0, "SUCCESS"},
        {IB_INSUFFICIENT_RESOURCES, 1, "INSUFFICIENT_RESOURCES"},
        {IB_INSUFFICIENT_MEMORY, 2, "INSUFFICIENT_MEMORY"},
        {IB_INVALID_PARAMETER, 3, "INVALID_PARAMETER"},
        {IB_INVALID_SETTING, 4, "INVALID_SETTING"},
        {IB_NOT_FOUND, 5, "NOT_FOUND"},
        {IB_CANCELED, 7, "CANCELED"},
        {IB_INVALID_PERMISSION, 9, "INVALID_PERMISSION"},
        {IB_UNSUPPORTED, 10, "UNSUPPORTED"},
        {IB_OVERFLOW, 11, "OVERFLOW"},
        {IB_INVALID_QP_STATE, 13, "INVALID_QP_STATE"},
        {IB_INVALID_APM_STATE, 14, "INVALID_APM_STATE"},
        {IB_RESOURCE_BUSY, 17, "RESOURCE_BUSY"},
        {IB_INVALID_PKEY, 18, "INVALID_PKEY"},
        {IB_INVALID_RKEY, 20, "INVALID_RKEY"},
        {IB_INVALID_MAX_WRS, 21, "INVALID_MAX_WRS"},
        {IB_INVALID_MAX_SGE, 22, "INVALID_MAX_SGE"},
        {IB_INVALID_CQ_SIZE, 23, "INVALID_CQ_SIZE"},
        {IB_INVALID_SERVICE_TYPE, 25, "INVALID_SERVICE_TYPE"},
        {IB_INVALID_GUID, 28, "INVALID_GUID"},
        {IB_INVALID_CA_HANDLE, 30, "INVALID_CA_HANDLE"},
        {IB_INVALID_AV_HANDLE, 31, "INVALID_AV_HANDLE"},
        {IB_INVALID_CQ_HANDLE, 32, "INVALID_CQ_HANDLE"},
        {IB_INVALID_QP_HANDLE, 33, "INVALID_QP_HANDLE"},
        {IB_INVALID_PD_HANDLE, 35, "INVALID_PD_HANDLE"},
        {IB_INVALID_MR_HANDLE, 36, "INVALID_MR_HANDLE"},
        {IB_INVALID_MW_HANDLE, 38, "INVALID_MW_HANDLE"},
        {IB_INVALID_MCAST_HANDLE, 39, "INVALID_MCAST_HANDLE"},
        {IB_INVALID_AL_HANDLE, 41, "INVALID_AL_HANDLE"},
        {IB_INVALID_HANDLE, 42, "INVALID_HANDLE"},
        {IB_ERROR, 43, "ERROR"},
        {IB_REMOTE_ERROR, 44, "REMOTE_ERROR"},
        {IB_INVALID_WR_TYPE, 46, "INVALID_WR_TYPE"},
        {IB_INVALID_PORT, 49, "INVALID_PORT"},
        {IB_UNKNOWN_ERROR, 54, "UNKNOWN_ERROR"},
        {(ib_api_status_t)55, 55, "UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rows[i].status, rows[i].number);
        assert_string_equal(ib_get_err_str(rows[i].status), rows[i].name);
    }
}

static void others_have_names(void **state)
{
    (void)state;
    assert_string_equal(ib_get_async_event_str(IB_AE_SQ_ERROR), "SQ_ERROR");
    assert_string_equal(ib_get_async_event_str(IB_AE_SRQ_QP_LAST_WQE_REACHED),
                        "SRQ_QP_LAST_WQE_REACHED");
    assert_string_equal(ib_get_async_event_str((ib_async_event_t)0), "UNKNOWN");
    assert_string_equal(ib_get_wc_status_str(IB_WCS_WR_FLUSHED_ERR), "WR_FLUSHED_ERR");
    assert_string_equal(ib_get_wc_status_str((ib_wc_status_t)99), "UNKNOWN");
    assert_string_equal(ib_get_wc_type_str(IB_WC_RECV), "RECV");
    assert_string_equal(ib_get_wc_type_str(IB_WC_UNKNOWN1), "UNKNOWN");
    assert_string_equal(ib_get_wr_type_str(WR_COMPARE_SWAP), "COMPARE_SWAP");
    assert_string_equal(ib_get_wr_type_str(200), "UNKNOWN");
    assert_string_equal(ib_get_qp_type_str(IB_QPT_QP1_ALIAS), "QP1_ALIAS");
    assert_string_equal(ib_get_qp_type_str(IB_QPT_UNKNOWN), "UNKNOWN");
    assert_string_equal(ib_get_port_state_str(IB_LINK_ACTIVE), "ACTIVE");
    assert_string_equal(ib_get_port_state_str(9), "UNKNOWN");
}

static void constants_of_the_layer(void **state)
{
    (void)state;
    assert_true(ATS_SERVICE_ID == CL_NTOH64(UINT64_C(0x10000CE100415453)));
    assert_string_equal(ATS_NAME, "DAPL Address Translation Service");
    assert_int_equal(ATS_IPV4_OFFSET, 12);
    assert_int_equal(IB_FLAGS_SYNC, 1);
    assert_int_equal(IB_MAD_SVC_DEFAULT, 0);
    assert_int_equal(IB_MAD_SVC_RMPP, 1);
    assert_int_equal(IB_SEND_OPT_SOLICITED, 8);
    assert_int_equal(IB_QPS_SQD_DRAINED, 0x50);
    assert_int_equal(IB_WC_RECV, 0x80);
    assert_int_equal(IB_QPT_MAD, 8);
    assert_true((intptr_t)ib_sync_destroy == -1);
    assert_int_equal(CL_NTOH16(0x1234), 0x3412);
    assert_true(CL_HTON32(0x12345678) == 0x78563412);
}

/* ---- types: of these sizes, as those who send them over a wire know them ---- */

static void sizes_of_types(void **state)
{
    (void)state;
    assert_int_equal(sizeof(ib_shmid_t), 64);
    assert_int_equal(sizeof(ib_gid_t), 16);
    assert_int_equal(sizeof(ib_grh_t), 40);
    assert_int_equal(sizeof(ib_mad_t), 24);
    assert_int_equal(sizeof(ib_path_rec_t), 64);
    assert_int_equal(offsetof(ib_member_rec_t, qkey), 32);
    assert_int_equal(sizeof(ib_net16_t), 2);
    assert_int_equal(sizeof(ib_net32_t), 4);
    assert_int_equal(sizeof(ib_net64_t), 8);
    assert_int_equal(sizeof(net32_t), 4);
    assert_int_equal(sizeof(ib_al_flags_t), 4);
    assert_int_equal(sizeof(ib_access_t), 4);
    assert_int_equal(sizeof(boolean_t), sizeof(int));
    const size_t handles[] = {
        sizeof(ib_al_handle_t),       sizeof(ib_pnp_handle_t),     sizeof(ib_reg_svc_handle_t),
        sizeof(ib_mad_send_handle_t), sizeof(ib_mad_svc_handle_t), sizeof(ib_query_handle_t),
        sizeof(ib_sub_handle_t),      sizeof(ib_listen_handle_t),  sizeof(ib_ioc_handle_t),
        sizeof(ib_svc_handle_t),      sizeof(ib_pool_key_t),       sizeof(ib_pool_handle_t),
        sizeof(ib_mcast_handle_t),    sizeof(cl_waitobj_handle_t), sizeof(ib_pfn_destroy_cb_t),
        sizeof(ib_pfn_event_cb_t),    sizeof(ib_pfn_mcast_cb_t),   sizeof(ib_pfn_comp_cb_t),
    };
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        assert_int_equal(handles[i], sizeof(void *));
}

/* ---- not there: whoever declares these names anew finds them free ---- */

static int mlnx_create_fmr, mlnx_map_fmr, mlnx_map_phys_fmr, mlnx_unmap_fmr, mlnx_destroy_fmr;
static int ib_init_dgrm_svc, ib_get_mad, ib_put_mad, ib_join_mast;
typedef int mlnx_fmr_handle_t, mlnx_fmr_create_t, ib_pfn_mad_recv_cb_t;
typedef int ib_reg_svc_req_t, ib_query_req_t, ib_sub_req_t;

static void names_that_are_free(void **state)
{
    (void)state;
    static const char *const names[] = {
        "mlnx_create_fmr",  "mlnx_map_phys_fmr", "mlnx_unmap_fmr", "mlnx_destroy_fmr",
        "ib_init_dgrm_svc", "ib_get_mad",        "ib_put_mad",     "ib_join_mast",
        "ib_query",         "ib_reg_pnp",        "ib_reg_svc",     "ib_subscribe",
        "ib_cm_apr",        "ib_cm_handoff",
    };
    const int *mine[] = {&mlnx_create_fmr, &mlnx_map_fmr,     &mlnx_map_phys_fmr,
                         &mlnx_unmap_fmr,  &mlnx_destroy_fmr, &ib_init_dgrm_svc,
                         &ib_get_mad,      &ib_put_mad,       &ib_join_mast};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        assert_int_equal(*mine[i], 0);
    assert_int_equal(sizeof(mlnx_fmr_handle_t) + sizeof(mlnx_fmr_create_t) +
                         sizeof(ib_pfn_mad_recv_cb_t) + sizeof(ib_reg_svc_req_t) +
                         sizeof(ib_query_req_t) + sizeof(ib_sub_req_t),
                     6 * sizeof(int));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(dlsym(RTLD_DEFAULT, names[i]));
    assert_non_null(dlsym(RTLD_DEFAULT, "ib_open_al"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_are_not_managed),
        cmocka_unit_test(no_special_queue_pairs),
        cmocka_unit_test(no_physical_memory),
        cmocka_unit_test(no_mads),
        cmocka_unit_test(no_multicast),
        cmocka_unit_test(optional_operations),
        cmocka_unit_test(statuses_have_their_numbers),
        cmocka_unit_test(others_have_names),
        cmocka_unit_test(constants_of_the_layer),
        cmocka_unit_test(sizes_of_types),
        cmocka_unit_test(names_that_are_free),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

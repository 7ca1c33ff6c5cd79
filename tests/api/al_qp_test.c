/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: how they are made, asked and moved; connected by address and number, too. */
#include "al_kit.h"

#include <complib/cl_memory.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct al_end e;

static int setup(void **state)
{
    (void)state;
    al_open(&w);
    al_end_make(&e, &w);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    al_end_drop(&e);
    al_close(&w);
    return 0;
}

static void types_and_sizes(void **state)
{
    (void)state;
    ib_qp_handle_t qp;
    const ib_qp_create_t good = al_end_create(&e);
    ib_qp_create_t bad = good;
    IS(ib_create_qp(NULL, &good, NULL, NULL, &qp), INVALID_PD_HANDLE);
    IS(ib_create_qp(w.pd, NULL, NULL, NULL, &qp), INVALID_PARAMETER);
    IS(ib_create_qp(w.pd, &good, NULL, NULL, NULL), INVALID_PARAMETER);
    bad.qp_type = (ib_qp_type_t)99;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_SETTING);
    static const ib_qp_type_t others[] = {
        IB_QPT_UNRELIABLE_DGRM, IB_QPT_MAD,       IB_QPT_QP0,       IB_QPT_QP1,
        IB_QPT_RAW_IPV6,        IB_QPT_RAW_ETHER, IB_QPT_QP0_ALIAS, IB_QPT_QP1_ALIAS};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bad.qp_type = others[i];
        IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), UNSUPPORTED);
    }
    bad = good;
    bad.h_sq_cq = NULL;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_CQ_HANDLE);
    bad = good;
    bad.h_rq_cq = (ib_cq_handle_t)w.pd;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_CQ_HANDLE);
    bad = good;
    bad.h_srq = (ib_srq_handle_t)w.pd;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_SRQ_HANDLE);
    bad = good;
    bad.sq_depth = 0x7fffffff;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_MAX_WRS);
    bad = good;
    bad.rq_sge = 1000;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_MAX_SGE);
    bad = good;
    bad.sq_max_inline = 0x7fffffff;
    IS(ib_create_qp(w.pd, &bad, NULL, NULL, &qp), INVALID_SETTING);
    ib_qp_create_t uc = good;
    uc.qp_type = IB_QPT_UNRELIABLE_CONN;
    OK(ib_create_qp(w.pd, &uc, NULL, NULL, &qp));
    ib_qp_attr_t attr;
    OK(ib_query_qp(qp, &attr));
    assert_int_equal(attr.qp_type, IB_QPT_UNRELIABLE_CONN);
    OK(ib_destroy_qp(qp, ib_sync_destroy));
    IS(ib_destroy_qp(qp, NULL), INVALID_QP_HANDLE);
}

static void asked(void **state)
{
    (void)state;
    ib_qp_attr_t attr;
    IS(ib_query_qp(NULL, &attr), INVALID_QP_HANDLE);
    IS(ib_query_qp(e.qp, NULL), INVALID_PARAMETER);
    OK(ib_query_qp(e.qp, &attr));
    assert_ptr_equal(attr.h_pd, w.pd);
    assert_ptr_equal(attr.h_sq_cq, e.cq);
    assert_ptr_equal(attr.h_rq_cq, e.cq);
    assert_null(attr.h_srq);
    assert_int_equal(attr.qp_type, IB_QPT_RELIABLE_CONN);
    assert_true(attr.sq_depth >= 32 && attr.rq_depth >= 32);
    assert_true(attr.sq_signaled);
    assert_int_equal(attr.primary_port, 1);
    assert_int_not_equal(attr.num, 0);
}

static ib_api_status_t to(ib_qp_state_t state)
{
    ib_qp_mod_t mod = {.req_state = state};
    if (state == IB_QPS_INIT) {
        mod.state.init.primary_port = 1;
        mod.state.init.access_ctrl = IB_AC_LOCAL_WRITE | IB_AC_MW_BIND | IB_AC_RDMA_READ;
    }
    return ib_modify_qp(e.qp, &mod);
}

static ib_qp_state_t now(void)
{
    ib_qp_attr_t attr;
    OK(ib_query_qp(e.qp, &attr));
    return attr.state;
}

static void moved(void **state)
{
    (void)state;
    ib_qp_mod_t mod = {.req_state = IB_QPS_INIT, .state.init.primary_port = 1};
    IS(ib_modify_qp(NULL, &mod), INVALID_QP_HANDLE);
    IS(ib_modify_qp(e.qp, NULL), INVALID_PARAMETER);
    OK(to(IB_QPS_RESET));
    assert_int_equal(now(), IB_QPS_RESET);
    IS(to(IB_QPS_RTS), INVALID_QP_STATE);
    IS(to(IB_QPS_RTR), INVALID_QP_STATE);
    IS(to(IB_QPS_SQD), INVALID_QP_STATE);
    IS(to(IB_QPS_TIME_WAIT), INVALID_SETTING);
    mod.state.init.primary_port = 2;
    IS(ib_modify_qp(e.qp, &mod), INVALID_SETTING);
    mod.state.init.primary_port = 1;
    mod.state.init.pkey_index = 1;
    IS(ib_modify_qp(e.qp, &mod), INVALID_PKEY);
    mod.state.init.pkey_index = 0;
    mod.state.init.access_ctrl = 0x4000;
    IS(ib_modify_qp(e.qp, &mod), INVALID_SETTING);
    OK(to(IB_QPS_INIT));
    assert_int_equal(now(), IB_QPS_INIT);
    OK(to(IB_QPS_ERROR));
    assert_int_equal(now(), IB_QPS_ERROR);
    IS(to(IB_QPS_INIT), INVALID_QP_STATE);
    OK(to(IB_QPS_RESET));
}

/* ---- by address and number ---- */

/* The first GID of this host that is an address of IPv4; all 0: there is none. */
static ib_gid_t own_gid(void)
{
    uint32_t size = 0;
    ib_query_ca(w.ca, NULL, &size);
    ib_ca_attr_t *attr = cl_zalloc(size);
    OK(ib_query_ca(w.ca, attr, &size));
    ib_gid_t found = {.raw = {0}};
    for (int i = 0; i < attr->p_port_attr->num_gids && !found.raw[10]; i++) {
        if (attr->p_port_attr->p_gid_table[i].raw[10] == 0xff)
            found = attr->p_port_attr->p_gid_table[i];
    }
    cl_free(attr);
    return found;
}

static ib_qp_mod_t to_rtr(const ib_gid_t *gid)
{
    ib_qp_attr_t attr;
    OK(ib_query_qp(e.qp, &attr));
    ib_qp_mod_t mod = {.req_state = IB_QPS_RTR};
    mod.state.rtr.dest_qp = attr.num;
    mod.state.rtr.resp_res = 4;
    mod.state.rtr.rnr_nak_timeout = 7;
    mod.state.rtr.rq_psn = CL_HTON32(1);
    mod.state.rtr.primary_av.port_num = 1;
    mod.state.rtr.primary_av.conn.path_mtu = IB_MTU_LEN_1024;
    if (gid) {
        mod.state.rtr.primary_av.grh_valid = TRUE;
        mod.state.rtr.primary_av.grh.dest_gid = *gid;
        mod.state.rtr.primary_av.grh.hop_limit = 1;
    }
    return mod;
}

static ib_qp_mod_t to_rts(void)
{
    ib_qp_mod_t mod = {.req_state = IB_QPS_RTS};
    mod.state.rts.sq_psn = CL_HTON32(1);
    mod.state.rts.retry_cnt = 7;
    mod.state.rts.rnr_retry_cnt = 7;
    mod.state.rts.local_ack_timeout = 14;
    mod.state.rts.init_depth = 4;
    return mod;
}

static void talk_to_itself(void)
{
    ib_local_ds_t ds;
    ib_send_wr_t wr = al_wr(&e, &ds, 0, WR_SEND);
    e.data[0] = 31;
    al_recv(&e, 1);
    OK(al_post(&e, &wr));
    assert_int_equal(al_poll(&e).status, IB_WCS_SUCCESS);
    assert_int_equal(al_poll(&e).status, IB_WCS_SUCCESS);
    assert_true(e.data[1] == 31);
}

static void connect_to_itself(const ib_gid_t *gid)
{
    ib_qp_attr_t attr;
    OK(to(IB_QPS_RESET));
    OK(to(IB_QPS_INIT));
    ib_qp_mod_t mod = to_rtr(gid);
    OK(ib_modify_qp(e.qp, &mod));
    assert_int_equal(now(), IB_QPS_RTR);
    OK(ib_query_qp(e.qp, &attr));
    assert_int_equal(attr.primary_av.conn.path_mtu, IB_MTU_LEN_1024);
    assert_int_equal(attr.dest_num, attr.num);
    mod = to_rts();
    OK(ib_modify_qp(e.qp, &mod));
    assert_int_equal(now(), IB_QPS_RTS);
    talk_to_itself();
}

static void connected_by_gid_and_number(void **state)
{
    (void)state;
    ib_gid_t gid = own_gid();
    connect_to_itself(&gid);
    ib_qp_mod_t mod = {.req_state = IB_QPS_RTS};
    mod.state.rts.opts = IB_MOD_QP_APM_STATE;
    IS(ib_modify_qp(e.qp, &mod), INVALID_APM_STATE);
    mod.state.rts.opts = IB_MOD_QP_ALTERNATE_AV;
    IS(ib_modify_qp(e.qp, &mod), UNSUPPORTED);
    mod.state.rts.opts = IB_MOD_QP_ACCESS_CTRL | IB_MOD_QP_RNR_NAK_TIMEOUT;
    mod.state.rts.access_ctrl = IB_AC_RDMA_READ;
    mod.state.rts.rnr_nak_timeout = 9;
    OK(ib_modify_qp(e.qp, &mod));
    talk_to_itself();
    OK(to(IB_QPS_RESET));
}

static void connected_by_lid(void **state)
{
    (void)state;
    connect_to_itself(NULL);
    OK(to(IB_QPS_RESET));
}

static void addresses_that_are_wrong(void **state)
{
    (void)state;
    ib_gid_t gid = own_gid();
    OK(to(IB_QPS_RESET));
    OK(to(IB_QPS_INIT));
    ib_qp_mod_t mod = to_rtr(&gid);
    mod.state.rtr.primary_av.port_num = 2;
    IS(ib_modify_qp(e.qp, &mod), INVALID_SETTING);
    mod = to_rtr(&gid);
    mod.state.rtr.primary_av.grh.src_gid.raw[3] = 77; /* no GID of ours */
    IS(ib_modify_qp(e.qp, &mod), INVALID_SETTING);
    mod = to_rtr(NULL);
    mod.state.rtr.primary_av.dlid = CL_HTON16(77);
    IS(ib_modify_qp(e.qp, &mod), INVALID_SETTING);
    mod = to_rtr(&gid);
    mod.state.rtr.opts = IB_MOD_QP_PKEY;
    mod.state.rtr.pkey_index = 9;
    IS(ib_modify_qp(e.qp, &mod), INVALID_PKEY);
    mod = to_rtr(&gid);
    mod.state.rtr.primary_av.grh.src_gid = gid;
    mod.state.rtr.opts = IB_MOD_QP_PKEY | IB_MOD_QP_ACCESS_CTRL;
    mod.state.rtr.access_ctrl = IB_AC_RDMA_READ;
    OK(ib_modify_qp(e.qp, &mod));
    OK(to(IB_QPS_RESET));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_sizes),
        cmocka_unit_test(asked),
        cmocka_unit_test(moved),
        cmocka_unit_test(connected_by_gid_and_number),
        cmocka_unit_test(connected_by_lid),
        cmocka_unit_test(addresses_that_are_wrong),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

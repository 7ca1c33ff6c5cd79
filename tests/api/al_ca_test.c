/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer, its adapters, protection domains and address vectors. */
#include "al_kit.h"

#include <complib/cl_memory.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void open_and_close(void **state)
{
    (void)state;
    ib_al_handle_t a, b;
    IS(ib_open_al(NULL), INVALID_PARAMETER);
    OK(ib_open_al(&a));
    OK(ib_open_al(&b));
    OK(ib_close_al(a));
    IS(ib_close_al(a), INVALID_AL_HANDLE);
    IS(ib_close_al(NULL), INVALID_AL_HANDLE);
    OK(ib_close_al(b));
}

/* The rule "query size protocol", for both calls that have it. */
static void two_calls_for_a_size(void **state)
{
    (void)state;
    size_t count = 99;
    IS(ib_get_ca_guids(NULL, NULL, &count), INVALID_AL_HANDLE);
    IS(ib_get_ca_guids(w.al, NULL, NULL), INVALID_PARAMETER);
    IS(ib_get_ca_guids(w.al, NULL, &count), INSUFFICIENT_MEMORY);
    ib_net64_t *guids = cl_zalloc(count * sizeof *guids);
    count--;
    IS(ib_get_ca_guids(w.al, guids, &count), INSUFFICIENT_MEMORY);
    OK(ib_get_ca_guids(w.al, guids, &count));
    assert_true(guids[0] == w.guid);
    cl_free(guids);

    uint32_t size = 0, other = 0;
    IS(ib_query_ca(NULL, NULL, &size), INVALID_CA_HANDLE);
    IS(ib_query_ca(w.ca, NULL, NULL), INVALID_PARAMETER);
    IS(ib_query_ca(w.ca, NULL, &size), INSUFFICIENT_MEMORY);
    ib_ca_attr_t *attr = cl_zalloc(size);
    other = size - 1;
    IS(ib_query_ca(w.ca, attr, &other), INSUFFICIENT_MEMORY);
    assert_int_equal(other, size);
    IS(ib_query_ca_by_guid(NULL, w.guid, attr, &size), INVALID_AL_HANDLE);
    IS(ib_query_ca_by_guid(w.al, 1, attr, &size), INVALID_GUID);
    IS(ib_query_ca_by_guid(w.al, w.guid, attr, NULL), INVALID_PARAMETER);
    IS(ib_query_ca_by_guid(w.al, w.guid, NULL, &other), INSUFFICIENT_MEMORY);
    assert_int_equal(other, size);
    OK(ib_query_ca_by_guid(w.al, w.guid, attr, &size));
    cl_free(attr);
}

static void attributes_are_those_of_the_verbs(void **state)
{
    (void)state;
    uint32_t size = 0;
    ib_query_ca(w.ca, NULL, &size);
    ib_ca_attr_t *attr = cl_zalloc(size);
    OK(ib_query_ca(w.ca, attr, &size));

    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *verbs = ibv_open_device(list[0]);
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_device(verbs, &device), 0);
    assert_int_equal(ibv_query_port(verbs, 1, &port), 0);
    assert_true(attr->ca_guid == device.node_guid);
    assert_int_equal(attr->size, size);
    assert_int_equal(attr->max_qps, device.max_qp);
    assert_int_equal(attr->max_wrs, device.max_qp_wr);
    assert_int_equal(attr->max_sges, device.max_sge);
    assert_int_equal(attr->max_cqes, device.max_cqe);
    assert_int_equal(attr->max_srq, device.max_srq);
    assert_int_equal(attr->atomicity, IB_ATOMIC_LOCAL);
    assert_int_equal(attr->num_page_sizes, 1);
    assert_true(attr->p_page_size[0] >= 4096);
    assert_int_equal(attr->num_ports, 1);

    const ib_port_attr_t *p = attr->p_port_attr;
    assert_true(p->port_guid == w.guid);
    assert_int_equal(p->port_num, 1);
    assert_int_equal(p->link_state, IB_LINK_ACTIVE);
    assert_int_equal(p->mtu, port.active_mtu);
    assert_int_equal(p->num_gids, port.gid_tbl_len);
    assert_int_equal(p->num_pkeys, 1);
    assert_int_equal(p->p_pkey_table[0], 0xffff);
    for (int i = 0; i < p->num_gids; i++) {
        union ibv_gid gid;
        assert_int_equal(ibv_query_gid(verbs, 1, i, &gid), 0);
        assert_memory_equal(&p->p_gid_table[i], &gid, sizeof gid);
    }
    ibv_close_device(verbs);
    ibv_free_device_list(list);
    cl_free(attr);
}

static void adapters(void **state)
{
    (void)state;
    ib_ca_handle_t ca;
    atomic_int closed = 0;
    IS(ib_open_ca(NULL, w.guid, NULL, NULL, &ca), INVALID_AL_HANDLE);
    IS(ib_open_ca(w.al, w.guid, NULL, NULL, NULL), INVALID_PARAMETER);
    IS(ib_open_ca(w.al, 1, NULL, NULL, &ca), INVALID_GUID);
    OK(ib_open_ca(w.al, w.guid, NULL, &closed, &ca));
    assert_ptr_not_equal(ca, w.ca);
    OK(ib_close_ca(ca, al_count));
    IS(ib_close_ca(ca, al_count), INVALID_CA_HANDLE);
    al_await(&closed, 1);
    IS(ib_close_ca(NULL, NULL), INVALID_CA_HANDLE);
}

static void domains(void **state)
{
    (void)state;
    ib_pd_handle_t pd;
    atomic_int gone = 0;
    IS(ib_alloc_pd(NULL, IB_PDT_NORMAL, NULL, &pd), INVALID_CA_HANDLE);
    IS(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, NULL), INVALID_PARAMETER);
    IS(ib_alloc_pd(w.ca, IB_PDT_ALIAS, NULL, &pd), INVALID_PARAMETER);
    IS(ib_alloc_pd(w.ca, (ib_pd_type_t)99, NULL, &pd), INVALID_PARAMETER);
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, &gone, &pd));
    OK(ib_dealloc_pd(pd, al_count));
    al_await(&gone, 1);
    IS(ib_dealloc_pd(pd, NULL), INVALID_PD_HANDLE);
    IS(ib_dealloc_pd(NULL, NULL), INVALID_PD_HANDLE);
}

static void address_vectors(void **state)
{
    (void)state;
    ib_av_handle_t av;
    ib_pd_handle_t pd;
    ib_av_attr_t attr = {
        .port_num = 1,
        .sl = 3,
        .dlid = 7,
        .static_rate = IB_PATH_RECORD_RATE_10_GBS,
        .grh_valid = TRUE,
        .grh = {.hop_limit = 9},
    };
    ib_av_attr_t got;
    IS(ib_create_av(NULL, &attr, &av), INVALID_PD_HANDLE);
    IS(ib_create_av(w.pd, NULL, &av), INVALID_PARAMETER);
    IS(ib_create_av(w.pd, &attr, NULL), INVALID_PARAMETER);
    attr.port_num = 2;
    IS(ib_create_av(w.pd, &attr, &av), INVALID_PORT);
    attr.port_num = 1;
    OK(ib_create_av(w.pd, &attr, &av));
    IS(ib_query_av(NULL, &got, &pd), INVALID_AV_HANDLE);
    IS(ib_query_av(av, NULL, &pd), INVALID_PARAMETER);
    IS(ib_query_av(av, &got, NULL), INVALID_PARAMETER);
    OK(ib_query_av(av, &got, &pd));
    assert_ptr_equal(pd, w.pd);
    assert_int_equal(got.grh.hop_limit, 9);
    attr.dlid = 8;
    IS(ib_modify_av(NULL, &attr), INVALID_AV_HANDLE);
    IS(ib_modify_av(av, NULL), INVALID_PARAMETER);
    attr.port_num = 0;
    IS(ib_modify_av(av, &attr), INVALID_PORT);
    attr.port_num = 1;
    OK(ib_modify_av(av, &attr));
    OK(ib_query_av(av, &got, &pd));
    assert_int_equal(got.dlid, 8);
    OK(ib_destroy_av(av));
    IS(ib_destroy_av(av), INVALID_AV_HANDLE);
}

/* The rule "invalid handle per type": a handle of one type is none of another, nor a stale one. */
static void invalid_handles(void **state)
{
    (void)state;
    ib_pd_handle_t pd, again;
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &pd));
    OK(ib_dealloc_pd(pd, ib_sync_destroy));
    for (int i = 0; i < 5000; i++) { /* its number has been used again, and again */
        OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &again));
        assert_ptr_not_equal(again, pd);
        IS(ib_dealloc_pd(pd, NULL), INVALID_PD_HANDLE);
        OK(ib_dealloc_pd(again, ib_sync_destroy));
    }
    IS(ib_dealloc_pd((ib_pd_handle_t)w.ca, NULL), INVALID_PD_HANDLE);
    IS(ib_close_ca((ib_ca_handle_t)w.pd, NULL), INVALID_CA_HANDLE);
    IS(ib_destroy_qp((ib_qp_handle_t)w.pd, NULL), INVALID_QP_HANDLE);
    IS(ib_destroy_cq((ib_cq_handle_t)(uintptr_t)12345, NULL), INVALID_CQ_HANDLE);
    IS(ib_dereg_mr((ib_mr_handle_t)(intptr_t)-1), INVALID_MR_HANDLE);
}

/* The rule "cascading destroy": what was made in an adapter goes with it, callbacks in order. */
static void cascading_destroy(void **state)
{
    (void)state;
    ib_ca_handle_t ca;
    ib_pd_handle_t pd;
    ib_av_handle_t av;
    struct al_end e;
    atomic_int gone = 0;
    struct al_world mine = w;
    OK(ib_open_ca(w.al, w.guid, NULL, &gone, &ca));
    mine.ca = ca;
    OK(ib_alloc_pd(ca, IB_PDT_NORMAL, NULL, &pd));
    mine.pd = pd;
    al_end_make(&e, &mine);
    OK(ib_create_av(pd, &(ib_av_attr_t){.port_num = 1}, &av));
    OK(ib_close_ca(ca, al_count));
    IS(ib_destroy_qp(e.qp, NULL), INVALID_QP_HANDLE);
    IS(ib_destroy_cq(e.cq, NULL), INVALID_CQ_HANDLE);
    IS(ib_dereg_mr(e.mr), INVALID_MR_HANDLE);
    IS(ib_destroy_av(av), INVALID_AV_HANDLE);
    IS(ib_dealloc_pd(pd, NULL), INVALID_PD_HANDLE);
    IS(ib_alloc_pd(ca, IB_PDT_NORMAL, NULL, &pd), INVALID_CA_HANDLE);
    al_await(&gone, 1);
}

/* The rule "asynchronous destroy": the callback of a parent comes behind those of its children. */
static atomic_int order;

static void first(void *context)
{
    assert_int_equal(order++, *(int *)context);
}

static void asynchronous_destroy(void **state)
{
    (void)state;
    int numbers[] = {0, 1};
    ib_pd_handle_t pd;
    ib_cq_handle_t cq;
    ib_qp_handle_t qp;
    ib_cq_create_t how = {.size = 4, .pfn_comp_cb = (ib_pfn_comp_cb_t)(void (*)(void))al_count};
    order = 0;
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, &numbers[1], &pd));
    OK(ib_create_cq(w.ca, &how, NULL, NULL, &cq));
    ib_qp_create_t create = {
        .sq_depth = 1, .rq_depth = 1, .sq_sge = 1, .rq_sge = 1, .h_sq_cq = cq, .h_rq_cq = cq};
    OK(ib_create_qp(pd, &create, &numbers[0], NULL, &qp));
    IS(ib_destroy_cq(cq, NULL), RESOURCE_BUSY); /* the rule "destroy busy CQ" */
    OK(ib_destroy_qp(qp, first));
    OK(ib_dealloc_pd(pd, first));
    al_await(&order, 2);
    OK(ib_destroy_cq(cq, ib_sync_destroy)); /* the rule "sync destroy" */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_and_close),
        cmocka_unit_test(two_calls_for_a_size),
        cmocka_unit_test(attributes_are_those_of_the_verbs),
        cmocka_unit_test(adapters),
        cmocka_unit_test(domains),
        cmocka_unit_test(address_vectors),
        cmocka_unit_test(invalid_handles),
        cmocka_unit_test(cascading_destroy),
        cmocka_unit_test(asynchronous_destroy),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

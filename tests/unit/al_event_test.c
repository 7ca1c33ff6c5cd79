/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of the verbs in the access layer's words: all of them, and whom they reach.
 */
#include "al/event.h"

#include "al/ca.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static ib_al_handle_t al;
static ib_ca_handle_t ca, silent;
static ib_pd_handle_t pd;
static ib_cq_handle_t cq;
static ib_srq_handle_t srq;
static ib_qp_handle_t qp;
static struct al_device *device;
static ib_async_event_rec_t seen;
static int count;

static void happened(ib_async_event_rec_t *rec)
{
    seen = *rec;
    count++;
}

static void ignore(const ib_cq_handle_t h_cq, void *context)
{
    (void)h_cq;
    (void)context;
}

static int setup(void **state)
{
    size_t guids = 1;
    ib_net64_t guid;
    ib_cq_create_t cq_how = {.size = 4, .pfn_comp_cb = ignore};
    ib_srq_attr_t srq_how = {.max_wr = 4, .max_sge = 1};
    (void)state;
    assert_int_equal(ib_open_al(&al), IB_SUCCESS);
    ib_get_ca_guids(al, &guid, &guids);
    assert_int_equal(ib_open_ca(al, guid, happened, "ca", &ca), IB_SUCCESS);
    assert_int_equal(ib_open_ca(al, guid, NULL, NULL, &silent), IB_SUCCESS);
    assert_int_equal(ib_alloc_pd(ca, IB_PDT_NORMAL, NULL, &pd), IB_SUCCESS);
    assert_int_equal(ib_create_cq(ca, &cq_how, "cq", happened, &cq), IB_SUCCESS);
    assert_int_equal(ib_create_srq(pd, &srq_how, "srq", happened, &srq), IB_SUCCESS);
    ib_qp_create_t qp_how = {
        .sq_depth = 1, .rq_depth = 1, .sq_sge = 1, .rq_sge = 1, .h_sq_cq = cq, .h_rq_cq = cq};
    assert_int_equal(ib_create_qp(pd, &qp_how, "qp", happened, &qp), IB_SUCCESS);
    struct al_ca *found = al_get(&al_ca_kind, ca);
    device = found->device;
    al_put(&found->o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ib_close_al(al) == IB_SUCCESS ? 0 : -1;
}

enum whom { CA, CQ, QP, SRQ };

static void happens(enum ibv_event_type type, enum whom whom)
{
    struct ibv_cq of_cq = {.cq_context = cq};
    struct ibv_qp of_qp = {.qp_context = qp};
    struct ibv_srq of_srq = {.srq_context = srq};
    struct ibv_async_event event = {.event_type = type};
    if (whom == CQ)
        event.element.cq = &of_cq;
    else if (whom == QP)
        event.element.qp = &of_qp;
    else if (whom == SRQ)
        event.element.srq = &of_srq;
    else
        event.element.port_num = 1;
    count = 0;
    al_event(device, &event);
}

static const struct {
    enum ibv_event_type from;
    enum whom whom;
    ib_async_event_t to;
} rows[] = {
    {IBV_EVENT_CQ_ERR, CQ, IB_AE_CQ_ERROR},
    {IBV_EVENT_QP_FATAL, QP, IB_AE_QP_FATAL},
    {IBV_EVENT_QP_REQ_ERR, QP, IB_AE_WQ_REQ_ERROR},
    {IBV_EVENT_QP_ACCESS_ERR, QP, IB_AE_WQ_ACCESS_ERROR},
    {IBV_EVENT_COMM_EST, QP, IB_AE_QP_COMM},
    {IBV_EVENT_SQ_DRAINED, QP, IB_AE_SQ_DRAINED},
    {IBV_EVENT_PATH_MIG, QP, IB_AE_QP_APM},
    {IBV_EVENT_PATH_MIG_ERR, QP, IB_AE_QP_APM_ERROR},
    {IBV_EVENT_QP_LAST_WQE_REACHED, QP, IB_AE_SRQ_QP_LAST_WQE_REACHED},
    {IBV_EVENT_SRQ_ERR, SRQ, IB_AE_SRQ_CATAS_ERROR},
    {IBV_EVENT_SRQ_LIMIT_REACHED, SRQ, IB_AE_SRQ_LIMIT_REACHED},
    {IBV_EVENT_DEVICE_FATAL, CA, IB_AE_LOCAL_FATAL},
    {IBV_EVENT_PORT_ACTIVE, CA, IB_AE_PORT_ACTIVE},
    {IBV_EVENT_PORT_ERR, CA, IB_AE_PORT_DOWN},
    {IBV_EVENT_CLIENT_REREGISTER, CA, IB_AE_CLIENT_REREGISTER},
    {IBV_EVENT_LID_CHANGE, CA, IB_AE_UNKNOWN},
};

static void every_event(void **state)
{
    (void)state;
    const void *handles[] = {[CA] = ca, [CQ] = cq, [QP] = qp, [SRQ] = srq};
    const char *contexts[] = {[CA] = "ca", [CQ] = "cq", [QP] = "qp", [SRQ] = "srq"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        happens(rows[i].from, rows[i].whom);
        assert_int_equal(count, 1);
        assert_int_equal(seen.code, rows[i].to);
        assert_int_equal(seen.vendor_specific, rows[i].from);
        assert_ptr_equal(seen.handle.h_ca, handles[rows[i].whom]);
        assert_string_equal(seen.context, contexts[rows[i].whom]);
    }
}

/* What is gone hears nothing, nor does another device's adapter. */
static void nobody(void **state)
{
    (void)state;
    struct al_device other = {.verbs = NULL};
    struct ibv_async_event event = {.event_type = IBV_EVENT_PORT_ERR};
    count = 0;
    al_event(&other, &event);
    assert_int_equal(count, 0);
    assert_int_equal(ib_destroy_qp(qp, ib_sync_destroy), IB_SUCCESS);
    assert_int_equal(ib_destroy_srq(srq, ib_sync_destroy), IB_SUCCESS);
    assert_int_equal(ib_destroy_cq(cq, ib_sync_destroy), IB_SUCCESS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        happens(rows[i].from, rows[i].whom);
        assert_int_equal(count, rows[i].whom == CA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event),
        cmocka_unit_test(nobody),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

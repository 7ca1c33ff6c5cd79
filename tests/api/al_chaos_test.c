/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The access layer over verbs and an rdma_cm that fail: which call says so, by which status; and
 * that all of it can be closed then. Each row is a process of its own, in which every call of a
 * kind fails; the last rows are disturbances that a program may not notice.
 */
#include "al_kit.h"

#include <complib/cl_thread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the program, step by step ---- */

static ib_al_handle_t al;
static ib_ca_handle_t ca;
static ib_pd_handle_t pd;
static ib_cq_handle_t cq;
static ib_qp_handle_t qps[2];
static ib_mr_handle_t mr;
static ib_net64_t svc_id;
static net32_t lkey, rkey;
static uint64_t data[2];
static atomic_int completions, answered, leaves;
static ib_api_status_t replied;
static ib_rej_status_t rejected;

static void completed(const ib_cq_handle_t h_cq, void *context)
{
    ib_wc_t wc = {0}, *unused = &wc, *done;
    (void)context;
    ib_rearm_cq(h_cq, FALSE);
    while (ib_poll_cq(h_cq, &unused, &done) == IB_SUCCESS) {
        completions++;
        unused = &wc;
    }
}

static ib_api_status_t open_ca(void)
{
    ib_net64_t guid;
    size_t count = 1;
    ib_get_ca_guids(al, &guid, &count);
    return ib_open_ca(al, guid, NULL, NULL, &ca);
}

static ib_api_status_t alloc_pd(void)
{
    return ib_alloc_pd(ca, IB_PDT_NORMAL, NULL, &pd);
}

static ib_api_status_t create_cq(void)
{
    ib_cq_create_t how = {.size = 8, .pfn_comp_cb = completed};
    return ib_create_cq(ca, &how, NULL, NULL, &cq);
}

static ib_api_status_t rearm_cq(void)
{
    return ib_rearm_cq(cq, FALSE);
}

static ib_api_status_t reg_mem(void)
{
    ib_mr_create_t how = {data, sizeof data, IB_AC_LOCAL_WRITE};
    return ib_reg_mem(pd, &how, &lkey, &rkey, &mr);
}

static ib_api_status_t create_qps(void)
{
    ib_qp_create_t how = {.sq_depth = 2,
                          .rq_depth = 2,
                          .sq_sge = 1,
                          .rq_sge = 1,
                          .h_sq_cq = cq,
                          .h_rq_cq = cq,
                          .sq_signaled = TRUE};
    ib_api_status_t status = ib_create_qp(pd, &how, NULL, NULL, &qps[0]);
    return status == IB_SUCCESS ? ib_create_qp(pd, &how, NULL, NULL, &qps[1]) : status;
}

static ib_api_status_t create_srq(void)
{
    ib_srq_handle_t srq;
    ib_srq_attr_t how = {.max_wr = 1, .max_sge = 1};
    return ib_create_srq(pd, &how, NULL, NULL, &srq);
}

static ib_api_status_t create_mw(void)
{
    net32_t key;
    ib_mw_handle_t mw;
    return ib_create_mw(pd, &key, &mw);
}

static ib_api_status_t modify_cq(void)
{
    uint32_t size = 32;
    return ib_modify_cq(cq, &size);
}

static ib_api_status_t modify_qp(void)
{
    ib_qp_mod_t init = {.req_state = IB_QPS_INIT, .state.init.primary_port = 1};
    return ib_modify_qp(qps[0], &init);
}

static ib_api_status_t post_recv(void)
{
    ib_local_ds_t ds = {(uintptr_t)&data[1], 8, lkey};
    ib_recv_wr_t wr = {.num_ds = 1, .ds_array = &ds};
    return ib_post_recv(qps[1], &wr, NULL);
}

static void leave(ib_cm_dreq_rec_t *rec)
{
    ib_cm_drep_t drep = {0};
    ib_cm_drep(rec->h_cm_dreq, &drep);
    leaves++;
}

static void request(ib_cm_req_rec_t *rec)
{
    ib_cm_rep_t rep = {.h_qp = qps[1], .pfn_cm_dreq_cb = leave};
    replied = ib_cm_rep(rec->h_cm_req, &rep); /* if that fails the peer is rejected */
}

static void reply(ib_cm_rep_rec_t *rec)
{
    ib_cm_rtu_t rtu = {.pfn_cm_dreq_cb = leave};
    ib_cm_rtu(rec->h_cm_rep, &rtu);
    answered++;
}

static void reject(ib_cm_rej_rec_t *rec)
{
    rejected = rec->rej_status;
    answered++;
}

/* Somebody else may have been faster. */
static ib_api_status_t listen_there(void)
{
    ib_listen_handle_t h;
    ib_cm_listen_t how = {.pfn_cm_req_cb = request};
    ib_api_status_t status;
    int tries = 0;
    do {
        how.svc_id = svc_id = CL_HTON64((uint64_t)al_free_port());
        status = ib_cm_listen(al, &how, NULL, &h);
    } while (status == IB_INVALID_SETTING && ++tries < 20);
    return status;
}

static bool comes_to(atomic_int *count, int want)
{
    for (int ms = 0; ms < 20000 && *count < want; ms++)
        cl_thread_suspend(1);
    return *count >= want;
}

/* A failure that comes by callback is a status, too. */
static ib_api_status_t connect_them(void)
{
    ib_path_rec_t path = al_loopback();
    ib_cm_req_t req = {.svc_id = svc_id,
                       .p_primary_path = &path,
                       .pfn_cm_rep_cb = reply,
                       .pfn_cm_rej_cb = reject,
                       .h_qp = qps[0]};
    ib_api_status_t status = ib_cm_req(&req);
    if (status != IB_SUCCESS)
        return status;
    if (!comes_to(&answered, 1))
        return IB_TIMEOUT;
    return replied != IB_SUCCESS ? replied : rejected ? IB_REMOTE_ERROR : IB_SUCCESS;
}

static ib_api_status_t post_send(void)
{
    ib_local_ds_t ds = {(uintptr_t)&data[0], 8, lkey};
    ib_send_wr_t wr = {.num_ds = 1, .ds_array = &ds, .wr_type = WR_SEND};
    return ib_post_send(qps[0], &wr, NULL);
}

static ib_api_status_t both_complete(void)
{
    return comes_to(&completions, 2) ? IB_SUCCESS : IB_TIMEOUT;
}

static ib_api_status_t disconnect(void)
{
    ib_cm_dreq_t dreq = {.flags = IB_FLAGS_SYNC, .h_qp = qps[0]};
    ib_api_status_t status = ib_cm_dreq(&dreq);
    return status != IB_SUCCESS ? status : comes_to(&leaves, 1) ? IB_SUCCESS : IB_TIMEOUT;
}

static ib_api_status_t (*const steps[])(void) = {
    open_ca,      alloc_pd,  create_cq,     rearm_cq,   reg_mem,   create_qps,
    create_srq,   create_mw, modify_cq,     modify_qp,  post_recv, listen_there,
    connect_them, post_send, both_complete, disconnect,
};
enum { ALL = sizeof steps / sizeof *steps };

/* ---- what is expected of it ---- */

static const struct row {
    const char *settings;
    ib_api_status_t (*step)(void); /* which does not succeed; NULL: all do */
    ib_api_status_t status;
    int reason; /* of a Reject */
} rows[] = {
    {"only=create_comp_channel,every=1", open_ca, IB_INSUFFICIENT_RESOURCES, 0},
    {"only=alloc_pd,every=1", alloc_pd, IB_INSUFFICIENT_MEMORY, 0},
    {"only=create_cq,every=1", create_cq, IB_INSUFFICIENT_MEMORY, 0},
    {"only=req_notify_cq,every=1", rearm_cq, IB_ERROR, 0},
    {"only=reg_mr,every=1", reg_mem, IB_INSUFFICIENT_MEMORY, 0},
    {"only=create_qp,every=1", create_qps, IB_INSUFFICIENT_MEMORY, 0},
    {"only=create_srq,every=1", create_srq, IB_INSUFFICIENT_MEMORY, 0},
    {"only=alloc_mw,every=1", create_mw, IB_INSUFFICIENT_MEMORY, 0},
    {"only=resize_cq,every=1", modify_cq, IB_INSUFFICIENT_MEMORY, 0},
    {"only=modify_qp,every=1", modify_qp, IB_INSUFFICIENT_RESOURCES, 0},
    {"only=post_recv,every=1", post_recv, IB_INSUFFICIENT_RESOURCES, 0},
    {"only=create_event_channel,every=1", listen_there, IB_INSUFFICIENT_RESOURCES, 0},
    {"only=create_id,every=1", listen_there, IB_INSUFFICIENT_MEMORY, 0},
    {"only=bind_addr,every=1", listen_there, IB_INVALID_SETTING, 0},
    {"only=listen,every=1", listen_there, IB_INVALID_SETTING, 0},
    {"only=resolve_addr,every=1", connect_them, IB_INSUFFICIENT_MEMORY, 0},
    {"only=resolve_route,every=1", connect_them, IB_REMOTE_ERROR, 12},
    {"only=addr_error,every=1", connect_them, IB_REMOTE_ERROR, 12},
    {"only=route_error,every=1", connect_them, IB_REMOTE_ERROR, 12},
    {"only=connect,every=1", connect_them, IB_REMOTE_ERROR, 3},
    {"only=accept,every=1", connect_them, IB_INSUFFICIENT_MEMORY, 8},
    {"only=rejected,every=1", connect_them, IB_REMOTE_ERROR, 8},
    {"only=unreachable,every=1", connect_them, IB_REMOTE_ERROR, 4},
    {"only=connect_error,every=1", connect_them, IB_REMOTE_ERROR, 4},
    {"only=post_send,every=1", post_send, IB_INSUFFICIENT_RESOURCES, 0},
    {"only=get_cq_event,every=2", NULL, IB_SUCCESS, 0},
    {"only=get_cm_event,every=2", NULL, IB_SUCCESS, 0},
    {"only=spurious,every=1", NULL, IB_SUCCESS, 0},
    {"only=late,every=2", NULL, IB_SUCCESS, 0},
    {"only=burst,every=2", NULL, IB_SUCCESS, 0},
    {"only=addr_change,every=1", NULL, IB_SUCCESS, 0},
};

/* @return 0: as the row says; else what the process ends with, for the message */
static int program(const struct row *row)
{
    if (ib_open_al(&al) != IB_SUCCESS)
        return 100;
    for (size_t i = 0; i < ALL; i++) {
        ib_api_status_t status = steps[i]();
        if (status == IB_SUCCESS && steps[i] != row->step)
            continue;
        if (steps[i] != row->step || status != row->status || CL_NTOH16(rejected) != row->reason) {
            fprintf(stderr, "step %zu: %s, reason %d\n", i, ib_get_err_str(status),
                    CL_NTOH16(rejected));
            return 1;
        }
        break;
    }
    return ib_close_al(al) == IB_SUCCESS ? 0 : 101;
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char number[8], settings[100];
        int status;
        snprintf(number, sizeof number, "%zu", i);
        snprintf(settings, sizeof settings, "seed=1,%s", rows[i].settings);
        pid_t pid = fork();
        if (pid == 0) {
            setenv("ANYWARP_CHAOS", settings, 1);
            execl("/proc/self/exe", "al_chaos_test", number, NULL);
            _exit(102);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg("%s: status 0x%x", rows[i].settings, (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row)};
    if (argc == 2)
        return program(&rows[strtoul(argv[1], NULL, 10)]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults one by one, each in a process of its own, as the knobs are read once. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- calls ---- */

static struct {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct rdma_cm_id *id;
} own;

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr qp = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    assert_non_null(list);
    own.ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    own.pd = ibv_alloc_pd(own.ctx);
    qp.send_cq = qp.recv_cq = own.cq = ibv_create_cq(own.ctx, 4, NULL, NULL, 0);
    own.srq = ibv_create_srq(own.pd, &srq);
    own.qp = ibv_create_qp(own.pd, &qp);
    assert_int_equal(rdma_create_id(NULL, &own.id, NULL, RDMA_PS_TCP), 0);
    assert_non_null(own.qp);
}

/** -1 and errno, as a number. */
static int error_of(int result)
{
    return result == -1 ? errno : result;
}

static int query_device(void)
{
    struct ibv_device_attr attr;
    return ibv_query_device(own.ctx, &attr);
}

static int query_device_ex(void)
{
    struct ibv_device_attr_ex attr;
    return ibv_query_device_ex(own.ctx, NULL, &attr);
}

static int query_port(void)
{
    struct ibv_port_attr attr;
    return ibv_query_port(own.ctx, 1, &attr);
}

static int query_gid(void)
{
    union ibv_gid gid;
    return error_of(ibv_query_gid(own.ctx, 1, 0, &gid));
}

static int query_qp(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(own.qp, &attr, IBV_QP_STATE, &init);
}

static int modify_srq(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 1};
    return ibv_modify_srq(own.srq, &attr, IBV_SRQ_LIMIT);
}

static int rereg_mr(void)
{
    char memory[8];
    struct ibv_mr *mr = ibv_reg_mr(own.pd, memory, sizeof(memory), 0);
    errno = 0;
    int r = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
    int error = errno;
    assert_int_equal(r, IBV_REREG_MR_ERR_CMD);
    ibv_dereg_mr(mr);
    return error;
}

static int bind_mw(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(own.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = 1};
    int r = ibv_bind_mw(own.qp, mw, &bind);
    ibv_dealloc_mw(mw);
    return r;
}

static int get_devices(void)
{
    int n = 7;
    struct ibv_context **list = rdma_get_devices(&n);
    int error = errno;
    assert_null(list);
    assert_int_equal(n, 0);
    return error;
}

static int get_address(void)
{
    struct rdma_addrinfo *res = NULL;
    return error_of(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &res));
}

static int set_option(void)
{
    uint8_t tos = 0;
    return error_of(rdma_set_option(own.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
}

static int migrate(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    int r = error_of(rdma_migrate_id(own.id, channel));
    rdma_destroy_event_channel(channel);
    return r;
}

/* ---- connections ---- */

static struct pair pair;

static void connect_pair(void)
{
    struct pair_conf conf = {.send_wr = 8, .recv_wr = 8, .sge = 1};
    pair_open(&pair, &conf);
}

static int say(void)
{
    return side_post(&pair.a, &pair.b, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SIGNALED);
}

static int disconnect(void)
{
    connect_pair();
    return error_of(rdma_disconnect(pair.a.id));
}

static int send_status(void)
{
    connect_pair();
    assert_int_equal(say(), 0);
    return (int)side_poll(&pair.a).status;
}

static int recv_status(void)
{
    connect_pair();
    side_recv(&pair.b, 1, 0, 8);
    return (int)side_poll(&pair.b).status;
}

/** @return 0 if the end of the connection is heard */
static int end_heard(void)
{
    connect_pair();
    assert_int_equal(say(), 0);
    side_event(&pair.a, RDMA_CM_EVENT_DISCONNECTED);
    return 0;
}

static int nothing_arrives(void)
{
    connect_pair();
    side_recv(&pair.b, 1, 0, 8);
    assert_int_equal(say(), 0);
    side_poll_none(&pair.b, 300);
    return 0;
}

static int receives_in_order(void)
{
    connect_pair();
    for (uint64_t i = 1; i <= 4; i++)
        side_recv(&pair.b, i, 0, 8);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(say(), 0);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(side_poll(&pair.b).wr_id, i);
    for (uint64_t i = 1; i <= 4; i++)
        side_poll(&pair.a);
    struct ibv_recv_wr *bad, wr = {.num_sge = 9}; /* what is refused is so at once */
    assert_int_equal(ibv_post_recv(pair.b.id->qp, &wr, &bad), EINVAL);
    side_recv(&pair.b, 5, 0, 8); /* forgotten */
    pair_close(&pair, 1);
    return 0;
}

static const struct {
    const char *fault;
    int (*scene)(void);
    int result;
    bool objects; /* it uses the ones above */
} rows[] = {
    {"query_device", query_device, ENOMEM, true},
    {"query_device", query_device_ex, ENOMEM, true},
    {"query_port", query_port, ENOMEM, true},
    {"query_gid", query_gid, ENOMEM, true},
    {"query_qp", query_qp, ENOMEM, true},
    {"modify_srq", modify_srq, ENOMEM, true},
    {"rereg_mr", rereg_mr, ENOMEM, true},
    {"bind_mw", bind_mw, ENOMEM, true},
    {"get_devices", get_devices, ENOMEM, true},
    {"getaddrinfo", get_address, ENOMEM, true},
    {"set_option", set_option, ENOMEM, true},
    {"migrate_id", migrate, ENOMEM, true},
    {"disconnect", disconnect, ENOMEM, false},
    {"wc_loc_qp_op_err", send_status, IBV_WC_LOC_QP_OP_ERR, false},
    {"wc_mw_bind_err", send_status, IBV_WC_MW_BIND_ERR, false},
    {"wc_bad_resp_err", send_status, IBV_WC_BAD_RESP_ERR, false},
    {"wc_loc_access_err", send_status, IBV_WC_LOC_ACCESS_ERR, false},
    {"wc_rem_abort_err", send_status, IBV_WC_REM_ABORT_ERR, false},
    {"wc_resp_timeout_err", send_status, IBV_WC_RESP_TIMEOUT_ERR, false},
    {"wc_fatal_err", send_status, IBV_WC_FATAL_ERR, false},
    {"wc_general_err", send_status, IBV_WC_GENERAL_ERR, false},
    {"recv_loc_len_err", recv_status, IBV_WC_LOC_LEN_ERR, false},
    {"recv_loc_prot_err", recv_status, IBV_WC_LOC_PROT_ERR, false},
    {"recv_loc_qp_op_err", recv_status, IBV_WC_LOC_QP_OP_ERR, false},
    {"recv_rem_abort_err", recv_status, IBV_WC_REM_ABORT_ERR, false},
    {"fin_at_message", end_heard, 0, false},
    {"rst_at_message", end_heard, 0, false},
    {"silence_at_message", nothing_arrives, 0, false},
    {"late_recv", receives_in_order, 0, false},
};

static size_t row;

static void play(void **state)
{
    (void)state;
    if (rows[row].objects)
        make_objects();
    assert_int_equal(rows[row].scene(), rows[row].result);
}

/** In a child, whose exit status counts what failed. */
static int child(size_t i)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(play)};
    char text[100];
    snprintf(text, sizeof(text), "seed=1,every=1,only=%s", rows[i].fault);
    setenv("ANYWARP_CHAOS", text, 1);
    row = i;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static void each_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(i));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg("%s, row %zu: %#x", rows[i].fault, i, status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "by_number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WAIT_S 30
#define LOCAL  (IBV_ACCESS_LOCAL_WRITE)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_context *ctx;
struct ibv_pd *pd;

int ends_run(int (*tests)(void))
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    int failed = tests();
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    return failed;
}

void end_make(struct end *e)
{
    e->cq = ibv_create_cq(ctx, 32, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = e->cq, .recv_cq = e->cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    e->qp = ibv_create_qp(pd, &init);
    assert_non_null(e->qp);
    memset(e->data, 0, sizeof(e->data));
    e->mr = ibv_reg_mr(pd, e->data, sizeof(e->data), LOCAL | REMOTE);
    assert_non_null(e->mr);
}

void end_drop_qp(struct end *e)
{
    if (e->qp)
        assert_int_equal(ibv_destroy_qp(e->qp), 0);
    e->qp = NULL;
}

void end_drop(struct end *e)
{
    end_drop_qp(e);
    assert_int_equal(ibv_dereg_mr(e->mr), 0);
    assert_int_equal(ibv_destroy_cq(e->cq), 0);
}

/* ---- the way to RTS ---- */

void end_init(struct end *e)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = LOCAL | REMOTE};
    assert_int_equal(
        ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
}

int end_try_rtr(struct end *e, uint32_t peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.port_num = 1,
                    .is_global = 1,
                    .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 1}},
    };
    return ibv_modify_qp(e->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

void end_rtr(struct end *e, uint32_t peer)
{
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    assert_int_equal(end_try_rtr(e, peer, &gid), 0);
}

void end_rts(struct end *e, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .timeout = 14,
                               .retry_cnt = 1,
                               .rnr_retry = rnr_retry,
                               .max_rd_atomic = 1};
    assert_int_equal(ibv_modify_qp(e->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

void end_set_timeout(struct end *e, uint8_t timeout)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .timeout = timeout};
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_TIMEOUT), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

void end_move(struct end *e, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

enum ibv_qp_state end_state(struct end *e)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

void ends_connect(struct end *x, struct end *y)
{
    end_init(x);
    end_init(y);
    end_rtr(x, y->qp->qp_num);
    end_rtr(y, x->qp->qp_num);
    end_rts(x, 7);
    end_rts(y, 7);
}

/* ---- work ---- */

void end_receive(struct end *e)
{
    struct ibv_sge sge = {(uintptr_t)e->data, END_HALF, e->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

int end_post(struct end *from, struct end *to, enum ibv_wr_opcode op)
{
    struct ibv_sge sge = {(uintptr_t)from->data + END_HALF, 8, from->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = op,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = op,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = 0x1234};
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->data;
        wr.wr.atomic.rkey = to->mr->rkey;
        wr.wr.atomic.compare_add = 5;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)to->data;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    return ibv_post_send(from->qp, &wr, &bad);
}

struct ibv_wc end_next(struct end *e)
{
    struct timespec now, first;
    struct ibv_wc wc;
    int n;
    clock_gettime(CLOCK_MONOTONIC, &first);
    do {
        n = ibv_poll_cq(e->cq, 1, &wc);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (n == 0 && now.tv_sec - first.tv_sec < WAIT_S);
    assert_int_equal(n, 1);
    return wc;
}

void end_expect(struct end *e, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = end_next(e);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.qp_num, e->qp->qp_num);
}

void end_send_once(struct end *from, struct end *to, uint64_t value)
{
    end_receive(to);
    from->data[END_HALF / 8] = value;
    assert_int_equal(end_post(from, to, IBV_WR_SEND), 0);
    end_expect(to, 77, IBV_WC_SUCCESS);
    end_expect(from, IBV_WR_SEND, IBV_WC_SUCCESS);
    assert_true(to->data[0] == value);
}

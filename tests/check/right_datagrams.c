/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair for datagrams, used as it may be: reset while work is outstanding, brought out of
 * SQE, moved into error by the program itself. Nothing is found.
 */
#include "wrong/kit.h"

#define QKEY 0x1234u

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static char buffer[8192];

static void go(enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1, .qkey = QKEY};
    int mask = IBV_QP_STATE;
    if (to == IBV_QPS_INIT)
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    if (to == IBV_QPS_RTS && qp->state == IBV_QPS_RTR)
        mask |= IBV_QP_SQ_PSN;
    must(!ibv_modify_qp(qp, &attr, mask));
}

static void ready(void)
{
    go(IBV_QPS_INIT);
    go(IBV_QPS_RTR);
    go(IBV_QPS_RTS);
}

static void receive(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = 4096, .lkey = mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    must(!ibv_post_recv(qp, &wr, &bad));
}

/** To itself. */
static void post(uint32_t length)
{
    struct ibv_sge sge = {.addr = (uintptr_t)buffer + 4096, .length = length, .lkey = mr->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = QKEY;
    must(!ibv_post_send(qp, &wr, &bad));
}

static enum ibv_wc_status next(void)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    return wc.status;
}

static void ping(void)
{
    receive();
    post(8);
    must(next() == IBV_WC_SUCCESS && next() == IBV_WC_SUCCESS);
}

static void open_all(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    must(list && *list);
    struct ibv_context *ctx = ibv_open_device(*list);
    must(ctx);
    ibv_free_device_list(list);
    must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0)));
    must((mr = ibv_reg_mr(pd, buffer, sizeof(buffer) - 1, IBV_ACCESS_LOCAL_WRITE)));
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {DEPTH, DEPTH, 1, 1, 0}};
    must((qp = ibv_create_qp(pd, &init)));
    struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
    must(!ibv_query_gid(ctx, 1, 0, &attr.grh.dgid) && (ah = ibv_create_ah(pd, &attr)));
}

int main(void)
{
    open_all();
    struct ibv_context *ctx = pd->context;
    for (int round = 0; round < 4; round++) {
        ready();
        ping();
        for (int i = 0; i < DEPTH; i++)
            receive();
        go(IBV_QPS_RESET); /* which takes what is posted with it */
    }
    ready();
    post(4096); /* beyond the region */
    must(next() != IBV_WC_SUCCESS && qp->state == IBV_QPS_SQE);
    must(ibv_poll_cq(cq, 1, &(struct ibv_wc){0}) == 0);
    must(ibv_poll_cq(cq, 1, &(struct ibv_wc){0}) == 0);
    go(IBV_QPS_RTS);
    ping();
    receive();
    go(IBV_QPS_ERR);
    must(next() == IBV_WC_WR_FLUSH_ERR);
    go(IBV_QPS_RESET);
    ready();
    ping();
    must(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr));
    must(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
    return 0;
}

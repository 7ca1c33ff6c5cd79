/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

/* An address handle that another thread, or this one, destroyed too early. */
int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    must(list && *list);
    struct ibv_context *ctx = ibv_open_device(*list);
    must(ctx);
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
    must(qp && !ibv_query_gid(ctx, 1, 0, &attr.grh.dgid));
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    must(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    to.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(qp, &to, IBV_QP_STATE));
    to.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN));
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = 1;
    must(!ibv_destroy_ah(ah));
    must(ibv_post_send(qp, &wr, &bad)); /* wrong */
    must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
    must(!ibv_close_device(ctx));
    return 0;
}

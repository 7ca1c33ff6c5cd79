/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    struct ibv_mr *sink = ibv_reg_mr(a.pd, a.buffer, BYTES, IBV_ACCESS_LOCAL_WRITE);
    must(sink);
    struct ibv_sge sge = {.addr = (uintptr_t)a.buffer, .length = 8, .lkey = sink->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
                             };
    must(!ibv_post_send(a.qp, &wr, &bad)); /* wrong */
    wait_for(&a);
    must(!ibv_dereg_mr(sink));
    ends_close();
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    depth = 0;
    ends_open();
    struct ibv_sge sge = {.addr = (uintptr_t)a.buffer, .length = 8, .lkey = a.mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
                             };
    must(!ibv_post_send(a.qp, &wr, &bad)); /* wrong */
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open(); /* one Read at a time: the last waits until all others are answered */
    struct ibv_sge sge = {.addr = (uintptr_t)a.buffer, .length = BYTES, .lkey = a.mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
                             };
    for (int i = 0; i < DEPTH; i++)
        must(!ibv_post_send(a.qp, &wr, &bad));
    must(!ibv_dereg_mr(a.mr)); /* wrong */
    return 0;
}

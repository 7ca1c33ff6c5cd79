/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    receive_it(&b, 1);
    struct ibv_send_wr *bad, wr = {
                                 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .imm_data = 7,
                             };
    must(!ibv_post_send(a.qp, &wr, &bad)); /* wrong */
    wait_for(&a);
    wait_for(&b);
    ends_close();
    return 0;
}

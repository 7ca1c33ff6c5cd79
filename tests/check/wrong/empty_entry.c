/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    ends_open();
    struct ibv_sge sge[] = {{.addr = (uintptr_t)b.buffer, .length = 8, .lkey = b.mr->lkey}, {0}};
    struct ibv_recv_wr *bad, wr = {.sg_list = sge, .num_sge = 2};
    must(!ibv_post_recv(b.qp, &wr, &bad)); /* wrong */
    send_it(&a, 8, IBV_SEND_SIGNALED);
    wait_for(&a);
    wait_for(&b);
    ends_close();
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct ibv_wc wc;
    ends_open();
    receive_it(&a, 1);
    rdma_disconnect(b.id);
    while (ibv_poll_cq(a.cq, 1, &wc) == 0)
        ;
    ibv_poll_cq(a.cq, 1, &wc);
    receive_it(&a, 1); /* wrong */
    ends_close();
    return 0;
}

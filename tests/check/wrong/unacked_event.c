/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct ibv_cq *cq;
    void *context;
    alarm(3);
    ends_open();
    receive_it(&b, 1);
    must(!ibv_req_notify_cq(b.cq, 0));
    send_it(&a, 1, IBV_SEND_SIGNALED);
    must(!ibv_get_cq_event(b.channel, &cq, &context));
    wait_for(&b);
    rdma_destroy_qp(b.id);
    return ibv_destroy_cq(b.cq); /* wrong */
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *context;
    alarm(1); /* nobody sends */
    ends_open();
    receive_it(&a, 1);
    while (ibv_poll_cq(a.cq, 1, &wc) > 0)
        ;
    must(!ibv_req_notify_cq(a.cq, 0));
    return ibv_get_cq_event(a.channel, &cq, &context); /* wrong */
}

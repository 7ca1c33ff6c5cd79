/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct ibv_cq *cq;
    void *context;
    alarm(3);
    ends_open();
    receive_it(&b, 1);
    send_it(&a, 1, IBV_SEND_SIGNALED);
    return ibv_get_cq_event(b.channel, &cq, &context); /* wrong: no stack tells of it */
}

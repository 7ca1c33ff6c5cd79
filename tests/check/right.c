/* SPDX-License-Identifier: BSD-2-Clause */
/* What the wrong programs do, done right: nothing is found. */
#include "wrong/kit.h"

static void sleep_right(struct end *e)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    must(!ibv_req_notify_cq(e->cq, 0));
    while (ibv_poll_cq(e->cq, 1, &wc) == 0) {
        must(!ibv_get_cq_event(e->channel, &cq, &context));
        ibv_ack_cq_events(cq, 1);
        must(!ibv_req_notify_cq(cq, 0));
    }
    must(wc.status == IBV_WC_SUCCESS);
}

int main(void)
{
    cqe = 2 * DEPTH;
    must(!ibv_fork_init());
    ends_open();
    for (int i = 0; i < DEPTH / 2; i++)
        receive_it(&b, BYTES);
    for (int i = 1; i <= DEPTH / 2; i++) {
        if (i % 2)
            a.buffer[0] = (char)i; /* all that was posted is completed */
        send_it(&a, i % 2 ? 1 : BYTES, i % 2 ? 0 : IBV_SEND_SIGNALED);
        if (i % 2 == 0)
            wait_for(&a);
        sleep_right(&b);
    }
    read_it(a.mr, 8);
    wait_for(&a);
    receive_it(&a, BYTES); /* a region that it names goes after the QP */
    ends_close();
    return 0;
}

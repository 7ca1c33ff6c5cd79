/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct rdma_cm_event *event;
    ends_open();
    must(!rdma_disconnect(b.id));
    must(!rdma_get_cm_event(a.events, &event));
    must(!rdma_ack_cm_event(event));
    must(rdma_ack_cm_event(event)); /* wrong */
    ends_close();
    return 0;
}

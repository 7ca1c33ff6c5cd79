/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

int main(void)
{
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_cm_id *id;
    must(events && !rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
    must(!rdma_destroy_id(id));
    must(rdma_destroy_id(id)); /* wrong */
    rdma_destroy_event_channel(events);
    return 0;
}

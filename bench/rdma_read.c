/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_read poll|block BYTES: RDMA Reads one after another from a process that sleeps for good; the
 * client polls, or sleeps until an event of the CQ. Prints half of the round trip.
 */
#include "kit.h"
#include "rdma.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void serve(struct rdma_end *e)
{
    rdma_take(e, 1);
}

static void await_event(struct rdma_end *e)
{
    struct ibv_cq *cq;
    void *context;
    KIT_CHECK(ibv_get_cq_event(e->channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
}

static void reads(struct rdma_end *e, struct rdma_cm_id *id, bool block, struct kit_trips *trips,
                  uint64_t ns)
{
    uint64_t start = kit_ns(), before = start, now = start;
    while (now - start < ns) {
        if (block)
            KIT_CHECK(ibv_req_notify_cq(e->cq, 0) == 0);
        rdma_post(e, id, IBV_WR_RDMA_READ, 0, (uint32_t)e->bytes, 0);
        if (block)
            await_event(e);
        rdma_wait(e->cq);
        now = kit_ns();
        kit_trips_add(trips, now - before);
        before = now;
    }
}

int main(int argc, char **argv)
{
    struct kit_trips trips;
    if (argc != 3 || (strcmp(argv[1], "poll") != 0 && strcmp(argv[1], "block") != 0)) {
        fprintf(stderr, "usage: rdma_read poll|block BYTES\n");
        return 2;
    }
    bool block = argv[1][0] == 'b';
    struct rdma_end e = {.bytes = kit_number(argv[2]), .cqe = 64};
    rdma_start(&e, serve, NULL);
    struct rdma_cm_id *id = rdma_join(&e);
    kit_trips_init(&trips);
    reads(&e, id, block, &trips, kit_duration() / 5);
    trips.n = 0;
    reads(&e, id, block, &trips, kit_duration());
    kit_trips_print(&trips);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_pingpong CONNECTIONS [bulk]: 64 bytes there and back by Sends on one of so many connections,
 * all of one CQ, which both ends poll. Prints half of the round trip. With "bulk" once more while
 * another connection of the same CQ is kept full of RDMA Writes of 1 MB: what that added to half of
 * the round trip, and how long a batch of 256 KB of the bulk lasted.
 */
#include "kit.h"
#include "rdma.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BYTES      64
#define BULK       (1 << 20)
#define BULK_DEPTH 8
#define BATCH      (256 * 1024)

enum { PING = 1, STREAM = 2 }; /* wr_id of the sends */

static void serve(struct rdma_end *e)
{
    rdma_take(e, *(unsigned long *)e->arg);
    for (;;) {
        struct ibv_wc wc = rdma_wait(e->cq);
        if (!(wc.opcode & IBV_WC_RECV))
            continue;
        struct rdma_cm_id *id = (struct rdma_cm_id *)(uintptr_t)wc.wr_id;
        rdma_post_recv(e, id, 0, BYTES);
        rdma_post(e, id, IBV_WR_SEND, 0, BYTES, PING);
    }
}

struct client {
    struct rdma_end end;
    struct rdma_cm_id *ping, *bulk;
    struct kit_trips trips;
    uint64_t writes;
};

/** One completion. @return whether it is that of the answer */
static bool step(struct client *c, bool stream)
{
    struct ibv_wc wc = rdma_wait(c->end.cq);
    if (wc.opcode & IBV_WC_RECV)
        return true;
    if (wc.wr_id == STREAM) {
        c->writes++;
        if (stream)
            rdma_post(&c->end, c->bulk, IBV_WR_RDMA_WRITE, 0, BULK, STREAM);
    }
    return false;
}

/** For so long, and until some of the stream is done. @return nanoseconds that it took */
static uint64_t pings(struct client *c, bool stream, uint64_t ns)
{
    uint64_t start = kit_ns(), before = start, now = start;
    c->trips.n = 0;
    c->writes = 0;
    while (now - start < ns || (stream && c->writes < BULK_DEPTH)) {
        rdma_post_recv(&c->end, c->ping, 0, BYTES);
        rdma_post(&c->end, c->ping, IBV_WR_SEND, 0, BYTES, PING);
        while (!step(c, stream))
            ;
        now = kit_ns();
        kit_trips_add(&c->trips, now - before);
        before = now;
    }
    return now - start;
}

static void beside_bulk(struct client *c)
{
    double alone = kit_trips_half_us(&c->trips, 0.5);
    for (int i = 0; i < BULK_DEPTH; i++)
        rdma_post(&c->end, c->bulk, IBV_WR_RDMA_WRITE, 0, BULK, STREAM);
    pings(c, true, kit_duration() / 5);
    double ns = (double)pings(c, true, kit_duration());
    double rate = (double)(c->writes * BULK) / ns;
    double added = kit_trips_half_us(&c->trips, 0.5) - alone;
    printf("added %.3f us\n", added > 0 ? added : 0);
    printf("batch %.3f us\n", BATCH / rate / 1e3);
    printf("bulk %.4f GB/s\n", rate);
}

int main(int argc, char **argv)
{
    bool bulk = argc == 3 && strcmp(argv[2], "bulk") == 0;
    if (argc != 2 && !bulk) {
        fprintf(stderr, "usage: rdma_pingpong CONNECTIONS [bulk]\n");
        return 2;
    }
    unsigned long connections = kit_number(argv[1]) + bulk;
    struct client c = {.end = {.bytes = BULK, .cqe = 65536}};
    rdma_start(&c.end, serve, &connections);
    for (unsigned long i = 0; i < connections; i++) {
        c.bulk = c.ping;
        c.ping = rdma_join(&c.end);
    }
    kit_trips_init(&c.trips);
    pings(&c, false, kit_duration() / 5);
    pings(&c, false, kit_duration());
    kit_trips_print(&c.trips);
    if (bulk)
        beside_bulk(&c);
    return 0;
}

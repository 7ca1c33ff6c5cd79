/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_connect: connections one after another: id, resolution, QP, connect, established,
 * disconnect, disconnected, destroyed. Prints how many a second.
 */
#include "kit.h"
#include "rdma.h"

#include <stdio.h>

static void serve(struct rdma_end *e)
{
    rdma_take_and_drop(e);
}

int main(void)
{
    struct rdma_end e = {.bytes = 4096, .cqe = 1024};
    rdma_start(&e, serve, NULL);
    for (int i = 0; i < 10; i++)
        rdma_leave(&e, rdma_join(&e));
    uint64_t n = 0, now, start = kit_ns();
    do {
        rdma_leave(&e, rdma_join(&e));
        n++;
        now = kit_ns();
    } while (now - start < kit_duration());
    printf("rate %.4f k/s\n", (double)n / (double)(now - start) * 1e6);
    return 0;
}

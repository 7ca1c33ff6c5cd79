/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_threads THREADS: each thread has a CQ and a connection of its own, keeps it full of RDMA
 * Writes of 64 bytes and polls. Prints the rate of all of them.
 */
#include "kit.h"
#include "rdma.h"

#include <pthread.h>
#include <stdio.h>

#define BYTES 64

struct writer {
    pthread_t thread;
    struct rdma_end end;
    struct rdma_cm_id *id;
    double rate; /* Writes a nanosecond */
};

static void serve(struct rdma_end *e)
{
    rdma_take(e, *(unsigned long *)e->arg);
}

static void *write_all(void *arg)
{
    struct writer *w = arg;
    uint64_t now, n = 0, start = kit_ns();
    for (int i = 0; i < RDMA_WRS; i++)
        rdma_post(&w->end, w->id, IBV_WR_RDMA_WRITE, 0, BYTES, 0);
    do {
        for (int i = 0; i < RDMA_WRS; i++, n++) {
            rdma_wait(w->end.cq);
            rdma_post(&w->end, w->id, IBV_WR_RDMA_WRITE, 0, BYTES, 0);
        }
        now = kit_ns();
    } while (now - start < kit_duration());
    w->rate = (double)n / (double)(now - start);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: rdma_threads THREADS\n");
        return 2;
    }
    unsigned long threads = kit_number(argv[1]);
    struct rdma_end e = {.bytes = 4096, .cqe = 64};
    struct writer *w = kit_pages(threads * sizeof(*w));
    double rate = 0;
    rdma_start(&e, serve, &threads);
    for (unsigned long t = 0; t < threads; t++) {
        if (t > 0)
            rdma_new_cq(&e);
        w[t].id = rdma_join(&e);
        w[t].end = e;
    }
    for (unsigned long t = 0; t < threads; t++)
        KIT_CHECK(pthread_create(&w[t].thread, NULL, write_all, &w[t]) == 0);
    for (unsigned long t = 0; t < threads; t++) {
        KIT_CHECK(pthread_join(w[t].thread, NULL) == 0);
        rate += w[t].rate;
    }
    printf("rate %.4f M/s\n", rate * 1e3);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_poll QPS [THREADS]: what ibv_poll_cq() costs on an empty CQ that QPS connected QPs use, in
 * nanoseconds; each thread has a CQ of its own with as many QPs.
 */
#include "kit.h"
#include "rdma.h"

#include <pthread.h>
#include <stdio.h>

#define BLOCK 1000

struct poller {
    pthread_t thread;
    struct ibv_cq *cq;
    double ns;
};

static void serve(struct rdma_end *e)
{
    rdma_take(e, *(unsigned long *)e->arg);
}

static void *poll_empty(void *arg)
{
    struct poller *p = arg;
    struct ibv_wc wc;
    uint64_t now, polls = 0, start = kit_ns();
    do {
        for (int i = 0; i < BLOCK; i++)
            KIT_CHECK(ibv_poll_cq(p->cq, 1, &wc) == 0);
        polls += BLOCK;
        now = kit_ns();
    } while (now - start < kit_duration());
    p->ns = (double)(now - start) / (double)polls;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: rdma_poll QPS [THREADS]\n");
        return 2;
    }
    unsigned long qps = kit_number(argv[1]);
    unsigned long threads = argc == 3 ? kit_number(argv[2]) : 1;
    unsigned long all = qps * threads;
    struct rdma_end e = {.bytes = 4096, .cqe = 4096};
    struct poller *p = kit_pages(threads * sizeof(*p));
    double sum = 0;
    rdma_start(&e, serve, &all);
    for (unsigned long t = 0; t < threads; t++) {
        if (t > 0)
            rdma_new_cq(&e);
        for (unsigned long i = 0; i < qps; i++)
            rdma_join(&e);
        p[t].cq = e.cq;
    }
    for (unsigned long t = 0; t < threads; t++)
        KIT_CHECK(pthread_create(&p[t].thread, NULL, poll_empty, &p[t]) == 0);
    for (unsigned long t = 0; t < threads; t++) {
        KIT_CHECK(pthread_join(p[t].thread, NULL) == 0);
        sum += p[t].ns;
    }
    printf("poll %.1f ns\n", sum / (double)threads);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with four mistakes that calls which fail bring to light, for tests/apps/sweep.sh: one
 * crashes it, one has it wait for ever, two leave objects or a descriptor.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REGIONS 3

static char memory[REGIONS][64];

static int regions(struct ibv_pd *pd)
{
    struct ibv_mr *mr[REGIONS];
    for (int i = 0; i < REGIONS; i++)
        if (!(mr[i] = ibv_reg_mr(pd, memory[i], sizeof(memory[i]), 0)))
            return -1; /* those before are left */
    for (int i = 0; i < REGIONS; i++)
        ibv_dereg_mr(mr[i]);
    return 0;
}

static int queues(struct ibv_context *ctx, struct ibv_pd *pd)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    attr.cap.max_send_wr = attr.cap.max_recv_wr = (uint32_t)cq->cqe; /* there may be none */
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    while (!qp)
        pause(); /* nobody wakes it */
    ibv_destroy_qp(qp);
    return ibv_destroy_cq(cq);
}

static int channel(struct ibv_context *ctx)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
    struct ibv_cq *cq = channel ? ibv_create_cq(ctx, 4, NULL, channel, 0) : NULL;
    if (!cq)
        return -1; /* the channel is left */
    return ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel);
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
    if (list)
        ibv_free_device_list(list);
    if (!ctx)
        return 1;
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    int r = pd ? regions(pd) : -1;
    r = r ? r : queues(ctx, pd);
    r = r ? r : channel(ctx);
    if (pd)
        ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    fprintf(stderr, r ? "prey: failed\n" : "prey: fine\n");
    return r != 0;
}

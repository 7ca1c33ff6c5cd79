/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several clients count on one number in the server's memory, by atomic Fetch and Add: no addition
 * is lost, though the server has no lock and does nothing.
 *
 *     cc counter.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o counter
 *     counter [-a ADDRESS] [-p PORT] [-c CLIENTS]           ends when all have come and gone
 *     counter [-p PORT] [-n TIMES] [-i INCREMENT] SERVER
 *
 * At last each client says by a Send how much it has added; the server compares the sum of that
 * with the number. The number is 64 bits wide, in the byte order of the server.
 */
#include "common.h"

#include <endian.h>
#include <err.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char usage_text[] = "counter [-a address] [-p port] [-c clients]\n"
                          "       counter [-p port] [-n times] [-i increment] server\n";

struct client {
    struct rdma_cm_id *id;
    struct ibv_mr *counter_mr, *added_mr;
    uint64_t added; /* network byte order */
};

static void welcome(struct client *client, struct rdma_cm_id *id, uint64_t *counter)
{
    client->id = id;
    client->counter_mr = register_memory(id, counter, sizeof *counter,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    client->added_mr =
        register_memory(id, &client->added, sizeof client->added, IBV_ACCESS_LOCAL_WRITE);
    post_receive(id, client->added_mr);
    if (!accept_client(id, 1, client->counter_mr))
        exit(1);
}

/* What the client has added, when it has said so. */
static uint64_t farewell(struct client *client)
{
    struct ibv_wc wc = await_received(client->id, "waiting for what a client has added");
    if (wc.byte_len != sizeof client->added)
        errx(1, "a client speaks of something else");
    rdma_disconnect(client->id);
    ibv_dereg_mr(client->added_mr);
    ibv_dereg_mr(client->counter_mr);
    rdma_destroy_ep(client->id);
    return be64toh(client->added);
}

static void serve(struct rdma_cm_id *listener, size_t count)
{
    static alignas(8) uint64_t counter; /* atomics need aligned memory */
    struct client *clients = allocate(count * sizeof *clients);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        welcome(&clients[i], next_client(listener), &counter);
    for (size_t i = 0; i < count; i++)
        sum += farewell(&clients[i]);
    free(clients);
    printf("%zu clients have added %llu; the counter is at %llu\n", count, (unsigned long long)sum,
           (unsigned long long)counter);
    if (sum != counter)
        errx(1, "the counter is wrong");
}

static void run(struct rdma_cm_id *id, unsigned long times, unsigned long increment)
{
    uint64_t before = 0, last = 0;
    struct ibv_mr *mr = register_memory(id, &before, sizeof before, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {(uintptr_t)&before, sizeof before, mr->lkey};
    connect_to_server(id, 1, NULL, 0);
    struct region counter = region_of_server(id, sizeof(uint64_t));
    struct ibv_send_wr *bad, add = {
                                 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr.atomic = {.remote_addr = counter.addr,
                                               .rkey = counter.rkey,
                                               .compare_add = increment},
                             };
    for (unsigned long i = 0; i < times; i++) {
        if (rdma_seterrno(ibv_post_send(id->qp, &add, &bad)))
            err(1, "ibv_post_send: Fetch and Add");
        await_sent(id, "Fetch and Add");
        /* The answer is what was there before: own additions are in it, those of others may be. */
        if (i > 0 && before - last < increment)
            errx(1, "an addition was lost: %llu after %llu", (unsigned long long)before,
                 (unsigned long long)last);
        last = before;
    }
    printf("added %lu times %lu; the counter came to %llu\n", times, increment,
           (unsigned long long)(last + increment));

    before = htobe64((uint64_t)times * increment);
    post_send(id, mr, sizeof before);
    await_sent(id, "what was added");
    rdma_disconnect(id);
    ibv_dereg_mr(mr);
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const char *address = "::", *port = DEFAULT_PORT;
    unsigned long clients = 1, times = 1000, increment = 1;
    for (int c; (c = getopt(argc, argv, "a:c:i:n:p:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'c')
            clients = number(optarg, 1, 10000);
        else if (c == 'i')
            increment = number(optarg, 1, 1000000000);
        else if (c == 'n')
            times = number(optarg, 1, 1000000000);
        else if (c == 'p')
            port = optarg;
        else
            usage();
    }

    if (optind == argc) {
        struct rdma_cm_id *listener = listen_on(address, port, &cap);
        serve(listener, clients);
        rdma_destroy_ep(listener);
    } else if (optind == argc - 1) {
        struct rdma_cm_id *id = resolve(argv[optind], port, &cap);
        run(id, times, increment);
        rdma_destroy_ep(id);
    } else {
        usage();
    }
    return 0;
}

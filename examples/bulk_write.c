/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fills the server's memory by RDMA Writes, many under way at a time, and prints the throughput.
 *
 *     cc bulk_write.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o bulk_write
 *     bulk_write [-a ADDRESS] [-p PORT]
 *     bulk_write [-p PORT] [-n COUNT] [-s SIZE] [-d DEPTH] SERVER
 *
 * The server's memory has DEPTH slots of SIZE bytes, and Write i goes to slot i modulo DEPTH. The
 * server sleeps meanwhile. A Write says nothing at its target, so a Send comes last: what was
 * written before it on the same connection is in place when it is received. Then the server looks
 * whether each slot holds the last of its Writes.
 */
#include "common.h"

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZE  (64UL << 20)
#define MAX_DEPTH 256UL
#define MAX_BYTES (1UL << 30) /* of all slots */

const char usage_text[] = "bulk_write [-a address] [-p port]\n"
                          "       bulk_write [-p port] [-n count] [-s size] [-d depth] server\n";

/* The client's plan, in the private data of its request. Network byte order. */
struct plan {
    uint64_t count;
    uint32_t size, depth;
};

/* A slot begins with the number of the Write; the number gives the other bytes, too. */
static void fill(char *slot, size_t size, uint64_t i)
{
    uint64_t be = htobe64(i);
    memset(slot, (int)(i % 251), size);
    memcpy(slot, &be, sizeof be);
}

static bool is_filled(const char *slot, size_t size, uint64_t i)
{
    uint64_t be = htobe64(i);
    const char *rest = slot + sizeof be;
    if (memcmp(slot, &be, sizeof be) != 0)
        return false;
    /* All bytes of the rest are equal if it equals itself moved by one. */
    size -= sizeof be;
    return size == 0 ||
           ((unsigned char)rest[0] == i % 251 && memcmp(rest, rest + 1, size - 1) == 0);
}

/* @return whether the client's plan can be carried out here */
static bool read_plan(const struct rdma_cm_id *id, struct plan *plan)
{
    if (!id->event || id->event->param.conn.private_data_len < sizeof *plan)
        return false;
    memcpy(plan, id->event->param.conn.private_data, sizeof *plan);
    plan->count = be64toh(plan->count);
    plan->size = ntohl(plan->size);
    plan->depth = ntohl(plan->depth);
    return plan->size >= sizeof(uint64_t) && plan->size <= MAX_SIZE && plan->depth >= 1 &&
           plan->depth <= MAX_DEPTH && (uint64_t)plan->size * plan->depth <= MAX_BYTES;
}

static void check_slots(const char *slots, const struct plan *plan)
{
    for (uint32_t slot = 0; slot < plan->depth && slot < plan->count; slot++) {
        uint64_t last = plan->count - 1 - (plan->count - 1 - slot) % plan->depth;
        if (!is_filled(slots + (size_t)slot * plan->size, plan->size, last))
            errx(1, "slot %u does not hold Write %llu", slot, (unsigned long long)last);
    }
    printf("%llu Writes arrived\n", (unsigned long long)plan->count);
}

static void serve(struct rdma_cm_id *id)
{
    struct plan plan;
    char done;
    if (!read_plan(id, &plan)) {
        rdma_reject(id, NULL, 0);
        errx(1, "the client does not say what it will write");
    }
    size_t bytes = (size_t)plan.size * plan.depth;
    char *slots = allocate(bytes);
    struct ibv_mr *slots_mr =
        register_memory(id, slots, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_mr *done_mr = register_memory(id, &done, sizeof done, IBV_ACCESS_LOCAL_WRITE);
    post_receive(id, done_mr);
    if (!accept_client(id, 0, slots_mr))
        exit(1);
    await_received(id, "waiting for the end of the Writes");
    check_slots(slots, &plan);

    rdma_disconnect(id);
    ibv_dereg_mr(done_mr);
    ibv_dereg_mr(slots_mr);
    free(slots);
}

static void run(struct rdma_cm_id *id, uint64_t count, size_t size, uint64_t depth)
{
    struct plan plan = {htobe64(count), htonl((uint32_t)size), htonl((uint32_t)depth)};
    char *slots = allocate(size * depth);
    struct ibv_mr *mr = register_memory(id, slots, size * depth, 0);
    connect_to_server(id, 0, &plan, sizeof plan);
    struct region target = region_of_server(id, size * depth);

    /* A slot is free again when its Write has completed: completions come in posting order. */
    double start = now();
    for (uint64_t i = 0; i < count + depth; i++) {
        if (i >= depth)
            await_sent(id, "RDMA Write");
        if (i >= count)
            continue;
        size_t offset = i % depth * size;
        fill(slots + offset, size, i);
        if (rdma_post_write(id, NULL, slots + offset, size, mr, IBV_SEND_SIGNALED,
                            target.addr + offset, target.rkey))
            err(1, "rdma_post_write");
    }
    post_send(id, mr, 1);
    await_sent(id, "end of the Writes");
    double seconds = now() - start;
    printf("%llu Writes of %zu bytes: %.3f s, %.1f MB/s\n", (unsigned long long)count, size,
           seconds, (double)count * (double)size / seconds / 1e6);

    rdma_disconnect(id);
    ibv_dereg_mr(mr);
    free(slots);
}

int main(int argc, char *argv[])
{
    const char *address = "::", *port = DEFAULT_PORT;
    uint64_t count = 1000, depth = 16;
    size_t size = 65536;
    for (int c; (c = getopt(argc, argv, "a:d:n:p:s:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'd')
            depth = number(optarg, 1, MAX_DEPTH);
        else if (c == 'n')
            count = number(optarg, 1, 1000000000);
        else if (c == 'p')
            port = optarg;
        else if (c == 's')
            size = number(optarg, sizeof(uint64_t), MAX_SIZE);
        else
            usage();
    }
    if (size * depth > MAX_BYTES) {
        warnx("%lu slots of %zu bytes are more than 1 GiB", (unsigned long)depth, size);
        usage();
    }

    struct ibv_qp_cap cap = {
        .max_send_wr = (uint32_t)depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    if (optind == argc) {
        struct rdma_cm_id *listener = listen_on(address, port, &cap);
        struct rdma_cm_id *id = next_client(listener);
        serve(id);
        rdma_destroy_ep(id);
        rdma_destroy_ep(listener);
    } else if (optind == argc - 1) {
        struct rdma_cm_id *id = resolve(argv[optind], port, &cap);
        run(id, count, size, depth);
        rdma_destroy_ep(id);
    } else {
        usage();
    }
    return 0;
}

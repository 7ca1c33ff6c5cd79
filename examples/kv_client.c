/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gets from and puts into a kv_server.
 *
 *     cc kv_client.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o kv_client
 *     kv_client [-p PORT] [-n TIMES] SERVER put KEY VALUE
 *     kv_client [-p PORT] [-n TIMES] SERVER get KEY
 */
#include "common.h"
#include "kv.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTEMPTS 10000 /* to read an entry while nobody writes it */
#define PAUSE_US 100

const char usage_text[] = "kv_client [-p port] [-n times] server put key value\n"
                          "       kv_client [-p port] [-n times] server get key\n";

static struct kv_entry entry;
static struct ibv_mr *entry_mr;
static unsigned long torn; /* reads of entries that were being written */

static void read_entry(struct rdma_cm_id *id, const struct region *table, size_t index)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (rdma_post_read(id, NULL, &entry, sizeof entry, entry_mr, IBV_SEND_SIGNALED,
                           table->addr + index * sizeof entry, table->rkey))
            err(1, "rdma_post_read");
        await_sent(id, "get");
        if (kv_is_whole(&entry))
            return;
        torn++;
        usleep(PAUSE_US); /* who writes it may have lost its CPU */
    }
    errx(1, "get: the entry was not whole in %d reads", ATTEMPTS);
}

/* @return whether the key is there; its entry is read */
static bool get(struct rdma_cm_id *id, const struct region *table, const char *key)
{
    for (size_t i = 0; i < KV_PROBES; i++) {
        read_entry(id, table, kv_index(key, i));
        if (!entry.version)
            return false;
        if (strncmp(entry.key, key, KV_KEY) == 0)
            return true;
    }
    return false;
}

static void get_times(struct rdma_cm_id *id, const char *key, unsigned long times)
{
    struct region table = region_of_server(id, KV_ENTRIES * sizeof(struct kv_entry));
    for (unsigned long i = 0; i < times; i++) {
        if (!get(id, &table, key))
            errx(1, "%s: no such key", key);
        printf("%.*s\n", KV_VALUE, entry.value);
    }
    if (times > 1)
        fprintf(stderr, "%lu gets, %lu reads of an entry that was being written\n", times, torn);
}

static void put_times(struct rdma_cm_id *id, const char *key, const char *value,
                      unsigned long times)
{
    struct kv_put put = {0};
    struct kv_reply reply;
    struct ibv_mr *put_mr = register_memory(id, &put, sizeof put, 0);
    struct ibv_mr *reply_mr = register_memory(id, &reply, sizeof reply, IBV_ACCESS_LOCAL_WRITE);
    memcpy(put.key, key, strlen(key));
    memcpy(put.value, value, strlen(value));
    for (unsigned long i = 0; i < times; i++) {
        post_receive(id, reply_mr);
        post_send(id, put_mr, sizeof put);
        struct ibv_wc wc = await_received(id, "put");
        await_sent(id, "put");
        if (wc.byte_len != sizeof reply)
            errx(1, "put: the server speaks of something else");
        if (!reply.version)
            errx(1, "%s: no room for this key", key);
    }
    ibv_dereg_mr(reply_mr);
    ibv_dereg_mr(put_mr);
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const char *port = DEFAULT_PORT;
    unsigned long times = 1;
    for (int c; (c = getopt(argc, argv, "n:p:")) != -1;) {
        if (c == 'n')
            times = number(optarg, 1, 1000000000);
        else if (c == 'p')
            port = optarg;
        else
            usage();
    }
    char **arg = argv + optind;
    int arguments = argc - optind;
    bool putting = arguments == 4 && strcmp(arg[1], "put") == 0;
    if (!putting && !(arguments == 3 && strcmp(arg[1], "get") == 0))
        usage();
    if (!arg[2][0] || strlen(arg[2]) >= KV_KEY || (putting && strlen(arg[3]) >= KV_VALUE)) {
        warnx("a key has 1 to %d bytes, a value at most %d", KV_KEY - 1, KV_VALUE - 1);
        usage();
    }

    struct rdma_cm_id *id = resolve(arg[0], port, &cap);
    entry_mr =
        register_memory(id, &entry, sizeof entry, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    connect_to_server(id, 1, NULL, 0);
    if (putting)
        put_times(id, arg[2], arg[3], times);
    else
        get_times(id, arg[2], times);
    post_send(id, entry_mr, 0);
    await_sent(id, "goodbye");
    rdma_disconnect(id);
    ibv_dereg_mr(entry_mr);
    rdma_destroy_ep(id);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small key-value store. Clients get by RDMA Reads of the table, which cost the server nothing,
 * and put by a message, as only the server writes. There is no lock between the two: an entry has a
 * checksum, and who reads it while it is written sees that it does not match and reads again.
 *
 *     cc kv_server.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o kv_server
 *     kv_server [-a ADDRESS] [-p PORT] [-c CLIENTS] [-w MICROSECONDS]
 *
 * Each client has a thread. The server ends when CLIENTS have left. With -w an entry takes so long
 * to write, which makes reads of half-written ones easy to see. The other end is kv_client.c.
 */
#include "common.h"
#include "kv.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READS 16 /* of a client, under way at a time */

const char usage_text[] = "kv_server [-a address] [-p port] [-c clients] [-w microseconds]\n";

static struct kv_entry table[KV_ENTRIES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* for those who put */
static useconds_t write_time;

static void write_entry(struct kv_entry *entry, const struct kv_put *put)
{
    entry->version = htobe64(be64toh(entry->version) + 1);
    memcpy(entry->key, put->key, sizeof entry->key);
    memcpy(entry->value, put->value, sizeof entry->value / 2);
    if (write_time)
        usleep(write_time);
    memcpy(entry->value + sizeof entry->value / 2, put->value + sizeof entry->value / 2,
           sizeof entry->value / 2);
    entry->checksum = kv_checksum(entry);
}

/* @return the version, 0 if all places for this key are taken by others; network byte order */
static uint64_t put_locked(const struct kv_put *put)
{
    for (size_t i = 0; i < KV_PROBES; i++) {
        struct kv_entry *entry = &table[kv_index(put->key, i)];
        if (entry->version && strcmp(entry->key, put->key) != 0)
            continue;
        write_entry(entry, put);
        return entry->version;
    }
    return 0;
}

static bool is_put(const struct kv_put *put, const struct ibv_wc *wc)
{
    return wc->byte_len == sizeof *put && put->key[0] && !put->key[KV_KEY - 1] &&
           !put->value[KV_VALUE - 1];
}

/* Answers the messages of a client until it says goodbye. */
static void serve(struct rdma_cm_id *id, struct ibv_mr *put_mr, struct ibv_mr *reply_mr)
{
    const struct kv_put *put = put_mr->addr;
    struct kv_reply *reply = reply_mr->addr;
    struct ibv_wc wc;
    for (;;) {
        if (rdma_get_recv_comp(id, &wc) < 0)
            err(1, "rdma_get_recv_comp");
        if (!succeeded(&wc, "a client") || wc.byte_len == 0)
            return;
        if (!is_put(put, &wc)) {
            warnx("a client speaks of something else");
            return;
        }
        pthread_mutex_lock(&table_lock);
        reply->version = put_locked(put);
        pthread_mutex_unlock(&table_lock);
        post_receive(id, put_mr);
        post_send(id, reply_mr, sizeof *reply);
        if (rdma_get_send_comp(id, &wc) < 0)
            err(1, "rdma_get_send_comp");
        if (!succeeded(&wc, "reply to a client"))
            return;
    }
}

static void *client_thread(void *arg)
{
    struct rdma_cm_id *id = arg;
    struct kv_put put;
    struct kv_reply reply;
    /* The key to the table is this client's alone. */
    struct ibv_mr *table_mr = register_memory(id, table, sizeof table, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *put_mr = register_memory(id, &put, sizeof put, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *reply_mr = register_memory(id, &reply, sizeof reply, 0);
    post_receive(id, put_mr);
    if (accept_client(id, READS, table_mr)) {
        serve(id, put_mr, reply_mr);
        rdma_disconnect(id);
    }
    rdma_destroy_qp(id); /* no message may come any more to what is deregistered */
    ibv_dereg_mr(reply_mr);
    ibv_dereg_mr(put_mr);
    ibv_dereg_mr(table_mr);
    rdma_destroy_ep(id);
    return NULL;
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const char *address = "::", *port = DEFAULT_PORT;
    unsigned long clients = 0;
    for (int c; (c = getopt(argc, argv, "a:c:p:w:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'c')
            clients = number(optarg, 1, 10000);
        else if (c == 'p')
            port = optarg;
        else if (c == 'w')
            write_time = (useconds_t)number(optarg, 0, 999999);
        else
            usage();
    }
    if (optind != argc)
        usage();

    for (size_t i = 0; i < KV_ENTRIES; i++)
        table[i].checksum = kv_checksum(&table[i]);
    struct rdma_cm_id *listener = listen_on(address, port, &cap);
    pthread_t thread, *threads = allocate((clients + 1) * sizeof *threads);
    for (unsigned long i = 0; !clients || i < clients; i++) {
        errno = pthread_create(&thread, NULL, client_thread, next_client(listener));
        if (errno)
            err(1, "pthread_create");
        if (clients)
            threads[i] = thread;
        else
            pthread_detach(thread);
    }
    for (unsigned long i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    rdma_destroy_ep(listener);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a message takes to the server and back.
 *
 *     cc ping.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o ping
 *     ping [-b] [-a ADDRESS] [-p PORT]                      answers one client
 *     ping [-b] [-p PORT] [-n COUNT] [-s SIZE] SERVER
 *
 * With -b an end polls for completions instead of sleeping until one comes: faster, for all of a
 * CPU. An empty message is the client's goodbye. event_loop and srq_server answer as well.
 */
#include "common.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZE 65536

const char usage_text[] = "ping [-b] [-a address] [-p port]\n"
                          "       ping [-b] [-p port] [-n count] [-s size] server\n";

static bool busy;

/* The next completion: asleep, or by asking for it all the time. */
static struct ibv_wc await_message(struct rdma_cm_id *id, const char *what)
{
    struct ibv_wc wc;
    int n;
    if (!busy)
        return await_received(id, what);
    while ((n = ibv_poll_cq(id->recv_cq, 1, &wc)) == 0)
        ;
    if (n < 0)
        errx(1, "ibv_poll_cq failed");
    if (!succeeded(&wc, what))
        exit(1);
    return wc;
}

/* Two buffers, so that the next message has a place before this one is answered from its own. */
static void serve(struct rdma_cm_id *id)
{
    char *buf = allocate(2 * MAX_SIZE);
    struct ibv_mr *mr[2];
    for (int i = 0; i < 2; i++)
        mr[i] = register_memory(id, buf + i * MAX_SIZE, MAX_SIZE, IBV_ACCESS_LOCAL_WRITE);
    post_receive(id, mr[0]);
    if (!accept_client(id, 0, NULL))
        exit(1);

    struct ibv_wc wc;
    for (int i = 0; (wc = await_message(id, "waiting for a message")).byte_len > 0; i ^= 1) {
        post_receive(id, mr[i ^ 1]);
        post_send(id, mr[i], wc.byte_len);
        await_sent(id, "answer");
    }

    rdma_disconnect(id);
    ibv_dereg_mr(mr[0]);
    ibv_dereg_mr(mr[1]);
    free(buf);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(size_t size, double *seconds, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += seconds[i];
    qsort(seconds, count, sizeof *seconds, compare);
    printf("%zu bytes, %zu round trips: %.1f us minimum, %.1f median, %.1f mean, %.1f maximum\n",
           size, count, seconds[0] * 1e6, seconds[count / 2] * 1e6, sum / (double)count * 1e6,
           seconds[count - 1] * 1e6);
}

static void run(struct rdma_cm_id *id, size_t size, size_t count)
{
    char *question = allocate(size), *answer = allocate(size);
    double *seconds = allocate(count * sizeof *seconds);
    struct ibv_mr *send_mr = register_memory(id, question, size, 0);
    struct ibv_mr *receive_mr = register_memory(id, answer, size, IBV_ACCESS_LOCAL_WRITE);
    connect_to_server(id, 0, NULL, 0);

    for (size_t i = 0; i < count; i++) {
        memset(question, (int)i, size);
        post_receive(id, receive_mr);
        double start = now();
        post_send(id, send_mr, size);
        struct ibv_wc wc = await_message(id, "waiting for the answer");
        seconds[i] = now() - start;
        if (wc.byte_len != size || memcmp(question, answer, size) != 0)
            errx(1, "answer %zu is not what was sent", i);
        await_sent(id, "message");
    }
    post_send(id, send_mr, 0);
    await_sent(id, "goodbye");
    report(size, seconds, count);

    rdma_disconnect(id);
    ibv_dereg_mr(send_mr);
    ibv_dereg_mr(receive_mr);
    free(seconds);
    free(answer);
    free(question);
}

int main(int argc, char *argv[])
{
    const struct ibv_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1};
    const char *address = "::", *port = DEFAULT_PORT;
    size_t count = 1000, size = 64;
    for (int c; (c = getopt(argc, argv, "a:bn:p:s:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'b')
            busy = true;
        else if (c == 'n')
            count = number(optarg, 1, 100000000);
        else if (c == 'p')
            port = optarg;
        else if (c == 's')
            size = number(optarg, 1, MAX_SIZE);
        else
            usage();
    }

    if (optind == argc) {
        struct rdma_cm_id *listener = listen_on(address, port, &cap);
        struct rdma_cm_id *id = next_client(listener);
        serve(id);
        rdma_destroy_ep(id);
        rdma_destroy_ep(listener);
    } else if (optind == argc - 1) {
        struct rdma_cm_id *id = resolve(argv[optind], port, &cap);
        run(id, size, count);
        rdma_destroy_ep(id);
    } else {
        usage();
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server whose clients share one receive queue: its memory grows with the messages under
 * way, not with the number of clients.
 *
 *     cc srq_server.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o srq_server
 *     srq_server [-a ADDRESS] [-p PORT] [-c CLIENTS]        ends when CLIENTS have left
 *
 * Clients are those of ping.c. They have one message under way each, so BUFFERS bounds how many
 * there may be: an adapter ends a connection whose message finds no receive (anywarp lets it wait).
 */
#include "common.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFERS     64
#define BUFFER_SIZE 65536
#define SENDS       4 /* of one client */

const char usage_text[] = "srq_server [-a address] [-p port] [-c clients]\n";

/* wr_id is the index of a buffer. It is posted as a receive, or sends its echo for this client. */
static char *memory;
static struct client *sender[BUFFERS];

struct client {
    struct client *next;
    struct rdma_cm_id *id;
    unsigned long messages;
    bool done; /* it has said goodbye */
};

static struct rdma_event_channel *events;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct client *clients;
static unsigned long present, left;

static struct ibv_sge sge_of(uint64_t i, uint32_t length)
{
    return (struct ibv_sge){(uintptr_t)memory + i * BUFFER_SIZE, length, mr->lkey};
}

static void post_buffer(uint64_t i)
{
    struct ibv_sge sge = sge_of(i, BUFFER_SIZE);
    struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    sender[i] = NULL;
    if (rdma_seterrno(ibv_post_srq_recv(srq, &wr, &bad)))
        err(1, "ibv_post_srq_recv");
}

/* All that the clients share, made when the first of them brings the device. */
static void create_shared(struct ibv_context *device)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = BUFFERS, .max_sge = 1}};
    pd = ibv_alloc_pd(device);
    if (!pd)
        err(1, "ibv_alloc_pd");
    channel = ibv_create_comp_channel(device);
    if (!channel)
        err(1, "ibv_create_comp_channel");
    cq = ibv_create_cq(device, BUFFERS, NULL, channel, 0);
    if (!cq || ibv_req_notify_cq(cq, 0))
        err(1, "ibv_create_cq");
    srq = ibv_create_srq(pd, &attr);
    if (!srq)
        err(1, "ibv_create_srq");
    memory = allocate((size_t)BUFFERS * BUFFER_SIZE);
    mr = ibv_reg_mr(pd, memory, (size_t)BUFFERS * BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);
    if (!mr)
        err(1, "ibv_reg_mr");
    for (uint64_t i = 0; i < BUFFERS; i++)
        post_buffer(i);
}

static void destroy_shared(void)
{
    if (!pd)
        return;
    ibv_destroy_srq(srq);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    free(memory);
}

static struct rdma_cm_id *listen_async(const char *address, const char *port)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *info;
    struct rdma_cm_id *id;
    int code = rdma_getaddrinfo(address, port, &hints, &info);
    if (code)
        errx(1, "%s, port %s: %s", address, port,
             code == -1 ? strerror(errno) : gai_strerror(code));
    if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
        err(1, "rdma_create_id");
    if (rdma_bind_addr(id, info->ai_src_addr))
        err(1, "%s, port %s: rdma_bind_addr", address, port);
    if (rdma_listen(id, 64))
        err(1, "%s, port %s: rdma_listen", address, port);
    rdma_freeaddrinfo(info);
    return id;
}

static void turn_away(struct rdma_cm_id *id, struct client *client)
{
    if (id->qp)
        rdma_destroy_qp(id);
    else
        rdma_reject(id, NULL, 0);
    rdma_destroy_id(id);
    free(client);
}

static void welcome(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    struct client *client = calloc(1, sizeof *client);
    if (!pd)
        create_shared(id->verbs);
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = SENDS, .max_send_sge = 1},
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .qp_type = IBV_QPT_RC,
    };
    if (!client || present == BUFFERS) {
        warnx("no room for a client");
        turn_away(id, client);
        return;
    }
    if (rdma_create_qp(id, pd, &attr) || rdma_accept(id, &param)) {
        warn("a client cannot be accepted");
        turn_away(id, client);
        return;
    }
    client->id = id;
    id->context = client;
    client->next = clients;
    clients = client;
    present++;
}

/* The receives are shared, so which client a message is from is told by its queue pair. */
static struct client *client_of(uint32_t qp_num)
{
    struct client *client = clients;
    while (client && client->id->qp->qp_num != qp_num)
        client = client->next;
    return client;
}

static bool echo(struct client *client, uint64_t i, uint32_t length)
{
    struct ibv_sge sge = sge_of(i, length);
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = i,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                             };
    if (rdma_seterrno(ibv_post_send(client->id->qp, &wr, &bad))) {
        warn("ibv_post_send");
        rdma_disconnect(client->id); /* it would wait for ever */
        return false;
    }
    sender[i] = client;
    client->messages++;
    return true;
}

/* A buffer goes back to the shared queue unless its message is echoed, which it waits for. */
static void handle_completion(const struct ibv_wc *wc)
{
    struct client *client = client_of(wc->qp_num);
    bool good = client && wc->status == IBV_WC_SUCCESS;
    if (good && !sender[wc->wr_id]) {
        if (wc->byte_len == 0)
            client->done = true;
        else if (echo(client, wc->wr_id, wc->byte_len))
            return;
    }
    if (!good && wc->status != IBV_WC_WR_FLUSH_ERR)
        warnx("a client: %s", ibv_wc_status_str(wc->status));
    post_buffer(wc->wr_id);
}

static void poll_completions(void)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
        handle_completion(&wc);
    if (n < 0)
        errx(1, "ibv_poll_cq failed");
}

/* After an event: arm first, then poll until the queue is empty. */
static void handle_completions(void)
{
    struct ibv_cq *event_cq;
    void *context;
    if (ibv_get_cq_event(channel, &event_cq, &context))
        err(1, "ibv_get_cq_event");
    ibv_ack_cq_events(event_cq, 1);
    if (rdma_seterrno(ibv_req_notify_cq(event_cq, 0)))
        err(1, "ibv_req_notify_cq");
    poll_completions();
}

/* A queue pair takes its completions with it, so the buffers they speak of are looked for. */
static void farewell(struct client *client)
{
    struct client **link = &clients;
    rdma_disconnect(client->id);
    poll_completions();
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    rdma_destroy_qp(client->id);
    rdma_destroy_id(client->id);
    for (uint64_t i = 0; i < BUFFERS; i++)
        if (sender[i] == client)
            post_buffer(i);
    if (client->done)
        printf("a client has left after %lu messages\n", client->messages);
    else
        warnx("a client has left without a goodbye after %lu messages", client->messages);
    fflush(stdout);
    free(client);
    present--;
    left++;
}

static void handle_cm_event(void)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(events, &event))
        err(1, "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    enum rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
        welcome(id);
    else if (id->context && type != RDMA_CM_EVENT_ESTABLISHED)
        farewell(id->context);
}

int main(int argc, char *argv[])
{
    const char *address = "::", *port = DEFAULT_PORT;
    unsigned long enough = ULONG_MAX;
    for (int c; (c = getopt(argc, argv, "a:c:p:")) != -1;) {
        if (c == 'a')
            address = optarg;
        else if (c == 'c')
            enough = number(optarg, 1, ULONG_MAX);
        else if (c == 'p')
            port = optarg;
        else
            usage();
    }
    if (optind != argc)
        usage();

    events = rdma_create_event_channel();
    if (!events)
        err(1, "rdma_create_event_channel");
    struct rdma_cm_id *listener = listen_async(address, port);
    while (left < enough) {
        /* poll() says which of the two calls would not sleep; no descriptor is -1. */
        struct pollfd fds[] = {{events->fd, POLLIN, 0}, {channel ? channel->fd : -1, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            err(1, "poll");
        if (fds[0].revents)
            handle_cm_event();
        if (fds[1].revents)
            handle_completions();
    }

    rdma_destroy_id(listener);
    while (clients)
        farewell(clients);
    destroy_shared();
    rdma_destroy_event_channel(events);
    return 0;
}

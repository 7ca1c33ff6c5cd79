/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server for any number of clients in one thread: connections, completions and signals are
 * three descriptors of one epoll set.
 *
 *     cc event_loop.c common.c $(pkg-config --cflags --libs librdmacm libibverbs) -o event_loop
 *     event_loop [-a ADDRESS] [-p PORT] [-c CLIENTS]
 *
 * Clients are those of ping.c. The server ends when CLIENTS of them have left, or at SIGINT or
 * SIGTERM.
 */
#include "common.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define BUFFERS     4 /* of a client, that has one message under way: spare ones, never too late */
#define BUFFER_SIZE 65536
#define COMPLETIONS 1024 /* of all clients, before they are polled */
#define MAX_CLIENTS (COMPLETIONS / BUFFERS)

const char usage_text[] = "event_loop [-a address] [-p port] [-c clients]\n";

/* A buffer is posted as a receive, then holds a message until its echo has been sent. */
struct buffer {
    struct client *client;
    struct ibv_sge sge;
};

struct client {
    struct client *next;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    char *memory;
    bool done; /* it has said goodbye */
    struct buffer buffers[BUFFERS];
};

static struct rdma_event_channel *events;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct client *clients;
static unsigned long present, left;

static void set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        err(1, "fcntl");
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

/* The completion queue is made with the first client, which brings the device. */
static void need_cq(struct ibv_context *device)
{
    if (cq)
        return;
    channel = ibv_create_comp_channel(device);
    if (!channel)
        err(1, "ibv_create_comp_channel");
    set_nonblocking(channel->fd);
    cq = ibv_create_cq(device, COMPLETIONS, NULL, channel, 0);
    if (!cq || ibv_req_notify_cq(cq, 0))
        err(1, "ibv_create_cq");
}

/* Also for a client that was not made completely. */
static void free_client(struct client *client)
{
    if (client->id->qp)
        rdma_destroy_qp(client->id);
    if (client->mr)
        ibv_dereg_mr(client->mr);
    rdma_destroy_id(client->id);
    free(client->memory);
    free(client);
}

static bool post_buffer(struct buffer *buffer)
{
    struct ibv_recv_wr *bad,
        wr = {.wr_id = (uintptr_t)buffer, .sg_list = &buffer->sge, .num_sge = 1};
    buffer->sge.length = BUFFER_SIZE;
    return !rdma_seterrno(ibv_post_recv(buffer->client->id->qp, &wr, &bad));
}

static bool echo(struct buffer *buffer, uint32_t length)
{
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = (uintptr_t)buffer,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &buffer->sge,
                                 .num_sge = 1,
                             };
    buffer->sge.length = length;
    return !rdma_seterrno(ibv_post_send(buffer->client->id->qp, &wr, &bad));
}

/* Makes the queue pair and posts all buffers. False with errno. */
static bool prepare(struct client *client)
{
    struct ibv_qp_init_attr attr = {
        .cap = {BUFFERS, BUFFERS, .max_send_sge = 1, .max_recv_sge = 1},
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
    };
    client->memory = malloc(BUFFERS * BUFFER_SIZE);
    if (!client->memory || rdma_create_qp(client->id, NULL, &attr))
        return false;
    client->mr =
        ibv_reg_mr(client->id->pd, client->memory, BUFFERS * BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);
    if (!client->mr)
        return false;
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &client->buffers[i];
        buffer->client = client;
        buffer->sge.addr = (uintptr_t)client->memory + (size_t)i * BUFFER_SIZE;
        buffer->sge.lkey = client->mr->lkey;
        if (!post_buffer(buffer))
            return false;
    }
    return true;
}

static void welcome(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    struct client *client = calloc(1, sizeof *client);
    need_cq(id->verbs);
    if (!client || present == MAX_CLIENTS) {
        warnx("no room for a client");
        rdma_reject(id, NULL, 0);
        rdma_destroy_id(id);
        free(client);
        return;
    }
    client->id = id;
    id->context = client;
    if (!prepare(client) || rdma_accept(id, &param)) {
        warn("a client cannot be accepted");
        free_client(client);
        return;
    }
    client->next = clients;
    clients = client;
    present++;
}

static void farewell(struct client *client)
{
    struct client **link = &clients;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    if (!client->done)
        warnx("a client has left without a goodbye");
    rdma_disconnect(client->id);
    free_client(client);
    present--;
    left++;
}

/* A completion may be of a flush; the client is freed when its disconnection is heard of. */
static void handle_completion(const struct ibv_wc *wc)
{
    struct buffer *buffer = (struct buffer *)(uintptr_t)wc->wr_id;
    bool received = wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV;
    if (wc->status == IBV_WC_WR_FLUSH_ERR)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        warnx("a client: %s", ibv_wc_status_str(wc->status));
    } else if (received && wc->byte_len == 0) {
        buffer->client->done = true;
    } else if (received ? !echo(buffer, wc->byte_len) : !post_buffer(buffer)) {
        warn("a client: posting");
        rdma_disconnect(buffer->client->id); /* it would wait for ever */
    }
}

static void poll_completions(void)
{
    struct ibv_wc wc[16];
    int n;
    while ((n = ibv_poll_cq(cq, 16, wc)) > 0)
        for (int i = 0; i < n; i++)
            handle_completion(&wc[i]);
    if (n < 0)
        errx(1, "ibv_poll_cq failed");
}

/*
 * Take the events, acknowledge them, arm, and only then poll until the queue is empty: a completion
 * that comes after the poll raises an event, one that came before is found by the poll.
 */
static void handle_completions(void)
{
    struct ibv_cq *event_cq;
    void *context;
    unsigned int n = 0;
    while (!ibv_get_cq_event(channel, &event_cq, &context))
        n++;
    if (errno != EAGAIN)
        err(1, "ibv_get_cq_event");
    if (n > 0)
        ibv_ack_cq_events(cq, n);
    if (rdma_seterrno(ibv_req_notify_cq(cq, 0)))
        err(1, "ibv_req_notify_cq");
    poll_completions();
}

/* An event is acknowledged before its id is destroyed: rdma_destroy_id() waits for that. */
static void handle_cm_events(void)
{
    struct rdma_cm_event *event;
    while (!rdma_get_cm_event(events, &event)) {
        struct rdma_cm_id *id = event->id;
        enum rdma_cm_event_type type = event->event;
        int status = event->status;
        rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            welcome(id);
        } else if (id->context && type != RDMA_CM_EVENT_ESTABLISHED) {
            if (type != RDMA_CM_EVENT_DISCONNECTED)
                warnx("a client: %s: %s", rdma_event_str(type), strerror(abs(status)));
            poll_completions(); /* none is left that speaks of a freed client */
            farewell(id->context);
        }
    }
    if (errno != EAGAIN)
        err(1, "rdma_get_cm_event");
}

static int open_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        err(1, "sigprocmask");
    int fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (fd < 0)
        err(1, "signalfd");
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
        err(1, "epoll_ctl");
}

static void loop(unsigned long enough)
{
    bool channel_watched = false, signalled = false;
    struct epoll_event ready[3];
    int signals = open_signals(), epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        err(1, "epoll_create1");
    watch(epoll, events->fd);
    watch(epoll, signals);
    while (left < enough && !signalled) {
        int n = epoll_wait(epoll, ready, 3, -1);
        if (n < 0 && errno != EINTR)
            err(1, "epoll_wait");
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == events->fd)
                handle_cm_events();
            else if (ready[i].data.fd == signals)
                signalled = true;
            else
                handle_completions();
        }
        if (channel && !channel_watched) {
            watch(epoll, channel->fd);
            channel_watched = true;
        }
    }
    close(epoll);
    close(signals);
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
    set_nonblocking(events->fd);
    struct rdma_cm_id *listener = listen_async(address, port);
    loop(enough);
    printf("%lu clients have left, %lu were here\n", left, present);

    rdma_destroy_id(listener);
    while (clients)
        farewell(clients);
    if (cq)
        ibv_destroy_cq(cq);
    if (channel)
        ibv_destroy_comp_channel(channel);
    rdma_destroy_event_channel(events);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds two numbers for one client: the first arrives in memory that the client may write to, the
 * second in a message; the sum goes back as a message.
 *
 *     cc rdma_sum_server.c $(pkg-config --cflags --libs librdmacm libibverbs) -o rdma_sum_server
 *     rdma_sum_server [-a ADDRESS] [-p PORT]
 *
 * The other end is rdma_sum_client.c. Numbers are 32 bits wide and travel in network byte order.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

/* Told to the client with the acceptance: where the first number goes. */
struct target {
    uint64_t addr;
    uint32_t rkey, unused;
};

static struct rdma_event_channel *events;

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: rdma_sum_server [-a address] [-p port]\n");
    exit(2);
}

/* The id of the next event, which must be this one. */
static struct rdma_cm_id *await(enum rdma_cm_event_type wanted)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(events, &event))
        err(1, "rdma_get_cm_event");
    if (event->event != wanted)
        errx(1, "%s: %s", rdma_event_str(event->event), strerror(abs(event->status)));
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static struct rdma_cm_id *listen_on(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *ai;
    struct rdma_cm_id *id;
    int code = getaddrinfo(address, port, &hints, &ai);
    if (code)
        errx(1, "%s, port %s: %s", address, port, gai_strerror(code));
    if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
        err(1, "rdma_create_id");
    if (rdma_bind_addr(id, ai->ai_addr))
        err(1, "%s, port %s: rdma_bind_addr", address, port);
    if (rdma_listen(id, 1))
        err(1, "%s, port %s: rdma_listen", address, port);
    freeaddrinfo(ai);
    return id;
}

/*
 * Waits for one completion. An event tells of all that came since the CQ was armed, so after each
 * the CQ is armed again and only then polled.
 */
static void await_completion(struct ibv_cq *cq, const char *what)
{
    struct ibv_cq *event_cq;
    struct ibv_wc wc;
    void *context;
    int polled;
    while ((polled = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (ibv_get_cq_event(cq->channel, &event_cq, &context))
            err(1, "ibv_get_cq_event");
        ibv_ack_cq_events(event_cq, 1);
        errno = ibv_req_notify_cq(event_cq, 0);
        if (errno)
            err(1, "ibv_req_notify_cq");
    }
    if (polled < 0)
        errx(1, "ibv_poll_cq failed");
    if (wc.status != IBV_WC_SUCCESS)
        errx(1, "%s: %s", what, ibv_wc_status_str(wc.status));
}

/* Accepts, telling where the client may write. */
static void accept_id(struct rdma_cm_id *id, const struct ibv_mr *mr)
{
    struct target target = {htobe64((uintptr_t)mr->addr), htonl(mr->rkey), 0};
    struct rdma_conn_param param = {
        .responder_resources = 1,
        .private_data = &target,
        .private_data_len = sizeof target,
    };
    if (rdma_accept(id, &param))
        err(1, "rdma_accept");
    await(RDMA_CM_EVENT_ESTABLISHED);
}

static void serve(struct rdma_cm_id *id)
{
    uint32_t buf[2] = {0, 0};
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    if (!pd)
        err(1, "ibv_alloc_pd");
    struct ibv_comp_channel *channel = ibv_create_comp_channel(id->verbs);
    if (!channel)
        err(1, "ibv_create_comp_channel");
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 2, NULL, channel, 0);
    if (!cq || ibv_req_notify_cq(cq, 0))
        err(1, "ibv_create_cq");
    struct ibv_mr *mr =
        ibv_reg_mr(pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!mr)
        err(1, "ibv_reg_mr");
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
    };
    if (rdma_create_qp(id, pd, &attr))
        err(1, "rdma_create_qp");

    /* The second number may come as soon as the connection is accepted. */
    struct ibv_sge second = {(uintptr_t)&buf[1], sizeof buf[1], mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &second, .num_sge = 1}, *bad_receive;
    errno = ibv_post_recv(id->qp, &receive, &bad_receive);
    if (errno)
        err(1, "ibv_post_recv");
    accept_id(id, mr);
    await_completion(cq, "second number"); /* the first was written before */

    buf[0] = htonl(ntohl(buf[0]) + ntohl(buf[1]));
    struct ibv_sge sum = {(uintptr_t)&buf[0], sizeof buf[0], mr->lkey};
    struct ibv_send_wr *bad_send, send = {
                                      .opcode = IBV_WR_SEND,
                                      .send_flags = IBV_SEND_SIGNALED,
                                      .sg_list = &sum,
                                      .num_sge = 1,
                                  };
    errno = ibv_post_send(id->qp, &send, &bad_send);
    if (errno)
        err(1, "ibv_post_send");
    await_completion(cq, "sum");

    await(RDMA_CM_EVENT_DISCONNECTED); /* the client has what it wanted */
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
    ibv_dealloc_pd(pd);
}

int main(int argc, char *argv[])
{
    const char *address = "::", *port = "20079";
    for (int c; (c = getopt(argc, argv, "a:p:")) != -1;) {
        if (c == 'a')
            address = optarg;
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
    struct rdma_cm_id *listener = listen_on(address, port);
    struct rdma_cm_id *id = await(RDMA_CM_EVENT_CONNECT_REQUEST);
    serve(id);

    rdma_destroy_id(id);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(events);
    return 0;
}

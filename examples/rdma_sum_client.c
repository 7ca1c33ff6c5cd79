/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets a server add two numbers: the first goes into the server's memory by an RDMA Write, the
 * second to its program by a Send; the sum comes back as a Send.
 *
 *     cc rdma_sum_client.c $(pkg-config --cflags --libs librdmacm libibverbs) -o rdma_sum_client
 *     rdma_sum_client [-p PORT] SERVER NUMBER NUMBER
 *
 * The other end is rdma_sum_server.c. Numbers are 32 bits wide and travel in network byte order.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define TIMEOUT_MS 5000

enum { REPLY, WRITE, SEND }; /* wr_id of the work requests */

/* What the server says about itself when it accepts: where the first number goes. */
struct target {
    uint64_t addr;
    uint32_t rkey, unused;
};

static struct rdma_event_channel *events;

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: rdma_sum_client [-p port] server number number\n");
    exit(2);
}

static uint32_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (text[0] == '-' || end == text || *end || errno || value > UINT32_MAX) {
        fprintf(stderr, "rdma_sum_client: %s: not a number of 32 bits\n", text);
        usage();
    }
    return (uint32_t)value;
}

/* The next event, which the caller acknowledges. False, with a message, if it is not this one. */
static bool next_event(enum rdma_cm_event_type wanted, struct rdma_cm_event **event)
{
    if (rdma_get_cm_event(events, event))
        err(1, "rdma_get_cm_event");
    if ((*event)->event == wanted)
        return true;
    warnx("%s: %s", rdma_event_str((*event)->event), strerror(abs((*event)->status)));
    return false;
}

static void await(enum rdma_cm_event_type wanted)
{
    struct rdma_cm_event *event;
    if (!next_event(wanted, &event))
        exit(1);
    rdma_ack_cm_event(event);
}

/* An id whose device leads to the server: the first of its addresses that there is a way to. */
static struct rdma_cm_id *resolve(const char *server, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    int code = getaddrinfo(server, port, &hints, &list);
    if (code)
        errx(1, "%s: %s", server, gai_strerror(code));
    for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
        if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
            err(1, "rdma_create_id");
        if (rdma_resolve_addr(id, NULL, ai->ai_addr, TIMEOUT_MS)) {
            warn("rdma_resolve_addr");
        } else {
            bool found = next_event(RDMA_CM_EVENT_ADDR_RESOLVED, &event);
            rdma_ack_cm_event(event);
            if (found) {
                freeaddrinfo(list);
                return id;
            }
        }
        rdma_destroy_id(id);
    }
    errx(1, "%s: no address can be reached", server);
}

/* Connects; the answer says where the first number goes. */
static struct target connect_id(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.initiator_depth = 1, .retry_count = 7};
    struct rdma_cm_event *event;
    struct target target;
    if (rdma_connect(id, &param))
        err(1, "rdma_connect");
    if (!next_event(RDMA_CM_EVENT_ESTABLISHED, &event))
        exit(1);
    if (event->param.conn.private_data_len < sizeof target)
        errx(1, "this is not rdma_sum_server: it does not say where to write");
    memcpy(&target, event->param.conn.private_data, sizeof target);
    rdma_ack_cm_event(event);
    target.addr = be64toh(target.addr);
    target.rkey = ntohl(target.rkey);
    return target;
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge *sge)
{
    struct ibv_recv_wr wr = {.wr_id = REPLY, .sg_list = sge, .num_sge = 1}, *bad;
    errno = ibv_post_recv(qp, &wr, &bad);
    if (errno)
        err(1, "ibv_post_recv");
}

/* One Write and one Send; only the Send reports that it is done, which covers the Write as well. */
static void post_numbers(struct ibv_qp *qp, struct ibv_sge *first, struct ibv_sge *second,
                         struct target target)
{
    struct ibv_send_wr *bad, send = {
                                 .wr_id = SEND,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = second,
                                 .num_sge = 1,
                             };
    struct ibv_send_wr write = {
        .wr_id = WRITE,
        .opcode = IBV_WR_RDMA_WRITE,
        .sg_list = first,
        .num_sge = 1,
        .wr.rdma = {.remote_addr = target.addr, .rkey = target.rkey},
        .next = &send,
    };
    errno = ibv_post_send(qp, &write, &bad);
    if (errno)
        err(1, "ibv_post_send");
}

/*
 * Waits for n completions. An event tells of all that came since the CQ was armed, so after each
 * the CQ is armed again and only then polled until it is empty.
 */
static void await_completions(struct ibv_cq *cq, int n)
{
    struct ibv_cq *event_cq;
    struct ibv_wc wc;
    void *context;
    while (n > 0) {
        int polled = ibv_poll_cq(cq, 1, &wc);
        if (polled < 0)
            errx(1, "ibv_poll_cq failed");
        if (polled > 0 && wc.status != IBV_WC_SUCCESS)
            errx(1, "%s: %s", wc.wr_id == REPLY ? "reply" : "request",
                 ibv_wc_status_str(wc.status));
        n -= polled;
        if (polled > 0)
            continue;
        if (ibv_get_cq_event(cq->channel, &event_cq, &context))
            err(1, "ibv_get_cq_event");
        ibv_ack_cq_events(event_cq, 1);
        errno = ibv_req_notify_cq(event_cq, 0);
        if (errno)
            err(1, "ibv_req_notify_cq");
    }
}

static uint32_t sum(struct rdma_cm_id *id, uint32_t first, uint32_t second)
{
    uint32_t buf[3] = {htonl(first), htonl(second), 0};
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    if (!pd)
        err(1, "ibv_alloc_pd");
    struct ibv_comp_channel *channel = ibv_create_comp_channel(id->verbs);
    if (!channel)
        err(1, "ibv_create_comp_channel");
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 3, NULL, channel, 0);
    if (!cq || ibv_req_notify_cq(cq, 0))
        err(1, "ibv_create_cq");
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE);
    if (!mr)
        err(1, "ibv_reg_mr");
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 2, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
    };
    if (rdma_create_qp(id, pd, &attr))
        err(1, "rdma_create_qp");

    struct ibv_sge sge[3];
    for (int i = 0; i < 3; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)&buf[i], sizeof buf[i], mr->lkey};
    post_receive(id->qp, &sge[2]); /* before the server can possibly answer */
    struct target target = connect_id(id);
    post_numbers(id->qp, &sge[0], &sge[1], target);
    await_completions(cq, 2); /* of the Send and of the reply */

    if (rdma_disconnect(id))
        err(1, "rdma_disconnect");
    await(RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(id);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
    ibv_dealloc_pd(pd);
    return ntohl(buf[2]);
}

int main(int argc, char *argv[])
{
    const char *port = "20079";
    for (int c; (c = getopt(argc, argv, "p:")) != -1;) {
        if (c != 'p')
            usage();
        port = optarg;
    }
    if (argc - optind != 3)
        usage();
    uint32_t first = number(argv[optind + 1]), second = number(argv[optind + 2]);

    events = rdma_create_event_channel();
    if (!events)
        err(1, "rdma_create_event_channel");
    struct rdma_cm_id *id = resolve(argv[optind], port);
    if (rdma_resolve_route(id, TIMEOUT_MS))
        err(1, "rdma_resolve_route");
    await(RDMA_CM_EVENT_ROUTE_RESOLVED);
    printf("%u + %u = %u\n", first, second, sum(id, first, second));

    rdma_destroy_id(id);
    rdma_destroy_event_channel(events);
    return 0;
}

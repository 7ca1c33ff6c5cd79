/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips by datagrams: no connection, one queue pair for any number of others. The client
 * needs the server's GID and number, which a socket tells; the server answers to whom a datagram is
 * from, as its completion and its first 40 bytes say. A datagram may be lost: it is then sent once
 * more.
 *
 *     cc ud_ping.c $(pkg-config --cflags --libs libibverbs) -o ud_ping
 *     ud_ping PORT             answers one client
 *     ud_ping PORT SERVER
 */
#include <err.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    COUNT = 1000,
    SIZE = 64,
    GRH = 40,       /* in front of what a receive gets */
    GID_INDEX = 1,  /* an address; GID 0 of an iWARP device is none */
    Q_KEY = 0x1234, /* what comes with another one is dropped */
    PATIENCE = 200, /* ms for an answer */
};
struct place { /* what the server tells; both have one byte order here */
    uint32_t number;
    union ibv_gid gid;
};
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[SIZE + GRH + SIZE]; /* what is sent, and then what is received */

static void check(int error, const char *what)
{
    if (error)
        errx(1, "%s: %s", what, strerror(error));
}

/* The socket over which the server tells: of a server that waits for one client, or of that. */
static int meet(const char *port, const char *server)
{
    struct addrinfo hints = {AI_PASSIVE, AF_INET, SOCK_STREAM, 0, 0, NULL, NULL, NULL}, *found;
    if (getaddrinfo(server, port, &hints, &found))
        errx(1, "no address is known for %s, port %s", server, port);
    int fd = socket(found->ai_family, found->ai_socktype, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (server && connect(fd, found->ai_addr, found->ai_addrlen))
        err(1, "%s", server);
    if (!server && (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1)))
        err(1, "port %s", port);
    freeaddrinfo(found);
    return server ? fd : accept(fd, NULL, NULL);
}

/* Nobody is named on the way to RTS: the queue pair is for all. */
static void open_qp(struct ibv_context *device)
{
    pd = ibv_alloc_pd(device);
    channel = ibv_create_comp_channel(device);
    struct ibv_cq *cq = channel ? ibv_create_cq(device, 4, NULL, channel, 0) : NULL;
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .cap = {2, 2, 1, 1, 0}};
    init.send_cq = init.recv_cq = cq;
    qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!qp || !mr)
        err(1, "%s", qp ? "ibv_reg_mr" : "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = Q_KEY};
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
          "to INIT");
    attr.qp_state = IBV_QPS_RTR;
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
}

static void post_receive(void)
{
    struct ibv_sge to = {(uintptr_t)memory + SIZE, GRH + SIZE, mr->lkey};
    struct ibv_recv_wr *no_receive, receive = {.sg_list = &to, .num_sge = 1};
    check(ibv_post_recv(qp, &receive, &no_receive), "ibv_post_recv");
}

/* The number of a question is its immediate, and that of the answer. */
static void send_to(struct ibv_ah *where, uint32_t number, uint32_t question)
{
    struct ibv_sge from = {(uintptr_t)memory, SIZE, mr->lkey};
    struct ibv_send_wr *no_send, send = {.sg_list = &from,
                                         .num_sge = 1,
                                         .opcode = IBV_WR_SEND_WITH_IMM,
                                         .send_flags = IBV_SEND_SIGNALED,
                                         .imm_data = question,
                                         .wr = {.ud = {where, number, Q_KEY}}};
    check(ibv_post_send(qp, &send, &no_send), "ibv_post_send");
}

/* The next datagram; none within @p ms, -1: for ever, or once there is something to read from fd.
 */
static int await(struct ibv_wc *wc, int fd, int ms)
{
    struct pollfd events[] = {{channel->fd, POLLIN, 0}, {fd, POLLIN, 0}};
    struct ibv_cq *cq;
    void *context;
    for (int armed = 0;;) {
        int n = ibv_poll_cq(qp->recv_cq, 1, wc);
        if (n < 0 || (n && wc->status != IBV_WC_SUCCESS))
            errx(1, "%s", n < 0 ? "ibv_poll_cq failed" : ibv_wc_status_str(wc->status));
        if (n && wc->opcode == IBV_WC_RECV)
            return 1;
        if (n) /* a send is complete */
            continue;
        if (!armed) { /* and then another look, for what came before that */
            check(ibv_req_notify_cq(qp->recv_cq, 0), "ibv_req_notify_cq");
            armed = 1;
            continue;
        }
        if (poll(events, 2, ms) == 0 || (events[1].revents && !events[0].revents))
            return 0;
        if (events[0].revents && ibv_get_cq_event(channel, &cq, &context))
            err(1, "ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
        armed = 0;
    }
}

/* Answers each, also once more, until the client closes its socket. */
static void serve(int fd)
{
    struct ibv_wc wc;
    while (await(&wc, fd, -1)) {
        struct ibv_ah *back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(memory + SIZE), 1);
        if (!back)
            err(1, "ibv_create_ah_from_wc");
        post_receive();
        send_to(back, wc.src_qp, wc.imm_data);
        check(ibv_destroy_ah(back), "ibv_destroy_ah");
    }
}

static void ask(const struct place *server)
{
    struct ibv_ah_attr attr = {{server->gid, 0, GID_INDEX, 64, 0}, .is_global = 1, .port_num = 1};
    struct ibv_ah *there = ibv_create_ah(pd, &attr);
    struct ibv_wc wc;
    if (!there)
        err(1, "ibv_create_ah");
    for (uint32_t i = 0; i < COUNT;) {
        send_to(there, server->number, i);
        uint32_t answered = i;
        while (answered == i && await(&wc, -1, PATIENCE)) {
            post_receive();
            answered += wc.imm_data == i; /* else it answers what was sent once more */
        }
        i = answered;
    }
    check(ibv_destroy_ah(there), "ibv_destroy_ah");
    printf("%d round trips\n", COUNT);
}

int main(int argc, char *argv[])
{
    const char *server = argc == 3 ? argv[2] : NULL;
    struct place place = {0};
    if (argc < 2 || argc > 3 || atoi(argv[1]) < 1)
        return fputs("usage: ud_ping port [server]\n", stderr), 2;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *device = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    if (!device || ibv_query_gid(device, 1, GID_INDEX, &place.gid))
        errx(1, "no device can be opened, or it has no GID %d", GID_INDEX);
    open_qp(device);
    post_receive();
    place.number = qp->qp_num;
    int fd = meet(argv[1], server);
    if (server && recv(fd, &place, sizeof place, MSG_WAITALL) != sizeof place)
        errx(1, "the server has gone");
    if (!server && write(fd, &place, sizeof place) != sizeof place)
        errx(1, "the client has gone");
    if (server)
        ask(&place);
    else
        serve(fd);
    return ibv_destroy_qp(qp) || close(fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round trip between queue pairs that the program connects itself, without rdma_cm: the two ends
 * tell each other GID and number over a socket, and move their queue pairs through the states.
 *
 *     cc rc_ping.c $(pkg-config --cflags --libs libibverbs) -o rc_ping
 *     rc_ping PORT             answers one client
 *     rc_ping PORT SERVER
 */
#include <err.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    COUNT = 1000,
    SIZE = 64,
    GID_INDEX = 1, /* an address; GID 0 of an iWARP device is none */
    TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
};
struct place { /* what one end tells the other; both have one byte order here */
    uint32_t number;
    union ibv_gid gid;
};
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[2 * SIZE]; /* what is sent, and then what is received */

static void check(int error, const char *what)
{
    if (error)
        errx(1, "%s: %s", what, strerror(error));
}

/* The socket over which they tell each other: of a server that waits for one client, or of that. */
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

/* Also to wait for the other end: it answers when it is as far. */
static void tell(int fd, const struct place *own, struct place *peer)
{
    if (write(fd, own, sizeof *own) != sizeof *own ||
        recv(fd, peer, sizeof *peer, MSG_WAITALL) != sizeof *peer)
        errx(1, "the other end has gone");
}

/* From INIT on a queue pair can be found. */
static void open_qp(struct ibv_context *device)
{
    struct ibv_pd *pd = ibv_alloc_pd(device);
    struct ibv_cq *cq = ibv_create_cq(device, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {2, 2, 1, 1, 0}};
    init.send_cq = init.recv_cq = cq;
    qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!qp || !mr)
        err(1, "%s", qp ? "ibv_reg_mr" : "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    check(ibv_modify_qp(qp, &attr, TO_INIT), "to INIT");
}

/* In RTR it receives, in RTS it sends as well. */
static void connect_qp(const struct place *peer)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .min_rnr_timer = 12, /* 0.64 ms */
        .dest_qp_num = peer->number,
        .ah_attr = {{peer->gid, 0, GID_INDEX, 64, 0}, .is_global = 1, .port_num = 1},
    };
    check(ibv_modify_qp(qp, &rtr, TO_RTR), "to RTR");
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = 14, /* 67 ms, eight times: then a peer has gone */
                              .retry_cnt = 7,
                              .rnr_retry = 7}; /* a receive is waited for as long as it takes */
    check(ibv_modify_qp(qp, &rts, TO_RTS), "to RTS");
}

/* The receive of the next message is in its place before that can come. */
static void post(int sends)
{
    struct ibv_sge to = {(uintptr_t)memory + SIZE, SIZE, mr->lkey};
    struct ibv_sge from = {(uintptr_t)memory, SIZE, mr->lkey};
    struct ibv_recv_wr *no_receive, receive = {.sg_list = &to, .num_sge = 1};
    struct ibv_send_wr *no_send, send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
    check(ibv_post_recv(qp, &receive, &no_receive), "ibv_post_recv");
    if (sends)
        check(ibv_post_send(qp, &send, &no_send), "ibv_post_send");
}

/* Until a message has come in, and what was sent has arrived. */
static void await(int completions)
{
    struct ibv_wc wc;
    for (int n; completions > 0; completions -= n) {
        n = ibv_poll_cq(qp->send_cq, 1, &wc);
        if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
            errx(1, "%s", n < 0 ? "ibv_poll_cq failed" : ibv_wc_status_str(wc.status));
    }
}

int main(int argc, char *argv[])
{
    const char *server = argc == 3 ? argv[2] : NULL;
    struct place own, peer;
    if (argc < 2 || argc > 3 || atoi(argv[1]) < 1)
        return fputs("usage: rc_ping port [server]\n", stderr), 2;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *device = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    if (!device || ibv_query_gid(device, 1, GID_INDEX, &own.gid))
        errx(1, "no device can be opened, or it has no GID %d", GID_INDEX);
    open_qp(device);
    own.number = qp->qp_num;
    int fd = meet(argv[1], server);
    tell(fd, &own, &peer);
    connect_qp(&peer);
    post(0);
    tell(fd, &own, &peer); /* both are ready */
    for (int i = 0; i < COUNT; i++) {
        if (!server)
            await(i ? 2 : 1); /* the question, and that the answer before it has arrived */
        post(1);
        if (server)
            await(2);
    }
    printf("%d round trips\n", COUNT);
    tell(fd, &own, &peer); /* neither leaves before the other has what it sent */
    return ibv_destroy_qp(qp);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round trip between queue pairs that the program connects itself, without rdma_cm: the two ends
 * tell each other GID and number over a socket, and move their queue pairs through the states.
 *
 *     cc rc_ping.c $(pkg-config --cflags --libs libibverbs) -o rc_ping
 *     rc_ping [-g GID-INDEX] [-p PORT]                      answers one client
 *     rc_ping [-g GID-INDEX] [-p PORT] [-n COUNT] SERVER
 */
#include <err.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE 64

/* What one end tells the other; both are on machines of one byte order here. */
struct place {
    uint32_t number, psn;
    union ibv_gid gid;
};

static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[2 * SIZE]; /* what is sent, and then what is received */

static void wrong_usage(void)
{
    fputs("usage: rc_ping [-g gid-index] [-p port]\n"
          "       rc_ping [-g gid-index] [-p port] [-n count] server\n",
          stderr);
    exit(2);
}

/* The socket over which they tell each other: of a server that waits for one client, or of that. */
static int meet(const char *server, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = server ? 0 : AI_PASSIVE},
                    *found;
    int r = getaddrinfo(server, port, &hints, &found), yes = 1;
    if (r)
        errx(1, "%s: %s", server ? server : port, gai_strerror(r));
    int fd = socket(found->ai_family, found->ai_socktype, 0);
    if (fd < 0)
        err(1, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (server) {
        if (connect(fd, found->ai_addr, found->ai_addrlen))
            err(1, "%s", server);
    } else {
        int listener = fd;
        if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1))
            err(1, "port %s", port);
        fd = accept(listener, NULL, NULL);
        if (fd < 0)
            err(1, "accept");
        close(listener);
    }
    freeaddrinfo(found);
    return fd;
}

static void tell(int fd, const struct place *own, struct place *peer)
{
    if (write(fd, own, sizeof *own) != sizeof *own ||
        recv(fd, peer, sizeof *peer, MSG_WAITALL) != sizeof *peer)
        errx(1, "the other end has gone before it said where it is");
}

static void modify(struct ibv_qp_attr *attr, int mask, const char *to)
{
    int r = ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);
    if (r)
        errx(1, "to %s: %s", to, strerror(r));
}

/* From INIT on it can be found, in RTR it receives, in RTS it sends as well. */
static void connect_qp(const struct place *own, const struct place *peer, int gid_index)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->number,
        .rq_psn = peer->psn,
        .min_rnr_timer = 12, /* 0.64 ms */
        .ah_attr = {.port_num = 1,
                    .is_global = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
    };
    modify(&rtr,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "RTR");
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = 14, /* 67 ms, eight times: then a peer has gone */
                              .retry_cnt = 7,
                              .rnr_retry = 7, /* a receive is waited for as long as it takes */
                              .sq_psn = own->psn};
    modify(&rts,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
}

static void post_receive(void)
{
    struct ibv_sge to = {(uintptr_t)memory + SIZE, SIZE, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &to, .num_sge = 1};
    int r = ibv_post_recv(qp, &wr, &bad);
    if (r)
        errx(1, "ibv_post_recv: %s", strerror(r));
}

static void post_send(void)
{
    struct ibv_sge from = {(uintptr_t)memory, SIZE, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
    int r = ibv_post_send(qp, &wr, &bad);
    if (r)
        errx(1, "ibv_post_send: %s", strerror(r));
}

/* Until a message has come in, and what was sent has arrived. */
static void await(int completions)
{
    struct ibv_wc wc;
    while (completions > 0) {
        int n = ibv_poll_cq(qp->send_cq, 1, &wc);
        if (n < 0)
            errx(1, "ibv_poll_cq failed");
        if (n && wc.status != IBV_WC_SUCCESS)
            errx(1, "%s: %s", wc.opcode == IBV_WC_RECV ? "receive" : "send",
                 ibv_wc_status_str(wc.status));
        completions -= n;
    }
}

static void play(int count, int server)
{
    for (int i = 0; i < count; i++) {
        if (server)
            await(i ? 2 : 1); /* the question, and that the answer before it has arrived */
        memset(memory, i, SIZE);
        if (server && memcmp(memory, memory + SIZE, SIZE) != 0)
            errx(1, "message %d is not what it should be", i);
        post_receive(); /* in its place before the answer can come */
        post_send();
        if (!server)
            await(2);
    }
    if (server)
        await(1);
}

int main(int argc, char *argv[])
{
    const char *port = "20081";
    int gid_index = 1, count = 1000;
    for (int c; (c = getopt(argc, argv, "g:n:p:")) != -1;) {
        if (c == 'g')
            gid_index = atoi(optarg);
        else if (c == 'n')
            count = atoi(optarg);
        else if (c == 'p')
            port = optarg;
        else
            wrong_usage();
    }
    if (argc - optind > 1 || count < 1)
        wrong_usage();
    const char *server = argv[optind]; /* NULL: we are */

    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *device = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    if (!device)
        errx(1, "no device can be opened");
    struct ibv_pd *pd = ibv_alloc_pd(device);
    struct ibv_cq *cq = ibv_create_cq(device, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {2, 2, 1, 1, 0}};
    qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!qp || !mr)
        err(1, "%s", qp ? "ibv_reg_mr" : "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    modify(&attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
    post_receive();

    struct place own = {.number = qp->qp_num}, peer;
    if (ibv_query_gid(device, 1, gid_index, &own.gid))
        errx(1, "no GID has the index %d", gid_index);
    int fd = meet(server, port);
    tell(fd, &own, &peer);
    connect_qp(&own, &peer, gid_index);
    tell(fd, &own, &peer); /* both are ready */

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (server)
        write(fd, &count, sizeof count);
    else if (recv(fd, &count, sizeof count, MSG_WAITALL) != sizeof count)
        errx(1, "the client has gone");
    play(count, !server);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (server)
        printf("%d round trips, %.1f us each\n", count,
               ((double)(end.tv_sec - start.tv_sec) * 1e6 +
                (double)(end.tv_nsec - start.tv_nsec) / 1e3) /
                   count);
    tell(fd, &own, &peer); /* neither leaves before the other has what it sent */
    close(fd);
    ibv_destroy_qp(qp);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(device);
    ibv_free_device_list(devices);
    return 0;
}

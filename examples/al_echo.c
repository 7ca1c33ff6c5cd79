/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo by callbacks: the InfiniBand Access Layer, ibal(7). The server sends back what it gets;
 * the client sends a word as often as it is told, each time when the last one has come back. No
 * thread waits for a message: the work is done in callbacks, and main() sleeps until the end.
 *
 *     cc al_echo.c $(pkg-config --cflags --libs ibal) -o al_echo
 *     al_echo [-p PORT]                     the server, for one client
 *     al_echo [-p PORT] [-n TIMES] HOST WORD
 */
#include <iba/ib_al.h>

#include <complib/cl_waitobj.h>
#include <err.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096 };

static struct {
    ib_al_handle_t al;
    ib_ca_handle_t ca;
    ib_pd_handle_t pd;
    ib_cq_handle_t cq;
    ib_qp_handle_t qp;
    ib_mr_handle_t mr;
    net32_t lkey, rkey;
    cl_waitobj_handle_t end; /* signaled when the connection is over */
    const char *word;        /* the client's */
    unsigned long times, echoes;
    ib_rej_status_t refused;
    char in[BYTES], out[BYTES];
} me;

static void check(ib_api_status_t status, const char *what)
{
    if (status != IB_SUCCESS)
        errx(1, "%s: %s", what, ib_get_err_str(status));
}

/* ---- messages ---- */

static void receive(void)
{
    ib_local_ds_t ds = {(uintptr_t)me.in, BYTES, me.lkey};
    ib_recv_wr_t wr = {.num_ds = 1, .ds_array = &ds};
    check(ib_post_recv(me.qp, &wr, NULL), "ib_post_recv");
}

static void send_out(uint32_t length)
{
    ib_local_ds_t ds = {(uintptr_t)me.out, length, me.lkey};
    ib_send_wr_t wr = {
        .num_ds = 1, .ds_array = &ds, .wr_type = WR_SEND, .send_opt = IB_SEND_OPT_SIGNALED};
    check(ib_post_send(me.qp, &wr, NULL), "ib_post_send");
}

static void say_the_word(void)
{
    uint32_t length = (uint32_t)strnlen(me.word, BYTES);
    memcpy(me.out, me.word, length);
    send_out(length);
}

static void leave(void)
{
    ib_cm_dreq_t dreq = {.h_qp = me.qp};
    ib_cm_dreq(&dreq); /* if the peer was first, we hear of that */
    cl_waitobj_signal(me.end);
}

/* The memory of an answer is free again when its echo is there, or the next request. */
static void message(uint32_t length)
{
    receive();
    if (!me.word) {
        memcpy(me.out, me.in, length);
        send_out(length);
    } else if (length != strnlen(me.word, BYTES) || memcmp(me.in, me.word, length) != 0) {
        errx(1, "the echo is another word");
    } else if (++me.echoes < me.times) {
        say_the_word();
    } else {
        printf("%.*s, %lu times\n", (int)length, me.in, me.echoes);
        leave();
    }
}

/* Arm, then poll: what comes in between is seen by one of them. */
static void completed(const ib_cq_handle_t h_cq, void *context)
{
    ib_wc_t wc, *unused = &wc, *done;
    (void)context;
    ib_rearm_cq(h_cq, FALSE);
    wc.p_next = NULL;
    while (ib_poll_cq(h_cq, &unused, &done) == IB_SUCCESS) {
        if (wc.status == IB_WCS_SUCCESS && wc.wc_type == IB_WC_RECV)
            message(wc.length);
        else if (wc.status != IB_WCS_SUCCESS && wc.status != IB_WCS_WR_FLUSHED_ERR)
            warnx("a work request: %s", ib_get_wc_status_str(wc.status));
        unused = &wc;
    }
}

/* ---- the connection ---- */

static void peer_leaves(ib_cm_dreq_rec_t *rec)
{
    ib_cm_drep_t drep = {0};
    ib_cm_drep(rec->h_cm_dreq, &drep);
    cl_waitobj_signal(me.end);
}

static void requested(ib_cm_req_rec_t *rec)
{
    ib_cm_rep_t rep = {
        .h_qp = me.qp, .qp_type = IB_QPT_RELIABLE_CONN, .pfn_cm_dreq_cb = peer_leaves};
    ib_cm_rej_t rej = {.rej_status = IB_REJ_INSUF_QP};
    if (ib_cm_rep(rec->h_cm_req, &rep) != IB_SUCCESS)
        ib_cm_rej(rec->h_cm_req, &rej); /* we have a client already */
}

static void replied(ib_cm_rep_rec_t *rec)
{
    ib_cm_rtu_t rtu = {.pfn_cm_dreq_cb = peer_leaves};
    check(ib_cm_rtu(rec->h_cm_rep, &rtu), "ib_cm_rtu");
    say_the_word();
}

static void rejected(ib_cm_rej_rec_t *rec)
{
    me.refused = rec->rej_status;
    cl_waitobj_signal(me.end);
}

static ib_net64_t service(const char *port)
{
    return CL_HTON64(strtoull(port, NULL, 10));
}

static void serve(const char *port)
{
    ib_listen_handle_t listener;
    ib_cm_listen_t listen = {
        .svc_id = service(port), .pfn_cm_req_cb = requested, .qp_type = IB_QPT_RELIABLE_CONN};
    check(ib_cm_listen(me.al, &listen, NULL, &listener), "ib_cm_listen");
    cl_waitobj_wait_on(me.end, EVENT_NO_TIMEOUT, FALSE);
    check(ib_cm_cancel(listener, ib_sync_destroy), "ib_cm_cancel");
}

/* An address of IP is a GID: one of IPv4 in the way that IPv6 has for them. */
static ib_gid_t gid_of(const char *host)
{
    ib_gid_t gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *info;
    int r = getaddrinfo(host, NULL, &hints, &info);
    if (r)
        errx(1, "%s: %s", host, gai_strerror(r));
    if (info->ai_family == AF_INET)
        memcpy(&gid.raw[12], &((struct sockaddr_in *)info->ai_addr)->sin_addr, 4);
    else
        memcpy(&gid, &((struct sockaddr_in6 *)info->ai_addr)->sin6_addr, sizeof gid);
    freeaddrinfo(info);
    return gid;
}

static void talk(const char *host, const char *port)
{
    ib_path_rec_t path = {.dgid = gid_of(host)};
    ib_cm_req_t req = {
        .svc_id = service(port),
        .p_primary_path = &path,
        .pfn_cm_rep_cb = replied,
        .pfn_cm_rej_cb = rejected,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .h_qp = me.qp,
    };
    check(ib_cm_req(&req), "ib_cm_req");
    cl_waitobj_wait_on(me.end, EVENT_NO_TIMEOUT, FALSE);
    if (me.refused)
        errx(1, "%s, port %s: refused, reason %d", host, port, CL_NTOH16(me.refused));
    if (me.echoes < me.times)
        errx(1, "the server has left");
}

/* ---- from the layer to the queue pair, and back ---- */

static void set_up(void)
{
    ib_net64_t guids[16];
    size_t count = 16;
    check(ib_open_al(&me.al), "ib_open_al");
    check(ib_get_ca_guids(me.al, guids, &count), "ib_get_ca_guids");
    if (count == 0)
        errx(1, "no adapter");
    check(ib_open_ca(me.al, guids[0], NULL, NULL, &me.ca), "ib_open_ca");
    check(ib_alloc_pd(me.ca, IB_PDT_NORMAL, NULL, &me.pd), "ib_alloc_pd");

    ib_cq_create_t cq = {.size = 16, .pfn_comp_cb = completed};
    check(ib_create_cq(me.ca, &cq, NULL, NULL, &me.cq), "ib_create_cq");
    check(ib_rearm_cq(me.cq, FALSE), "ib_rearm_cq");
    ib_mr_create_t mr = {me.in, sizeof me.in + sizeof me.out, IB_AC_LOCAL_WRITE};
    check(ib_reg_mem(me.pd, &mr, &me.lkey, &me.rkey, &me.mr), "ib_reg_mem");
    ib_qp_create_t qp = {
        .qp_type = IB_QPT_RELIABLE_CONN,
        .sq_depth = 4,
        .rq_depth = 4,
        .sq_sge = 1,
        .rq_sge = 1,
        .h_sq_cq = me.cq,
        .h_rq_cq = me.cq,
    };
    check(ib_create_qp(me.pd, &qp, NULL, NULL, &me.qp), "ib_create_qp");
    ib_qp_mod_t init = {.req_state = IB_QPS_INIT, .state.init = {.primary_port = 1}};
    check(ib_modify_qp(me.qp, &init), "ib_modify_qp");
    receive();
}

/* The layer takes along what is in it; none of our callbacks runs when it is closed. */
static void tear_down(void)
{
    check(ib_destroy_qp(me.qp, ib_sync_destroy), "ib_destroy_qp");
    check(ib_close_al(me.al), "ib_close_al");
    cl_waitobj_destroy(me.end);
}

int main(int argc, char **argv)
{
    const char *port = "7472";
    me.times = 1;
    int wrong = 0;
    for (int o; (o = getopt(argc, argv, "p:n:")) != -1;) {
        if (o == 'p')
            port = optarg;
        else if (o == 'n')
            me.times = strtoul(optarg, NULL, 10);
        else
            wrong = 1;
    }
    if (wrong || (optind != argc && optind + 2 != argc)) {
        fputs("usage: al_echo [-p port], or al_echo [-p port] [-n times] host word\n", stderr);
        return 2;
    }
    if (cl_waitobj_create(TRUE, &me.end) != CL_SUCCESS)
        errx(1, "no wait object");
    me.word = optind < argc ? argv[optind + 1] : NULL;
    set_up();
    if (me.word)
        talk(argv[optind], port);
    else
        serve(port);
    tear_down();
    return 0;
}

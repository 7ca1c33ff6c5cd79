/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shortest way to a connection: one message each way between two synchronous endpoints. Every
 * call returns when its work is done, as with blocking sockets.
 *
 *     cc endpoint.c $(pkg-config --cflags --libs librdmacm libibverbs) -o endpoint
 *     endpoint [-a ADDRESS] [-p PORT]            waits for a message, answers, ends
 *     endpoint [-p PORT] SERVER TEXT             sends a message, prints the answer
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define SIZE 256

static char received[SIZE], sent[SIZE];

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: endpoint [-a address] [-p port]\n"
                    "       endpoint [-p port] server text\n");
    exit(2);
}

/* An endpoint is an id with a device, and with a queue pair and two completion queues of its own.
 */
static struct rdma_cm_id *create_endpoint(const char *node, const char *port, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info;
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct rdma_cm_id *id;
    int code = rdma_getaddrinfo(node, port, &hints, &info);
    if (code)
        errx(1, "%s, port %s: %s", node, port, code == -1 ? strerror(errno) : gai_strerror(code));
    if (rdma_create_ep(&id, info, NULL, &attr))
        err(1, "%s, port %s: rdma_create_ep", node, port);
    rdma_freeaddrinfo(info);
    return id;
}

/* Memory that messages come from or go to is registered first. */
static struct ibv_mr *register_messages(struct rdma_cm_id *id, char *buf)
{
    struct ibv_mr *mr = rdma_reg_msgs(id, buf, SIZE);
    if (!mr)
        err(1, "rdma_reg_msgs");
    return mr;
}

static void receive(struct rdma_cm_id *id)
{
    struct ibv_wc wc;
    if (rdma_get_recv_comp(id, &wc) < 0)
        err(1, "rdma_get_recv_comp");
    if (wc.status != IBV_WC_SUCCESS)
        errx(1, "receive: %s", ibv_wc_status_str(wc.status));
    received[wc.byte_len < SIZE ? wc.byte_len : SIZE - 1] = '\0';
}

static void send_text(struct rdma_cm_id *id, struct ibv_mr *mr)
{
    struct ibv_wc wc;
    if (rdma_post_send(id, NULL, sent, strlen(sent) + 1, mr, IBV_SEND_SIGNALED))
        err(1, "rdma_post_send");
    if (rdma_get_send_comp(id, &wc) < 0)
        err(1, "rdma_get_send_comp");
    if (wc.status != IBV_WC_SUCCESS)
        errx(1, "send: %s", ibv_wc_status_str(wc.status));
}

static void serve(struct rdma_cm_id *id, struct ibv_mr *mr)
{
    if (rdma_accept(id, NULL))
        err(1, "rdma_accept");
    receive(id);
    printf("%s\n", received);
    for (size_t i = 0; received[i]; i++)
        sent[i] = (char)toupper((unsigned char)received[i]);
    send_text(id, mr);
}

static void ask(struct rdma_cm_id *id, struct ibv_mr *mr, const char *text)
{
    if (rdma_connect(id, NULL))
        err(1, "rdma_connect");
    memcpy(sent, text, strlen(text));
    send_text(id, mr);
    receive(id);
    printf("%s\n", received);
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
    int arguments = argc - optind;
    if ((arguments != 0 && arguments != 2) || (arguments == 2 && strlen(argv[optind + 1]) >= SIZE))
        usage();

    struct rdma_cm_id *listener = NULL, *id;
    if (arguments == 0) {
        listener = create_endpoint(address, port, RAI_PASSIVE);
        if (rdma_listen(listener, 1))
            err(1, "%s, port %s: rdma_listen", address, port);
        if (rdma_get_request(listener, &id))
            err(1, "rdma_get_request");
    } else {
        id = create_endpoint(argv[optind], port, 0);
    }
    struct ibv_mr *send_mr = register_messages(id, sent);
    struct ibv_mr *receive_mr = register_messages(id, received);

    /* A message may come as soon as there is a connection, so its place is made ready before. */
    if (rdma_post_recv(id, NULL, received, SIZE, receive_mr))
        err(1, "rdma_post_recv");
    if (listener)
        serve(id, send_mr);
    else
        ask(id, send_mr, argv[optind + 1]);

    rdma_disconnect(id);
    rdma_dereg_mr(receive_mr);
    rdma_dereg_mr(send_mr);
    rdma_destroy_ep(id);
    if (listener)
        rdma_destroy_ep(listener);
    return 0;
}

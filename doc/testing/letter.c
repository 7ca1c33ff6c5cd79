/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A letter: the server lends a page of memory, the client writes the same line on it 64 times and
 * says goodbye. It works, and has mistakes; ../testing.md finds them.
 *
 *     cc -g letter.c $(pkg-config --cflags --libs librdmacm libibverbs) -o letter
 *     letter &
 *     letter localhost 'all is well'
 */
#include <err.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 64
#define WIDTH 64
#define PAGE  (LINES * WIDTH)

struct offer {
    uint64_t address; /* of the page, for the client */
    uint32_t key;
};

static char page[PAGE];

static struct rdma_cm_id *create_endpoint(const char *node, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info;
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct rdma_cm_id *id;
    if (rdma_getaddrinfo(node, "20080", &hints, &info))
        errx(1, "%s is not known", node);
    if (rdma_create_ep(&id, info, NULL, &attr))
        err(1, "rdma_create_ep");
    rdma_freeaddrinfo(info);
    return id;
}

static void post_receive(struct rdma_cm_id *id)
{
    struct ibv_recv_wr wr = {0}, *bad;
    if (rdma_seterrno(ibv_post_recv(id->qp, &wr, &bad)))
        err(1, "ibv_post_recv");
}

static void await(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
    struct ibv_wc wc;
    void *context;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (rdma_seterrno(ibv_req_notify_cq(cq, 0)))
            err(1, "ibv_req_notify_cq");
        if (ibv_get_cq_event(channel, &cq, &context))
            err(1, "ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
    }
    if (n < 0 || wc.status != IBV_WC_SUCCESS)
        errx(1, "work failed");
}

/* ---- the server ---- */

static int read_letter(void)
{
    int same = 0;
    for (int i = 0; i < LINES; i++)
        same += !memcmp(page, page + (size_t)i * WIDTH, WIDTH) && page[0];
    printf("%d of %d lines say: %.*s\n", same, LINES, WIDTH, page);
    fflush(stdout);
    return same == LINES ? 0 : 1;
}

static int serve(void)
{
    struct rdma_cm_id *listener = create_endpoint(NULL, RAI_PASSIVE), *id;
    if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
        err(1, "nobody came");
    struct ibv_mr *mr =
        ibv_reg_mr(id->pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!mr)
        err(1, "ibv_reg_mr");
    struct offer offer = {.address = (uintptr_t)page, .key = mr->rkey};
    struct rdma_conn_param param = {.private_data = &offer, .private_data_len = sizeof(offer)};
    if (rdma_accept(id, &param))
        err(1, "rdma_accept");
    while (*(volatile char *)(page + PAGE - 1) == 0)
        ;
    int result = read_letter();
    post_receive(id); /* the goodbye */
    await(id->recv_cq_channel, id->recv_cq);
    rdma_disconnect(id);
    ibv_dereg_mr(mr);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
    return result;
}

/* ---- the client ---- */

static int write_letter(const char *node, const char *text)
{
    struct rdma_cm_id *id = create_endpoint(node, 0);
    if (rdma_connect(id, NULL))
        err(1, "rdma_connect");
    struct offer offer;
    memcpy(&offer, id->event->param.conn.private_data, sizeof(offer));
    memset(page, ' ', PAGE);
    for (int i = 0; i < LINES; i++)
        memcpy(page + (size_t)i * WIDTH, text, strnlen(text, WIDTH));
    struct ibv_mr *mr = ibv_reg_mr(id->pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {.addr = (uintptr_t)page, .length = PAGE, .lkey = mr->lkey};
    struct ibv_send_wr goodbye = {.opcode = IBV_WR_SEND}, *bad;
    struct ibv_send_wr letter = {
        .next = &goodbye, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    letter.wr.rdma.remote_addr = offer.address;
    letter.wr.rdma.rkey = offer.key;
    if (rdma_seterrno(ibv_post_send(id->qp, &letter, &bad)))
        err(1, "ibv_post_send");
    for (int i = 0; i < 2; i++)
        await(id->send_cq_channel, id->send_cq);
    rdma_disconnect(id);
    ibv_dereg_mr(mr);
    rdma_destroy_ep(id);
    return 0;
}

int main(int argc, char *argv[])
{
    if (argc != 1 && argc != 3)
        errx(2, "usage: letter [SERVER TEXT]");
    return argc == 1 ? serve() : write_letter(argv[1], argv[2]);
}

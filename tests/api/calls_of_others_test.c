/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of programs that do not run here, for want of their hardware or of the rest of them, in
 * their order, on a RoCE device: Mooncake's transfer engine, Ceph's messenger, rust-ibverbs, SPDK's
 * NVMe over Fabrics, and what eRPC hears.
 */
#include "by_number.h"
#include "cm_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)
#define INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR                                                                                        \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS                                                                                        \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
     IBV_QP_MAX_QP_RD_ATOMIC)

/** What differs between them on the way to RTS. */
struct way {
    unsigned access;
    uint8_t depth, hop_limit, rnr_timer, timeout, retry, rnr_retry, traffic_class, sl;
};

static enum ibv_mtu active_mtu(void)
{
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    return port.active_mtu;
}

static void to_init(struct ibv_qp *qp, const struct way *way)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = way->access};
    assert_int_equal(ibv_modify_qp(qp, &attr, INIT), 0);
}

static void to_rts(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid,
                   const struct way *way)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = active_mtu(),
        .dest_qp_num = peer,
        .max_dest_rd_atomic = way->depth,
        .min_rnr_timer = way->rnr_timer,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .sl = way->sl,
                    .grh = {.dgid = *gid,
                            .hop_limit = way->hop_limit,
                            .traffic_class = way->traffic_class}},
    };
    assert_int_equal(ibv_modify_qp(qp, &attr, RTR), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = way->timeout,
                                .retry_cnt = way->retry,
                                .rnr_retry = way->rnr_retry,
                                .max_rd_atomic = way->depth};
    assert_int_equal(ibv_modify_qp(qp, &attr, RTS), 0);
}

static void move(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* ---- Mooncake ---- */

/** It takes the first GID of type RoCE v2, or of InfiniBand. */
static union ibv_gid probe_gid(void)
{
    struct ibv_gid_entry e;
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
    assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
    return e.gid;
}

struct endpoint {
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    char *memory;
};

#define SLICE  (64 << 10)
#define SLICES 8

static const struct way mooncake = {.access = ALL,
                                    .depth = 16,
                                    .hop_limit = 16,
                                    .rnr_timer = 12,
                                    .timeout = 14,
                                    .retry = 7,
                                    .rnr_retry = 7};

static void endpoint_make(struct endpoint *e, struct ibv_cq *cq)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 256, .max_recv_wr = 256, 4, 4, .max_inline_data = 64}};
        e->qp[i] = ibv_create_qp(pd, &init);
        assert_non_null(e->qp[i]);
    }
    e->memory = calloc(SLICES, SLICE);
    e->mr = ibv_reg_mr(pd, e->memory, (size_t)SLICES * SLICE, ALL | IBV_ACCESS_RELAXED_ORDERING);
    assert_non_null(e->mr);
}

/** It resets first, whatever the state is, and so it establishes a connection anew, too. */
static void endpoints_meet(struct endpoint *a, struct endpoint *b)
{
    union ibv_gid gid = probe_gid();
    for (int i = 0; i < 2; i++) {
        move(a->qp[i], IBV_QPS_RESET);
        to_init(a->qp[i], &mooncake);
        to_rts(a->qp[i], b->qp[i]->qp_num, &gid, &mooncake);
        move(b->qp[i], IBV_QPS_RESET);
        to_init(b->qp[i], &mooncake);
        to_rts(b->qp[i], a->qp[i]->qp_num, &gid, &mooncake);
    }
}

static void transfer(struct endpoint *a, struct endpoint *b, struct ibv_cq *cq,
                     enum ibv_wr_opcode op)
{
    for (int q = 0; q < 2; q++) {
        struct ibv_sge sge[SLICES];
        struct ibv_send_wr wr[SLICES], *bad = NULL;
        int n = 0;
        for (int i = q; i < SLICES; i += 2, n++) {
            sge[n] = (struct ibv_sge){(uintptr_t)a->memory + (size_t)i * SLICE, SLICE, a->mr->lkey};
            wr[n] = (struct ibv_send_wr){
                .wr_id = (uint64_t)i,
                .sg_list = &sge[n],
                .num_sge = 1,
                .opcode = op,
                .send_flags = IBV_SEND_SIGNALED,
                .wr.rdma = {(uintptr_t)b->memory + (size_t)i * SLICE, b->mr->rkey}};
            if (n)
                wr[n - 1].next = &wr[n];
        }
        assert_int_equal(ibv_post_send(a->qp[q], wr, &bad), 0);
    }
    for (int i = 0; i < SLICES; i++)
        assert_int_equal(cm_poll(cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(a->memory, b->memory, (size_t)SLICES * SLICE);
}

static void transfer_engine(void **state)
{
    struct endpoint a, b;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
    (void)state;
    assert_true(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4096, NULL, channel, 0);
    assert_non_null(cq);
    endpoint_make(&a, cq);
    endpoint_make(&b, cq);
    for (int round = 1; round <= 3; round++) {
        endpoints_meet(&a, &b);
        memset(a.memory, round, (size_t)SLICES * SLICE);
        transfer(&a, &b, cq, IBV_WR_RDMA_WRITE);
        memset(b.memory, -round, (size_t)SLICES * SLICE);
        transfer(&a, &b, cq, IBV_WR_RDMA_READ);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(a.qp[i]), 0);
        assert_int_equal(ibv_destroy_qp(b.qp[i]), 0);
    }
    assert_int_equal(ibv_dereg_mr(a.mr), 0);
    assert_int_equal(ibv_dereg_mr(b.mr), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    free(a.memory);
    free(b.memory);
}

/* ---- Ceph ---- */

#define BEACON 0xbeac04
#define CHUNK  4096

static const struct way ceph = {.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE,
                                .depth = 1,
                                .hop_limit = 6,
                                .rnr_timer = 0x12,
                                .timeout = 0x12,
                                .retry = 7,
                                .rnr_retry = 7,
                                .traffic_class = 96,
                                .sl = 3};

struct messenger {
    struct ibv_srq *srq;
    struct ibv_cq *tx, *rx;
    struct ibv_mr *mr;
    char chunks[8][CHUNK];
};

static void messenger_make(struct messenger *m)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 64, .max_sge = 1}};
    m->srq = ibv_create_srq(pd, &srq);
    m->tx = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    m->rx = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    m->mr = ibv_reg_mr(pd, m->chunks, sizeof m->chunks, ALL);
    assert_true(m->srq && m->tx && m->rx && m->mr);
    for (int i = 4; i < 8; i++) {
        struct ibv_sge sge = {(uintptr_t)m->chunks[i], CHUNK, m->mr->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = (uintptr_t)m->chunks[i], NULL, &sge, 1};
        assert_int_equal(ibv_post_srq_recv(m->srq, &wr, &bad), 0);
    }
}

static struct ibv_qp *messenger_qp(struct messenger *m)
{
    struct ibv_qp_init_attr init = {.send_cq = m->tx,
                                    .recv_cq = m->rx,
                                    .srq = m->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 32, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    to_init(qp, &ceph);
    return qp;
}

static void messenger_send(struct messenger *m, struct ibv_qp *qp, int chunk, uint64_t id)
{
    struct ibv_sge sge = {(uintptr_t)m->chunks[chunk], CHUNK, m->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/** A queue pair leaves by way of ERR: a beacon behind its work, and an event of its SRQ. */
static void messenger_leave(struct messenger *m, struct ibv_qp *qp)
{
    struct ibv_async_event e;
    move(qp, IBV_QPS_ERR);
    messenger_send(m, qp, 0, BEACON);
    struct ibv_wc wc = cm_poll(m->tx);
    assert_int_equal(wc.wr_id, BEACON);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    do {
        struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 10000), 1);
        assert_int_equal(ibv_get_async_event(ctx, &e), 0);
        ibv_ack_async_event(&e);
    } while (e.event_type != IBV_EVENT_QP_LAST_WQE_REACHED || e.element.qp != qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void messenger(void **state)
{
    static struct messenger m;
    union ibv_gid gid = probe_gid();
    (void)state;
    messenger_make(&m);
    struct ibv_qp *a = messenger_qp(&m), *b = messenger_qp(&m);
    to_rts(a, b->qp_num, &gid, &ceph);
    to_rts(b, a->qp_num, &gid, &ceph);
    for (int i = 0; i < 4; i++) {
        memset(m.chunks[0], 'a' + i, CHUNK);
        messenger_send(&m, i % 2 ? a : b, 0, 1);
        struct ibv_wc wc = cm_poll(m.rx);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.qp_num, (i % 2 ? b : a)->qp_num);
        assert_int_equal(((char *)(uintptr_t)wc.wr_id)[CHUNK - 1], 'a' + i);
        assert_int_equal(cm_poll(m.tx).status, IBV_WC_SUCCESS);
    }
    messenger_leave(&m, a);
    messenger_leave(&m, b);
    assert_int_equal(ibv_destroy_srq(m.srq), 0);
    assert_int_equal(ibv_destroy_cq(m.tx), 0);
    assert_int_equal(ibv_destroy_cq(m.rx), 0);
    assert_int_equal(ibv_dereg_mr(m.mr), 0);
}

/* ---- rust-ibverbs ---- */

/** Its first example: one queue pair shakes hands with itself. */
static void loopback(void **state)
{
    static const struct way way = {.access = IBV_ACCESS_LOCAL_WRITE,
                                   .depth = 1,
                                   .hop_limit = 0xff,
                                   .rnr_timer = 16,
                                   .timeout = 4,
                                   .retry = 6,
                                   .rnr_retry = 6};
    struct ibv_gid_entry gids[8];
    uint64_t memory[2] = {0x42, 0};
    bool sent = false, received = false;
    (void)state;
    assert_true(ibv_query_gid_table(ctx, gids, 8, 0) > 0);
    struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, ALL);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_true(cq && mr && qp);
    to_init(qp, &way);
    to_rts(qp, qp->qp_num, &gids[0].gid, &way);
    struct ibv_sge in = {(uintptr_t)&memory[1], 8, mr->lkey};
    struct ibv_sge out = {(uintptr_t)&memory[0], 8, mr->lkey};
    struct ibv_recv_wr *rbad, rwr = {.wr_id = 2, .sg_list = &in, .num_sge = 1};
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .sg_list = &out,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
    assert_int_equal(ibv_post_recv(qp, &rwr, &rbad), 0);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = cm_poll(cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        sent |= wc.wr_id == 1;
        received |= wc.wr_id == 2;
    }
    assert_true(sent && received && memory[1] == 0x42);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- SPDK ---- */

#define CAPSULE 64
#define BLOCK   4096

/** A controller, or a host, with one queue pair. */
struct fabric {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char command[CAPSULE], response[CAPSULE], block[BLOCK];
};

/** The domains are those of all devices that rdma_cm knows, made before any id has one. */
static struct ibv_pd *domain_of(struct ibv_context *verbs)
{
    int n = 0;
    struct ibv_context **all = rdma_get_devices(&n);
    struct ibv_pd *found = NULL;
    assert_true(all && n > 0);
    for (int i = 0; i < n; i++)
        if (all[i] == verbs)
            found = ibv_alloc_pd(all[i]);
    rdma_free_devices(all);
    assert_non_null(found);
    return found;
}

static void fabric_qp(struct fabric *f, struct rdma_cm_id *id)
{
    f->id = id;
    f->pd = domain_of(id->verbs);
    f->cq = ibv_create_cq(id->verbs, 64, f, NULL, 0);
    struct ibv_qp_init_attr init = {
        .qp_context = f,
        .send_cq = f->cq,
        .recv_cq = f->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 32, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2}};
    assert_int_equal(rdma_create_qp(id, f->pd, &init), 0);
    f->mr = ibv_reg_mr(f->pd, f, sizeof *f, ALL);
    assert_non_null(f->mr);
}

static void fabric_recv(struct fabric *f, char *to)
{
    struct ibv_sge sge = {(uintptr_t)to, CAPSULE, f->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(f->id->qp, &wr, &bad), 0);
}

static struct ibv_send_wr fabric_wr(struct ibv_sge *sge, enum ibv_wr_opcode op)
{
    return (struct ibv_send_wr){
        .sg_list = sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
}

/** A command of the host; the controller moves the block, and answers. */
static void io(struct fabric *host, struct fabric *target, enum ibv_wr_opcode data)
{
    struct ibv_send_wr *bad;
    struct ibv_sge c = {(uintptr_t)host->command, CAPSULE, host->mr->lkey};
    struct ibv_sge b = {(uintptr_t)target->block, BLOCK, target->mr->lkey};
    struct ibv_sge r = {(uintptr_t)target->response, CAPSULE, target->mr->lkey};
    struct ibv_send_wr command = fabric_wr(&c, IBV_WR_SEND), block = fabric_wr(&b, data),
                       response = fabric_wr(&r, IBV_WR_SEND);
    fabric_recv(target, target->command);
    fabric_recv(host, host->response);
    assert_int_equal(ibv_post_send(host->id->qp, &command, &bad), 0);
    assert_int_equal(cm_poll(target->cq).opcode, IBV_WC_RECV);
    block.wr.rdma.remote_addr = (uintptr_t)host->block;
    block.wr.rdma.rkey = host->mr->rkey;
    if (data == IBV_WR_RDMA_WRITE)
        block.next = &response;
    assert_int_equal(ibv_post_send(target->id->qp, &block, &bad), 0);
    assert_int_equal(cm_poll(target->cq).status, IBV_WC_SUCCESS);
    if (data == IBV_WR_RDMA_READ)
        assert_int_equal(ibv_post_send(target->id->qp, &response, &bad), 0);
    assert_int_equal(cm_poll(target->cq).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) /* its command, and the answer */
        assert_int_equal(cm_poll(host->cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(host->block, target->block, BLOCK);
}

static void fabric_drop(struct fabric *f)
{
    rdma_destroy_qp(f->id);
    assert_int_equal(rdma_destroy_id(f->id), 0);
    assert_int_equal(ibv_dereg_mr(f->mr), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
}

static void nvme_over_fabrics(void **state)
{
    static struct fabric host, target;
    struct cm_sides s;
    char words[32] = "nvmf";
    struct rdma_conn_param param = {.private_data = words,
                                    .private_data_len = sizeof words,
                                    .initiator_depth = 16,
                                    .responder_resources = 16,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
    rdma_destroy_qp(id);
    fabric_qp(&host, id);
    assert_int_equal(rdma_connect(id, &param), 0);
    struct rdma_cm_event *e = cm_next(s.b);
    assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(e->param.conn.private_data_len, sizeof words);
    assert_int_equal(e->param.conn.rnr_retry_count, 7);
    id = e->id;
    assert_int_equal(rdma_ack_cm_event(e), 0);
    fabric_qp(&target, id);
    assert_int_equal(rdma_accept(id, &param), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);

    memset(target.block, 'r', BLOCK);
    io(&host, &target, IBV_WR_RDMA_WRITE);
    memset(host.block, 'w', BLOCK);
    io(&host, &target, IBV_WR_RDMA_READ);

    /* The host leaves: the target drains its queues, which only it can end. */
    fabric_recv(&target, target.command);
    assert_int_equal(rdma_disconnect(host.id), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(rdma_disconnect(target.id), 0);
    assert_int_equal(cm_poll(target.cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    fabric_drop(&host);
    fabric_drop(&target);
    cm_close(&s);
}

/* ---- eRPC ---- */

/** It knows datagrams only. */
static void datagrams(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 60}};
    (void)state;
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_true(init.cap.max_inline_data >= 60);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(transfer_engine), cmocka_unit_test(messenger),
        cmocka_unit_test(loopback),        cmocka_unit_test(nvme_over_fabrics),
        cmocka_unit_test(datagrams),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return ends_run(tests);
}

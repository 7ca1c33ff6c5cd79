/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct ibv_context *ctx;
struct ibv_pd *pd;
uint8_t gid_index;
struct peer a, b;

void open_device(const char *name, uint8_t index)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    unsigned i = 0;
    while (list[i] && strcmp(ibv_get_device_name(list[i]), name) != 0)
        i++;
    ctx = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    gid_index = index;
}

void close_device(void)
{
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
}

struct ibv_ah *handle(const union ibv_gid *gid)
{
    struct ibv_ah_attr attr = {
        .port_num = 1, .is_global = 1, .grh = {.sgid_index = gid_index, .hop_limit = 1}};
    if (gid)
        attr.grh.dgid = *gid;
    else
        assert_int_equal(ibv_query_gid(ctx, 1, gid_index, &attr.grh.dgid), 0);
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    assert_non_null(ah);
    return ah;
}

void to_init(struct peer *p)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    assert_int_equal(ibv_modify_qp(p->qp, &attr, INIT), 0);
}

void move(struct peer *p, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    bool psn = to == IBV_QPS_RTS && p->qp->state == IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | (psn ? IBV_QP_SQ_PSN : 0)), 0);
}

enum ibv_qp_state state_of(struct peer *p)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    assert_int_equal(ibv_query_qp(p->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

void to_rts(struct peer *p)
{
    to_init(p);
    move(p, IBV_QPS_RTR);
    move(p, IBV_QPS_RTS);
}

void make_with(struct peer *p, struct ibv_srq *srq, uint32_t flags)
{
    struct ibv_qp_init_attr_ex init = {
        .cap = {64, 64, 2, 2, 64},
        .qp_type = IBV_QPT_UD,
        .srq = srq,
        .pd = pd,
        .create_flags = flags,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
        .comp_mask =
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS,
    };
    memset(p->data, 0, sizeof(p->data));
    p->channel = ibv_create_comp_channel(ctx);
    p->cq = ibv_create_cq(ctx, 256, NULL, p->channel, 0);
    init.send_cq = init.recv_cq = p->cq;
    p->qp = ibv_create_qp_ex(ctx, &init);
    assert_non_null(p->qp);
    assert_int_equal(p->qp->qp_type, IBV_QPT_UD);
    p->mr = ibv_reg_mr(pd, p->data, BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(p->mr);
    p->ah = handle(NULL);
}

void make(struct peer *p)
{
    make_with(p, NULL, 0);
    to_rts(p);
}

void drop(struct peer *p)
{
    assert_int_equal(ibv_destroy_ah(p->ah), 0);
    assert_int_equal(ibv_destroy_qp(p->qp), 0);
    assert_int_equal(ibv_dereg_mr(p->mr), 0);
    assert_int_equal(ibv_destroy_cq(p->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(p->channel), 0);
}

int setup(void **state)
{
    (void)state;
    make(&a);
    make(&b);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    drop(&a);
    drop(&b);
    return 0;
}

/** The receive of number @p i, @p len bytes at 256 * i. */
void receive(struct peer *p, unsigned i, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)(p->data + 256 * i), len, p->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = TO_RECV + i, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(p->qp, &wr, &bad), 0);
}

struct ibv_send_wr request(struct peer *from, const struct peer *to, struct ibv_sge *sge,
                           uint32_t len)
{
    *sge = (struct ibv_sge){(uintptr_t)(from->data + HALF), len, from->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = from->ah;
    wr.wr.ud.remote_qpn = to->qp->qp_num;
    wr.wr.ud.remote_qkey = QKEY;
    return wr;
}

int post(struct peer *from, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    return ibv_post_send(from->qp, wr, &bad);
}

struct ibv_wc next(struct peer *p)
{
    time_t end = time(NULL) + WAIT_S;
    struct ibv_wc wc;
    int n;
    while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
        if (time(NULL) > end)
            fail_msg("no completion came");
    assert_int_equal(n, 1);
    return wc;
}

void sent(struct peer *p)
{
    struct ibv_wc wc = next(p);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.opcode, IBV_WC_SEND);
}

struct ibv_wc received(struct peer *p, unsigned i)
{
    struct ibv_wc wc = next(p);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, TO_RECV + i);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    return wc;
}

/** Sends one byte of value @p v to a receive that is posted here. */
void pass(struct peer *from, struct peer *to, uint8_t v)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(from, to, &sge, 1);
    receive(to, 0, 256);
    from->data[HALF] = v;
    assert_int_equal(post(from, &wr), 0);
    if (from != to)
        sent(from);
    struct ibv_wc wc = next(to);
    if (from == to && wc.opcode == IBV_WC_SEND)
        wc = next(to);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(to->data[GRH], v);
    if (from == to && wc.opcode == IBV_WC_SEND)
        next(to);
}

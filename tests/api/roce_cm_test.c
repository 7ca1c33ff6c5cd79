/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_cm on a device with RoCE manners: InfiniBand's, and what tells the two kinds apart. */
#include "cm_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PRIVATE_MAX 239 /* 251, but for what the ends tell each other */

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr;
}

static void post_recv(struct rdma_cm_id *id, struct ibv_mr *mr)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, CM_BYTES, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
}

static void post(struct rdma_cm_id *id, struct ibv_mr *mr, enum ibv_wr_opcode op, uint64_t addr,
                 uint32_t rkey)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {addr, rkey}},
                       *bad;
    assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
}

static void send_once(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
    struct ibv_mr *s = cm_reg(from), *r = cm_reg(to);
    post_recv(to, r);
    memcpy(s->addr, "abcdefg", 8);
    post(from, s, IBV_WR_SEND, 0, 0);
    assert_int_equal(cm_poll(to->qp->recv_cq).status, IBV_WC_SUCCESS);
    assert_int_equal(cm_poll(from->qp->send_cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(r->addr, "abcdefg", 8);
    cm_unreg(s);
    cm_unreg(r);
}

struct pair {
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
};

static void connect_pair(struct pair *p)
{
    cm_open(&p->s, NULL);
    cm_connect(&p->s, &p->a, &p->b);
}

/** From where the active id is there. @param ca,cb  what each end says; NULL: nothing */
static void connect_with(struct pair *p, struct rdma_conn_param *ca, struct rdma_conn_param *cb)
{
    assert_int_equal(rdma_connect(p->a, ca), 0);
    p->b = cm_request(p->s.b);
    cm_add_qp(p->b);
    assert_int_equal(rdma_accept(p->b, cb), 0);
    assert_int_equal(cm_expect(p->s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(p->s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void drop_pair(struct pair *p)
{
    cm_drop(p->a);
    cm_drop(p->b);
    cm_close(&p->s);
}

static void both_ways(void **state)
{
    struct pair p;
    (void)state;
    connect_pair(&p);
    assert_int_equal(p.a->verbs->device->transport_type, IBV_TRANSPORT_IB);
    assert_ptr_equal(p.a->verbs, p.b->verbs);
    assert_int_equal(query(p.a->qp).qp_state, IBV_QPS_RTS);
    assert_int_equal(query(p.b->qp).qp_state, IBV_QPS_RTS);
    assert_int_equal(query(p.a->qp).dest_qp_num, p.b->qp->qp_num);
    assert_int_equal(query(p.b->qp).dest_qp_num, p.a->qp->qp_num);
    assert_int_equal(query(p.b->qp).timeout, 19);
    send_once(p.a, p.b);
    send_once(p.b, p.a);
    drop_pair(&p);
}

/** The end of a connection is an event; the QP stays until its program moves it. */
static void the_end_is_an_event(void **state)
{
    struct pair p;
    (void)state;
    connect_pair(&p);
    struct ibv_mr *mr = cm_reg(p.a);
    struct ibv_wc wc;
    post_recv(p.a, mr);
    assert_int_equal(rdma_disconnect(p.b), 0);
    assert_int_equal(query(p.b->qp).qp_state, IBV_QPS_ERR);
    assert_int_equal(cm_expect(p.s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(p.s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(query(p.a->qp).qp_state, IBV_QPS_RTS);
    assert_int_equal(ibv_poll_cq(p.a->qp->recv_cq, 1, &wc), 0);
    assert_int_equal(rdma_disconnect(p.a), 0);
    assert_int_equal(query(p.a->qp).qp_state, IBV_QPS_ERR);
    assert_int_equal(cm_poll(p.a->qp->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
    cm_quiet(p.s.a, 20);
    cm_unreg(mr);
    drop_pair(&p);
}

/** What is posted behind the end fails when the retries are over, not before. */
static void nobody_acknowledges(void **state)
{
    uint8_t shortest = 1;
    struct pair p;
    (void)state;
    cm_open(&p.s, NULL);
    p.a = cm_prepare(p.s.a, &p.s.addr);
    assert_int_equal(rdma_set_option(p.a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &shortest, 1),
                     0);
    connect_with(&p, &(struct rdma_conn_param){.retry_count = 1}, NULL);
    assert_int_equal(query(p.a->qp).timeout, 1);
    assert_int_equal(query(p.a->qp).retry_cnt, 1);
    assert_int_equal(query(p.b->qp).retry_cnt, 1);
    struct ibv_mr *mr = cm_reg(p.a);
    rdma_destroy_qp(p.b);
    assert_int_equal(cm_expect(p.s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    post(p.a, mr, IBV_WR_SEND, 0, 0);
    assert_int_equal(cm_poll(p.a->qp->send_cq).status, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(query(p.a->qp).qp_state, IBV_QPS_ERR);
    cm_unreg(mr);
    drop_pair(&p);
}

/** A Write to a key that there is not is the requester's own error, which it is not over TCP. */
static void a_wrong_key(void **state)
{
    struct pair p;
    (void)state;
    connect_pair(&p);
    struct ibv_mr *mr = cm_reg(p.a), *other = cm_reg(p.b);
    post_recv(p.b, other);
    post(p.a, mr, IBV_WR_RDMA_WRITE, (uintptr_t)other->addr, other->rkey + 1);
    assert_int_equal(cm_poll(p.a->qp->send_cq).status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(cm_poll(p.b->qp->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
    cm_unreg(mr);
    cm_unreg(other);
    drop_pair(&p);
}

/** What a program that asks for no time-out of RNR gets for a Send without a receive. */
static void no_receive(void **state)
{
    struct pair p;
    (void)state;
    cm_open(&p.s, NULL);
    p.a = cm_prepare(p.s.a, &p.s.addr);
    connect_with(&p, &(struct rdma_conn_param){.rnr_retry_count = 7},
                 &(struct rdma_conn_param){.rnr_retry_count = 1});
    assert_int_equal(query(p.a->qp).rnr_retry, 1); /* the peer's word */
    assert_int_equal(query(p.b->qp).rnr_retry, 7);
    struct ibv_mr *mr = cm_reg(p.a);
    post(p.a, mr, IBV_WR_SEND, 0, 0);
    assert_int_equal(cm_poll(p.a->qp->send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    cm_unreg(mr);
    drop_pair(&p);
}

/* ---- what the ends tell each other ---- */

static void words(void **state)
{
    struct pair p;
    char data[PRIVATE_MAX + 1];
    struct rdma_conn_param param = {.private_data = data,
                                    .private_data_len = PRIVATE_MAX + 1,
                                    .initiator_depth = 3,
                                    .responder_resources = 4,
                                    .retry_count = 5,
                                    .rnr_retry_count = 6};
    (void)state;
    memset(data, 'p', sizeof data);
    cm_open(&p.s, NULL);
    p.a = cm_prepare(p.s.a, &p.s.addr);
    assert_int_equal(rdma_connect(p.a, &param), -1);
    assert_int_equal(errno, EINVAL);
    param.private_data_len = PRIVATE_MAX;
    assert_int_equal(rdma_connect(p.a, &param), 0);
    struct rdma_cm_event *e = cm_next(p.s.b);
    assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param *got = &e->param.conn;
    assert_int_equal(got->private_data_len, PRIVATE_MAX);
    assert_memory_equal(got->private_data, data, PRIVATE_MAX);
    assert_int_equal(got->initiator_depth, 4);
    assert_int_equal(got->responder_resources, 3);
    assert_int_equal(got->retry_count, 5);
    assert_int_equal(got->rnr_retry_count, 6);
    assert_int_equal(got->qp_num, p.a->qp->qp_num);
    p.b = e->id;
    assert_int_equal(rdma_ack_cm_event(e), 0);
    cm_add_qp(p.b);
    assert_int_equal(
        rdma_accept(p.b, &(struct rdma_conn_param){.private_data = "yes", .private_data_len = 3}),
        0);
    e = cm_next(p.s.a);
    assert_int_equal(e->event, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(e->param.conn.private_data_len, 3);
    assert_memory_equal(e->param.conn.private_data, "yes", 3);
    assert_int_equal(e->param.conn.qp_num, p.b->qp->qp_num);
    assert_int_equal(rdma_ack_cm_event(e), 0);
    assert_int_equal(cm_expect(p.s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    drop_pair(&p);
}

static void rejected(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(rdma_reject(b, "no", 2), 0);
    struct rdma_cm_event *e = cm_next(s.a);
    assert_int_equal(e->event, RDMA_CM_EVENT_REJECTED);
    assert_int_equal(e->param.conn.private_data_len, 2);
    assert_memory_equal(e->param.conn.private_data, "no", 2);
    assert_int_equal(rdma_ack_cm_event(e), 0);
    assert_int_equal(query(a->qp).qp_state, IBV_QPS_ERR);
    assert_int_equal(rdma_destroy_id(b), 0);
    cm_drop(a);
    cm_close(&s);
}

/** An MPA Request or Reply of an iWARP device with private data. */
static void say(int fd, const char *key, uint8_t flags, const char *data, uint8_t len)
{
    uint8_t frame[64] = {0};
    memcpy(frame, key, 16);
    frame[16] = flags;
    frame[17] = 1;
    frame[19] = len;
    memcpy(frame + 20, data, len);
    assert_int_equal(write(fd, frame, 20u + len), 20 + len);
}

static int dial(const struct cm_sides *s)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)), 0);
    return fd;
}

/* ---- programs that move their QPs themselves ---- */

struct own {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static struct own own_make(struct ibv_context *verbs)
{
    struct own o = {.pd = ibv_alloc_pd(verbs), .cq = ibv_create_cq(verbs, 8, NULL, NULL, 0)};
    struct ibv_qp_init_attr init = {
        .send_cq = o.cq,
        .recv_cq = o.cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    o.qp = ibv_create_qp(o.pd, &init);
    assert_non_null(o.qp);
    return o;
}

static void own_drop(struct own *o)
{
    assert_int_equal(ibv_destroy_qp(o->qp), 0);
    assert_int_equal(ibv_destroy_cq(o->cq), 0);
    assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

static struct ibv_qp_attr step(struct rdma_cm_id *id, struct own *o, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    int mask;
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(ibv_modify_qp(o->qp, &attr, mask), 0);
    assert_int_equal(query(o->qp).qp_state, to);
    return attr;
}

static void no_step(struct rdma_cm_id *id, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    int mask;
    errno = 0;
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), -1);
    assert_int_equal(errno, EINVAL);
}

static void send_by(struct own *from, struct own *to)
{
    uint64_t what = 7, there = 0;
    struct ibv_mr *s = ibv_reg_mr(from->pd, &what, 8, 0);
    struct ibv_mr *r = ibv_reg_mr(to->pd, &there, 8, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge out = {(uintptr_t)&what, 8, s->lkey}, in = {(uintptr_t)&there, 8, r->lkey};
    struct ibv_recv_wr rwr = {.sg_list = &in, .num_sge = 1}, *rbad;
    struct ibv_send_wr wr = {.sg_list = &out,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    assert_int_equal(ibv_post_recv(to->qp, &rwr, &rbad), 0);
    assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
    assert_int_equal(cm_poll(to->cq).status, IBV_WC_SUCCESS);
    assert_int_equal(cm_poll(from->cq).status, IBV_WC_SUCCESS);
    assert_true(there == 7);
    assert_int_equal(ibv_dereg_mr(s), 0);
    assert_int_equal(ibv_dereg_mr(r), 0);
}

/** Without an id. */
static void by_number(struct own *o, uint32_t peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(o->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    assert_int_equal(ibv_query_gid(o->qp->context, 1, 0, &attr.ah_attr.grh.dgid), 0);
    assert_int_equal(ibv_modify_qp(o->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    assert_int_equal(ibv_modify_qp(o->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static struct rdma_cm_id *without_qp(struct cm_sides *s)
{
    struct rdma_cm_id *id = cm_prepare(s->a, &s->addr);
    rdma_destroy_qp(id);
    return id;
}

static struct rdma_conn_param names(const struct own *o)
{
    return (struct rdma_conn_param){.initiator_depth = 2,
                                    .responder_resources = 3,
                                    .retry_count = 4,
                                    .rnr_retry_count = 7,
                                    .qp_num = o->qp->qp_num};
}

/**
 * Connects @p a with the QP that its program moves.
 * @return the other id, whose QP the CM moves
 */
static struct rdma_cm_id *connect_own(struct cm_sides *s, struct rdma_cm_id *a, struct own *o)
{
    struct rdma_conn_param param = names(o);
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s->b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s->a, RDMA_CM_EVENT_CONNECT_RESPONSE), 0);
    step(a, o, IBV_QPS_RTR);
    step(a, o, IBV_QPS_RTS);
    assert_int_equal(rdma_establish(a), 0);
    assert_int_equal(cm_expect(s->b, RDMA_CM_EVENT_ESTABLISHED), 0);
    return b;
}

static void moved_by_the_program(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = without_qp(&s);
    struct own oa = own_make(a->verbs);
    struct rdma_conn_param pa = names(&oa);
    no_step(a, IBV_QPS_RTR);
    no_step(a, IBV_QPS_ERR);
    assert_true(step(a, &oa, IBV_QPS_INIT).qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(rdma_connect(a, &pa), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    struct own ob = own_make(b->verbs);
    struct rdma_conn_param pb = names(&ob);
    step(b, &ob, IBV_QPS_INIT);
    struct ibv_qp_attr rtr = step(b, &ob, IBV_QPS_RTR);
    assert_int_equal(rtr.dest_qp_num, oa.qp->qp_num);
    assert_int_equal(rtr.max_dest_rd_atomic, 2);
    assert_true(rtr.ah_attr.is_global);
    assert_memory_equal(rtr.ah_attr.grh.dgid.raw + 12, "\x7f\0\0\1", 4);
    struct ibv_qp_attr rts = step(b, &ob, IBV_QPS_RTS);
    assert_int_equal(rts.retry_cnt, 4);
    assert_int_equal(rts.rnr_retry, 7);
    assert_int_equal(rts.timeout, 19);
    assert_int_equal(rdma_accept(b, &pb), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_CONNECT_RESPONSE), 0);
    assert_int_equal(query(oa.qp).qp_state, IBV_QPS_INIT);
    assert_int_equal(step(a, &oa, IBV_QPS_RTR).dest_qp_num, ob.qp->qp_num);
    step(a, &oa, IBV_QPS_RTS);
    assert_int_equal(rdma_establish(a), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_quiet(s.a, 10);
    send_by(&oa, &ob);
    send_by(&ob, &oa);

    assert_int_equal(rdma_disconnect(a), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(query(oa.qp).qp_state, IBV_QPS_RTS); /* its own business */
    own_drop(&oa);
    own_drop(&ob);
    assert_int_equal(rdma_destroy_id(a), 0);
    assert_int_equal(rdma_destroy_id(b), 0);
    cm_close(&s);
}

/**
 * Who asks for a connection in a number's name keeps nobody from dialling that number.
 * @param moved  the program asks how to move a QP for that, and refuses
 */
static void asked_in_anothers_name(bool moved)
{
    struct cm_sides s;
    char terms[12] = "AWIB\1\7\7";
    cm_open(&s, NULL);
    struct own oa = own_make(s.listener->verbs), ob = own_make(s.listener->verbs);
    terms[9] = (char)(oa.qp->qp_num >> 16);
    terms[10] = (char)(oa.qp->qp_num >> 8);
    terms[11] = (char)oa.qp->qp_num;
    int fd = dial(&s);
    say(fd, "MPA ID Req Frame", 0, terms, sizeof terms);
    struct rdma_cm_id *b = cm_request(s.b);
    if (moved) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
        int mask;
        assert_int_equal(rdma_init_qp_attr(b, &attr, &mask), 0);
        assert_int_equal(attr.dest_qp_num, oa.qp->qp_num);
        assert_int_equal(rdma_reject(b, NULL, 0), 0);
    }
    by_number(&ob, oa.qp->qp_num);
    by_number(&oa, ob.qp->qp_num);
    send_by(&oa, &ob);
    assert_int_equal(rdma_destroy_id(b), 0);
    close(fd);
    own_drop(&oa);
    own_drop(&ob);
    cm_close(&s);
}

static void asked_and_not_answered(void **state)
{
    (void)state;
    asked_in_anothers_name(false);
}

static void asked_and_refused(void **state)
{
    (void)state;
    asked_in_anothers_name(true);
}

/** A refusal is not the end of a QP that the program moves; another id may connect it. */
static void moved_and_refused(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = without_qp(&s);
    struct own oa = own_make(a->verbs);
    struct rdma_conn_param pa = names(&oa);
    step(a, &oa, IBV_QPS_INIT);
    assert_int_equal(rdma_connect(a, &pa), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(rdma_reject(b, NULL, 0), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    assert_int_equal(query(oa.qp).qp_state, IBV_QPS_INIT);
    assert_int_equal(rdma_destroy_id(b), 0);
    assert_int_equal(rdma_destroy_id(a), 0);

    a = without_qp(&s);
    b = connect_own(&s, a, &oa);
    struct own ob = {.pd = b->qp->pd, .cq = b->qp->recv_cq, .qp = b->qp};
    send_by(&oa, &ob);
    own_drop(&oa);
    assert_int_equal(rdma_destroy_id(a), 0);
    cm_drop(b);
    cm_close(&s);
}

/** As new, it is connected once more. */
static void reset_and_again(void **state)
{
    struct cm_sides s;
    struct own oa = {0};
    (void)state;
    cm_open(&s, NULL);
    for (int i = 0; i < 2; i++) {
        struct rdma_cm_id *a = without_qp(&s);
        if (!oa.qp)
            oa = own_make(a->verbs);
        step(a, &oa, IBV_QPS_INIT);
        struct rdma_cm_id *b = connect_own(&s, a, &oa);
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
        assert_int_equal(ibv_modify_qp(oa.qp, &reset, IBV_QP_STATE), 0);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        assert_int_equal(rdma_destroy_id(a), 0);
        cm_drop(b);
    }
    own_drop(&oa);
    cm_close(&s);
}

/* ---- ends of the other kind, and strangers ---- */

/** @return flags of the Reply */
static uint8_t reply(int fd)
{
    uint8_t frame[20];
    assert_int_equal(recv(fd, frame, sizeof frame, MSG_WAITALL), sizeof frame);
    assert_memory_equal(frame, "MPA ID Rep Frame", 16);
    return frame[16];
}

#define REJECTED 0x20

/** The request's event is taken, and dropped, by whoever asks for it. */
static void refuse_next(struct cm_sides *s)
{
    struct rdma_cm_event *e;
    struct pollfd fd = {.fd = s->b->fd, .events = POLLIN};
    int flags = fcntl(s->b->fd, F_GETFL);
    assert_int_equal(poll(&fd, 1, 10000), 1);
    fcntl(s->b->fd, F_SETFL, flags | O_NONBLOCK);
    assert_int_equal(rdma_get_cm_event(s->b, &e), -1);
    assert_int_equal(errno, EAGAIN);
    fcntl(s->b->fd, F_SETFL, flags);
}

static void an_iwarp_request(void **state)
{
    /* What are no terms: of a version to come, of a count or a number that cannot be, cut short. */
    static const struct {
        const char *data;
        uint8_t len;
    } requests[] = {
        {"hello", 5},
        {"AWIB\2\7\7\0\0\1\2\3", 12},
        {"AWIB\1\10\7\0\0\1\2\3", 12},
        {"AWIB\1\7\7\2\0\1\2\3", 12},
        {"AWIB\1\7\7\0\1\1\2\3", 12},
        {"AWIB\1\7\7\0\0\0\0\1", 12},
        {"AWIB\1\7\7\0\0\1\2", 11},
    };
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL); /* bound to an address of the RoCE device, which is all there is of lo */
    for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        int fd = dial(&s);
        say(fd, "MPA ID Req Frame", 0, requests[i].data, requests[i].len);
        refuse_next(&s);
        assert_true(reply(fd) & REJECTED);
        close(fd);
    }
    int fd = dial(&s);
    say(fd, "MPA ID Req Frame", 0, "AWIB\1\7\7\0\0\1\2\3yes", 15);
    struct rdma_cm_event *e = cm_next(s.b);
    assert_int_equal(e->param.conn.private_data_len, 3);
    assert_int_equal(e->param.conn.qp_num, 0x10203);
    struct rdma_cm_id *b = e->id;
    assert_int_equal(rdma_ack_cm_event(e), 0);
    assert_int_equal(rdma_destroy_id(b), 0);
    close(fd);
    cm_close(&s);
}

static void an_iwarp_reply(void **state)
{
    struct sockaddr_storage addr;
    uint8_t request[64];
    (void)state;
    int l = cm_listen_plain(&addr, 4);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *a = cm_prepare(channel, &addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    int fd = accept(l, NULL, NULL);
    assert_true(recv(fd, request, sizeof request, 0) >= 36);
    say(fd, "MPA ID Rep Frame", 0, "hello", 5);
    assert_true(cm_expect(channel, RDMA_CM_EVENT_CONNECT_ERROR) < 0);
    assert_int_equal(query(a->qp).qp_state, IBV_QPS_ERR);
    close(fd);
    close(l);
    cm_drop(a);
    rdma_destroy_event_channel(channel);
}

/** A listener for all addresses hears both kinds, and its ids are of the device that fits. */
static void both_kinds_at_one_listener(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, "0.0.0.0");
    assert_null(s.listener->verbs);
    ((struct sockaddr_in *)&s.addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(b->verbs->device->transport_type, IBV_TRANSPORT_IB);
    assert_int_equal(rdma_destroy_id(b), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(a);

    int fd = dial(&s);
    say(fd, "MPA ID Req Frame", 0, "hello", 5);
    b = cm_request(s.b);
    assert_int_equal(b->verbs->device->transport_type, IBV_TRANSPORT_IWARP);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_false(reply(fd) & REJECTED);
    cm_drop(b);
    close(fd);
    cm_close(&s);
}

static void all_devices(void **state)
{
    int n = 0;
    (void)state;
    struct ibv_context **list = rdma_get_devices(&n);
    assert_int_equal(n, 2);
    assert_int_equal(list[0]->device->transport_type, IBV_TRANSPORT_IWARP);
    assert_int_equal(list[1]->device->transport_type, IBV_TRANSPORT_IB);
    rdma_free_devices(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(the_end_is_an_event),
        cmocka_unit_test(nobody_acknowledges),
        cmocka_unit_test(a_wrong_key),
        cmocka_unit_test(no_receive),
        cmocka_unit_test(words),
        cmocka_unit_test(rejected),
        cmocka_unit_test(moved_by_the_program),
        cmocka_unit_test(moved_and_refused),
        cmocka_unit_test(asked_and_not_answered),
        cmocka_unit_test(asked_and_refused),
        cmocka_unit_test(reset_and_again),
        cmocka_unit_test(an_iwarp_request),
        cmocka_unit_test(an_iwarp_reply),
        cmocka_unit_test(both_kinds_at_one_listener),
        cmocka_unit_test(all_devices),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "w0=iwarp: r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

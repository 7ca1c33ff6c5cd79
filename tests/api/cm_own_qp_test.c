/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that the program makes with ibv_create_qp(), moves with rdma_init_qp_attr() and
 * ibv_modify_qp(), and names by their numbers when it connects: in every order that programs have.
 */
#include "cm_kit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FULL (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

struct own {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t data[8];
};

static void own_open(struct own *o, struct ibv_context *context)
{
    o->pd = ibv_alloc_pd(context);
    o->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    assert_non_null(o->pd);
    assert_non_null(o->cq);
    struct ibv_qp_init_attr init = {
        .send_cq = o->cq,
        .recv_cq = o->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    o->qp = ibv_create_qp(o->pd, &init);
    assert_non_null(o->qp);
    memset(o->data, 0, sizeof o->data);
    o->mr = ibv_reg_mr(o->pd, o->data, sizeof o->data, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(o->mr);
}

static void own_close(struct own *o)
{
    if (o->qp)
        assert_int_equal(ibv_destroy_qp(o->qp), 0);
    assert_int_equal(ibv_dereg_mr(o->mr), 0);
    assert_int_equal(ibv_destroy_cq(o->cq), 0);
    assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(qp->state, attr.qp_state);
    return attr.qp_state;
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* The first transition, as for any device. */
static void to_init(struct own *o)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(ibv_modify_qp(o->qp, &attr, FULL), 0);
}

/* One transition as the id says. */
static void step(struct rdma_cm_id *id, struct own *o, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    int mask;
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    int r = ibv_modify_qp(o->qp, &attr, mask);
    if (r)
        fail_msg("to state %d with mask 0x%x: %s", to, (unsigned)mask, strerror(r));
}

static void all_steps(struct rdma_cm_id *id, struct own *o)
{
    step(id, o, IBV_QPS_INIT);
    step(id, o, IBV_QPS_RTR);
    step(id, o, IBV_QPS_RTS);
}

static struct rdma_conn_param by_number(const struct own *o)
{
    return (struct rdma_conn_param){
        .initiator_depth = 1, .responder_resources = 1, .qp_num = o->qp->qp_num};
}

static int connect_with(struct rdma_cm_id *id, const struct own *o)
{
    struct rdma_conn_param param = by_number(o);
    return rdma_connect(id, &param);
}

static int accept_with(struct rdma_cm_id *id, const struct own *o)
{
    struct rdma_conn_param param = by_number(o);
    return rdma_accept(id, &param);
}

/* An id that could connect, without a queue pair. */
static struct rdma_cm_id *routed(struct cm_sides *s)
{
    struct rdma_cm_id *id = cm_prepare(s->a, &s->addr);
    rdma_destroy_qp(id);
    return id;
}

static void recv_one(struct own *o)
{
    struct ibv_sge sge = {(uintptr_t)&o->data[1], sizeof o->data[1], o->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_recv(o->qp, &wr, &bad), 0);
}

static void send_one(struct own *from, struct own *to, uint64_t what)
{
    struct ibv_sge sge = {(uintptr_t)&from->data[0], sizeof from->data[0], from->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    from->data[0] = what;
    assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
    assert_int_equal(cm_poll(to->cq).status, IBV_WC_SUCCESS);
    assert_int_equal(to->data[1], what);
    assert_int_equal(cm_poll(from->cq).status, IBV_WC_SUCCESS);
}

static void both_established(struct cm_sides *s)
{
    assert_int_equal(cm_expect(s->a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s->b, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void both_disconnected(struct cm_sides *s)
{
    assert_int_equal(cm_expect(s->a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(cm_expect(s->b, RDMA_CM_EVENT_DISCONNECTED), 0);
}

/* A whole connection of two queue pairs of the program. */
struct link {
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    struct own oa, ob;
};

static void link_open(struct link *l)
{
    cm_open(&l->s, NULL);
    l->a = routed(&l->s);
    own_open(&l->oa, l->a->verbs);
    assert_int_equal(connect_with(l->a, &l->oa), 0);
    l->b = cm_request(l->s.b);
    own_open(&l->ob, l->b->verbs);
    assert_int_equal(accept_with(l->b, &l->ob), 0);
    both_established(&l->s);
}

static void link_close(struct link *l)
{
    own_close(&l->oa);
    own_close(&l->ob);
    assert_int_equal(rdma_destroy_id(l->a), 0);
    assert_int_equal(rdma_destroy_id(l->b), 0);
    cm_close(&l->s);
}

/* ---- the steps, before, during and after ---- */

enum when { NEVER, BEFORE, DURING, AFTER };

static void maybe(enum when when, enum when now, struct rdma_cm_id *id, struct own *o)
{
    if (when == now)
        all_steps(id, o);
}

/* The active side has no connection to be asked for before it connects. */
static void maybe_prepare(enum when when, struct rdma_cm_id *id, struct own *o)
{
    if (when != BEFORE)
        return;
    step(id, o, IBV_QPS_INIT);
    step(id, o, IBV_QPS_RTR);
}

static void connect_and_move(enum when active, enum when passive)
{
    struct link l;
    cm_open(&l.s, NULL);
    l.a = routed(&l.s);
    own_open(&l.oa, l.a->verbs);
    to_init(&l.oa);
    recv_one(&l.oa);
    maybe_prepare(active, l.a, &l.oa);
    assert_int_equal(connect_with(l.a, &l.oa), 0);
    l.b = cm_request(l.s.b);
    maybe(active, DURING, l.a, &l.oa);
    own_open(&l.ob, l.b->verbs);
    to_init(&l.ob);
    recv_one(&l.ob);
    maybe(passive, BEFORE, l.b, &l.ob);
    assert_int_equal(accept_with(l.b, &l.ob), 0);
    maybe(passive, DURING, l.b, &l.ob);
    both_established(&l.s);
    maybe(active, AFTER, l.a, &l.oa);
    maybe(passive, AFTER, l.b, &l.ob);
    assert_int_equal(rdma_establish(l.a), 0);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_RTS);
    assert_int_equal(state_of(l.ob.qp), IBV_QPS_RTS);
    send_one(&l.oa, &l.ob, 0x1234);
    send_one(&l.ob, &l.oa, 0x5678);

    /* And to ERR, before the program disconnects. */
    recv_one(&l.oa);
    assert_int_equal(to_state(l.oa.qp, IBV_QPS_ERR), 0);
    assert_int_equal(cm_poll(l.oa.cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rdma_disconnect(l.a), 0);
    both_disconnected(&l.s);
    assert_int_equal(rdma_disconnect(l.b), 0);
    assert_int_equal(state_of(l.ob.qp), IBV_QPS_ERR);
    link_close(&l);
}

static void the_program_moves_them_in_any_order(void **state)
{
    (void)state;
    for (enum when active = NEVER; active <= AFTER; active++)
        for (enum when passive = NEVER; passive <= AFTER; passive++) {
            print_message("active %d, passive %d\n", active, passive);
            connect_and_move(active, passive);
        }
}

/* The peer may have gone while the program still moves its queue pair. */
static void steps_do_not_revive_a_connection(void **state)
{
    struct link l;
    (void)state;
    link_open(&l);
    assert_int_equal(rdma_disconnect(l.b), 0);
    assert_int_equal(cm_expect(l.s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    recv_one(&l.oa);
    assert_int_equal(cm_poll(l.oa.cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_ERR);
    all_steps(l.a, &l.oa);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_ERR);
    assert_int_equal(cm_expect(l.s.a, RDMA_CM_EVENT_DISCONNECTED), 0);

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask;
    assert_int_equal(rdma_init_qp_attr(l.a, &attr, &mask), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_establish(l.a), -1);
    assert_int_equal(errno, EINVAL);
    link_close(&l);
}

/* Only the masks of the id are let through where a connection has led further. */
static void other_masks_are_refused(void **state)
{
    struct link l;
    (void)state;
    link_open(&l);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .path_mtu = IBV_MTU_1024,
                               .ah_attr = {.port_num = 1}};
    assert_int_equal(ibv_modify_qp(l.oa.qp, &attr, FULL), EINVAL);
    assert_int_equal(ibv_modify_qp(l.oa.qp, &attr, IBV_QP_STATE), EINVAL);
    attr.port_num = 2;
    assert_int_equal(
        ibv_modify_qp(l.oa.qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), EINVAL);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(l.oa.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     EINVAL);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_RTS);
    recv_one(&l.ob);
    send_one(&l.oa, &l.ob, 77);
    link_close(&l);
}

/* A program that thinks in RTR moves to RTS, where the connection was first. */
static void to_rts_after_the_connection(void **state)
{
    struct link l;
    const int mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .max_rd_atomic = 2};
    (void)state;
    link_open(&l);
    assert_int_equal(ibv_modify_qp(l.oa.qp, &attr, mask), EINVAL); /* 1 was agreed */
    attr.max_rd_atomic = 1;
    assert_int_equal(ibv_modify_qp(l.oa.qp, &attr, mask), 0);
    assert_int_equal(to_state(l.ob.qp, IBV_QPS_RTS), 0);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_RTS);
    assert_int_equal(state_of(l.ob.qp), IBV_QPS_RTS);
    recv_one(&l.oa);
    send_one(&l.ob, &l.oa, 99);
    link_close(&l);
}

/* ---- numbers ---- */

static void refused(int (*call)(struct rdma_cm_id *, const struct own *), struct rdma_cm_id *id,
                    struct ibv_qp *qp, uint32_t qp_num, const char *what)
{
    struct ibv_qp named = qp ? *qp : (struct ibv_qp){.qp_num = qp_num};
    const struct own o = {.qp = &named};
    if (call(id, &o) != -1 || errno != EINVAL)
        fail_msg("%s is not refused as it should be: errno %d", what, errno);
}

static void refused_each(int (*call)(struct rdma_cm_id *, const struct own *),
                         struct rdma_cm_id *id, const struct own *elsewhere,
                         const struct own *connected, const struct own *failed)
{
    refused(call, id, NULL, 0, "number 0");
    refused(call, id, NULL, 1u << 24, "a number with 25 bits");
    refused(call, id, NULL, elsewhere->qp->qp_num ^ 0x800000, "a number of no queue pair");
    refused(call, id, elsewhere->qp, 0, "the number of another context");
    refused(call, id, connected->qp, 0, "the number of a connected queue pair");
    refused(call, id, failed->qp, 0, "the number of a queue pair in error");
}

static void only_a_free_queue_pair_of_the_device(void **state)
{
    struct link l;
    struct own elsewhere, failed, fa, fb;
    (void)state;
    link_open(&l);
    struct ibv_context *other = ibv_open_device(l.a->verbs->device);
    assert_non_null(other);
    own_open(&elsewhere, other);
    own_open(&failed, l.a->verbs);
    assert_int_equal(to_state(failed.qp, IBV_QPS_ERR), 0);
    own_open(&fa, l.a->verbs);
    own_open(&fb, l.a->verbs);

    struct rdma_cm_id *c = routed(&l.s);
    refused_each(connect_with, c, &elsewhere, &l.oa, &failed);
    assert_int_equal(connect_with(c, &fa), 0);
    struct rdma_cm_id *d = cm_request(l.s.b);
    refused_each(accept_with, d, &elsewhere, &l.oa, &failed);
    refused(accept_with, d, fa.qp, 0, "the number of a queue pair that is being connected");
    assert_int_equal(accept_with(d, &fb), 0);
    both_established(&l.s);
    recv_one(&fb);
    send_one(&fa, &fb, 5);
    recv_one(&l.ob); /* and the other connection has noticed nothing */
    send_one(&l.oa, &l.ob, 6);

    own_close(&fa);
    own_close(&fb);
    own_close(&failed);
    own_close(&elsewhere);
    assert_int_equal(ibv_close_device(other), 0);
    assert_int_equal(rdma_destroy_id(c), 0);
    assert_int_equal(rdma_destroy_id(d), 0);
    link_close(&l);
}

/* The queue pair of the id goes before the number. */
static void the_queue_pair_of_the_id_wins(void **state)
{
    struct cm_sides s;
    struct own o;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    own_open(&o, a->verbs);
    assert_int_equal(connect_with(a, &o), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    both_established(&s);
    assert_int_equal(state_of(a->qp), IBV_QPS_RTS);
    assert_int_equal(state_of(o.qp), IBV_QPS_INIT);
    own_close(&o);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

/* ---- synchronous ids ---- */

struct server {
    struct rdma_cm_id *listener, *id;
    struct own own;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    assert_int_equal(rdma_get_request(s->listener, &s->id), 0);
    own_open(&s->own, s->id->verbs);
    to_init(&s->own);
    recv_one(&s->own);
    all_steps(s->id, &s->own);
    assert_int_equal(accept_with(s->id, &s->own), 0);
    assert_int_equal(s->id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    return NULL;
}

static void synchronous_ids(void **state)
{
    struct server s;
    struct own o;
    struct rdma_cm_id *id;
    struct sockaddr_storage addr;
    pthread_t thread;
    (void)state;
    cm_address(&addr, "127.0.0.1", 0);
    assert_int_equal(rdma_create_id(NULL, &s.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s.listener, (struct sockaddr *)&addr), 0);
    assert_int_equal(rdma_listen(s.listener, 1), 0);
    cm_address(&addr, "127.0.0.1", rdma_get_src_port(s.listener));
    assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);

    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000), 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    own_open(&o, id->verbs);
    refused(connect_with, id, NULL, o.qp->qp_num ^ 0x800000, "a number of no queue pair");
    assert_int_equal(connect_with(id, &o), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    all_steps(id, &o);
    assert_int_equal(rdma_establish(id), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    send_one(&o, &s.own, 0xabc);
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(rdma_disconnect(s.id), 0);
    own_close(&o);
    own_close(&s.own);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(s.id), 0);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
}

/* ---- the end ---- */

static void destroy_qp(struct own *o)
{
    assert_int_equal(ibv_destroy_qp(o->qp), 0);
    o->qp = NULL;
}

static void the_queue_pair_goes_first(void **state)
{
    struct link l;
    (void)state;
    link_open(&l);
    destroy_qp(&l.oa);
    both_disconnected(&l.s);
    assert_int_equal(rdma_disconnect(l.a), 0);
    assert_int_equal(rdma_disconnect(l.b), 0);
    link_close(&l);
}

static void the_id_goes_first(void **state)
{
    struct link l;
    (void)state;
    link_open(&l);
    recv_one(&l.oa);
    assert_int_equal(rdma_destroy_id(l.a), 0);
    assert_int_equal(cm_poll(l.oa.cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(l.oa.qp), IBV_QPS_ERR);
    assert_int_equal(cm_expect(l.s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    destroy_qp(&l.ob);
    assert_int_equal(rdma_destroy_id(l.b), 0);
    own_close(&l.oa);
    own_close(&l.ob);
    cm_close(&l.s);
}

static void the_queue_pair_goes_while_it_connects(void **state)
{
    struct cm_sides s;
    struct own o;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = routed(&s);
    own_open(&o, a->verbs);
    assert_int_equal(connect_with(a, &o), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    destroy_qp(&o);
    assert_int_not_equal(cm_expect(s.a, RDMA_CM_EVENT_CONNECT_ERROR), 0);
    assert_int_equal(rdma_establish(a), -1);
    assert_int_equal(errno, EINVAL);
    own_close(&o);
    assert_int_equal(rdma_destroy_id(a), 0);
    assert_int_equal(rdma_destroy_id(b), 0);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_moves_them_in_any_order),
        cmocka_unit_test(steps_do_not_revive_a_connection),
        cmocka_unit_test(other_masks_are_refused),
        cmocka_unit_test(to_rts_after_the_connection),
        cmocka_unit_test(only_a_free_queue_pair_of_the_device),
        cmocka_unit_test(the_queue_pair_of_the_id_wins),
        cmocka_unit_test(synchronous_ids),
        cmocka_unit_test(the_queue_pair_goes_first),
        cmocka_unit_test(the_id_goes_first),
        cmocka_unit_test(the_queue_pair_goes_while_it_connects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The extended views of CQs and QPs through the public API. */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT_S 10

static struct ibv_qp_ex *qp_ex(struct side *s)
{
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(s->id->qp);
    assert_non_null(q);
    return q;
}

static struct ibv_cq_ex *cq_ex(struct side *s)
{
    return (struct ibv_cq_ex *)s->cq;
}

/** Starts a poll of a CQ that will get a completion, and looks at what every one has. */
static struct ibv_cq_ex *start(struct side *s, uint64_t wr_id, enum ibv_wc_opcode op)
{
    struct ibv_cq_ex *c = cq_ex(s);
    time_t end = time(NULL) + LIMIT_S;
    int r;
    do
        r = ibv_start_poll(c, &(struct ibv_poll_cq_attr){0});
    while (r == ENOENT && time(NULL) < end);
    assert_int_equal(r, 0);
    assert_int_equal(c->status, IBV_WC_SUCCESS);
    assert_int_equal(c->wr_id, wr_id);
    assert_int_equal(ibv_wc_read_opcode(c), op);
    assert_int_equal(ibv_wc_read_qp_num(c), s->id->qp->qp_num);
    assert_int_equal(ibv_wc_read_vendor_err(c), 0);
    assert_int_equal(ibv_wc_read_src_qp(c), 0);
    assert_int_equal(ibv_wc_read_slid(c), 0);
    assert_int_equal(ibv_wc_read_sl(c), 0);
    assert_int_equal(ibv_wc_read_dlid_path_bits(c), 0);
    return c;
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_opcode op)
{
    ibv_end_poll(start(s, wr_id, op));
}

static void expect_recv(struct side *s, uint64_t wr_id, enum ibv_wc_opcode op, uint32_t len,
                        unsigned flags, uint32_t word)
{
    struct ibv_cq_ex *c = start(s, wr_id, op);
    assert_int_equal(ibv_wc_read_byte_len(c), len);
    assert_int_equal(ibv_wc_read_wc_flags(c), flags);
    if (flags == IBV_WC_WITH_IMM)
        assert_int_equal(ntohl(ibv_wc_read_imm_data(c)), word);
    if (flags == IBV_WC_WITH_INV)
        assert_int_equal(ibv_wc_read_invalidated_rkey(c), word);
    ibv_end_poll(c);
}

static struct ibv_qp_ex *begin(struct side *s, uint64_t wr_id)
{
    struct ibv_qp_ex *q = qp_ex(s);
    ibv_wr_start(q);
    q->wr_id = wr_id;
    q->wr_flags = IBV_SEND_SIGNALED;
    return q;
}

static void data(struct ibv_qp_ex *q, struct side *s, size_t offset, uint32_t len)
{
    ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)s->buf + offset, len);
}

static void every_builder(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true});
    uint32_t rkey = p.b.mr->rkey;
    uint64_t remote = (uintptr_t)p.b.buf;
    struct loan loan;
    side_lend(&p.b, &loan, 0, 64, IBV_ACCESS_REMOTE_READ);
    for (unsigned i = 0; i < 4; i++)
        side_recv(&p.b, 100 + i, 50000 + i * 1000, 1000);
    memset(p.a.buf, 7, 1000);
    memset(p.b.buf, 9, 1000);
    memset(p.b.buf + 2000, 0, 16);

    struct ibv_qp_ex *q = begin(&p.a, 1);
    ibv_wr_rdma_write_imm(q, rkey, remote + 4000, htonl(0x1234));
    data(q, &p.a, 0, 600);
    q->wr_id = 2;
    ibv_wr_rdma_write(q, rkey, remote + 3000);
    data(q, &p.a, 0, 500);
    q->wr_id = 3;
    ibv_wr_send(q);
    data(q, &p.a, 0, 300);
    q->wr_id = 4;
    ibv_wr_send_imm(q, htonl(0xfedc));
    data(q, &p.a, 0, 400);
    q->wr_id = 5;
    ibv_wr_rdma_read(q, rkey, remote);
    data(q, &p.a, 5000, 1000);
    q->wr_id = 6;
    ibv_wr_atomic_fetch_add(q, rkey, remote + 2000, 5);
    data(q, &p.a, 6000, 8);
    q->wr_id = 7;
    ibv_wr_atomic_cmp_swp(q, rkey, remote + 2000, 5, 77);
    data(q, &p.a, 6008, 8);
    q->wr_id = 8;
    q->wr_flags |= IBV_SEND_FENCE; /* reads use the keys until they are answered */
    ibv_wr_send_inv(q, loan.mw->rkey);
    data(q, &p.a, 0, 200);
    q->wr_id = 9;
    ibv_wr_local_inv(q, p.a.mr->rkey);
    assert_int_equal(ibv_wr_complete(q), 0);

    expect_recv(&p.b, 100, IBV_WC_RECV_RDMA_WITH_IMM, 600, IBV_WC_WITH_IMM, 0x1234);
    expect_recv(&p.b, 101, IBV_WC_RECV, 300, 0, 0);
    expect_recv(&p.b, 102, IBV_WC_RECV, 400, IBV_WC_WITH_IMM, 0xfedc);
    expect(&p.a, 1, IBV_WC_RDMA_WRITE);
    expect(&p.a, 2, IBV_WC_RDMA_WRITE);
    expect(&p.a, 3, IBV_WC_SEND);
    expect(&p.a, 4, IBV_WC_SEND);
    expect(&p.a, 5, IBV_WC_RDMA_READ);
    expect(&p.a, 6, IBV_WC_FETCH_ADD);
    expect(&p.a, 7, IBV_WC_COMP_SWAP);
    expect(&p.a, 8, IBV_WC_SEND);
    expect(&p.a, 9, IBV_WC_LOCAL_INV);
    expect_recv(&p.b, 103, IBV_WC_RECV, 200, IBV_WC_WITH_INV, loan.mw->rkey);
    uint64_t word[3];
    memcpy(&word[0], p.a.buf + 6000, 16);
    memcpy(&word[2], p.b.buf + 2000, 8);
    assert_int_equal(word[0], 0);
    assert_int_equal(word[1], 5);
    assert_int_equal(word[2], 77);
    assert_memory_equal(p.b.buf + 3000, p.a.buf, 500);
    assert_memory_equal(p.b.buf + 4000, p.a.buf, 600);
    assert_memory_equal(p.a.buf + 5000, p.b.buf, 1000);
    side_end_loan(&loan);
    pair_close(&p, 1);
}

static void every_setter(void **state)
{
    struct pair p;
    char hello[] = "hello", world[] = "world";
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true, .sge = 3});
    for (unsigned i = 0; i < 3; i++)
        side_recv(&p.b, i, i * 100, 100);
    memcpy(p.a.buf, "abcdefgh", 8);
    struct ibv_sge sge[3];
    for (unsigned i = 0; i < 3; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)p.a.buf + 2 * (2 - i), 2, p.a.mr->lkey};
    struct ibv_data_buf bufs[3] = {{hello, 5}, {NULL, 0}, {world, 5}};

    struct ibv_qp_ex *q = begin(&p.a, 1);
    ibv_wr_send(q);
    ibv_wr_set_sge_list(q, 3, sge);
    ibv_wr_send(q);
    ibv_wr_set_inline_data(q, hello, 5);
    ibv_wr_send(q);
    ibv_wr_set_inline_data_list(q, 3, bufs);
    memset(hello, 'x', 5); /* copied by now */
    assert_int_equal(ibv_wr_complete(q), 0);
    expect_recv(&p.b, 0, IBV_WC_RECV, 6, 0, 0);
    expect_recv(&p.b, 1, IBV_WC_RECV, 5, 0, 0);
    expect_recv(&p.b, 2, IBV_WC_RECV, 10, 0, 0);
    assert_memory_equal(p.b.buf, "efcdab", 6);
    assert_memory_equal(p.b.buf + 100, "hello", 5);
    assert_memory_equal(p.b.buf + 200, "helloworld", 10);
    for (int i = 0; i < 3; i++)
        expect(&p.a, 1, IBV_WC_SEND);
    pair_close(&p, 1);
}

/* ---- batches of which nothing is posted ---- */

static int too_many_sges(struct ibv_qp_ex *q, struct side *s)
{
    struct ibv_sge sge[5] = {{.lkey = s->mr->lkey}};
    ibv_wr_set_sge_list(q, 5, sge);
    return EINVAL;
}

static int too_much_inline(struct ibv_qp_ex *q, struct side *s)
{
    ibv_wr_set_inline_data(q, s->buf, 65);
    return EINVAL;
}

static int too_much_inline_in_sum(struct ibv_qp_ex *q, struct side *s)
{
    struct ibv_data_buf bufs[2] = {{s->buf, 40}, {s->buf, 40}};
    ibv_wr_set_inline_data_list(q, 2, bufs);
    return EINVAL;
}

static int inline_read(struct ibv_qp_ex *q, struct side *s)
{
    ibv_wr_rdma_read(q, 1, 1);
    ibv_wr_set_inline_data(q, s->buf, 8);
    return EINVAL;
}

static int long_atomic(struct ibv_qp_ex *q, struct side *s)
{
    ibv_wr_atomic_fetch_add(q, 1, 1, 1);
    data(q, s, 0, 16);
    return EINVAL;
}

static int bad_flags(struct ibv_qp_ex *q, struct side *s)
{
    q->wr_flags = 1u << 20;
    ibv_wr_send(q);
    data(q, s, 0, 8);
    return EINVAL;
}

static int no_window(struct ibv_qp_ex *q, struct side *s)
{
    struct ibv_mw_bind_info info = {.mr = s->mr};
    ibv_wr_bind_mw(q, NULL, 1, &info);
    return EINVAL;
}

static int tso(struct ibv_qp_ex *q, struct side *s)
{
    ibv_wr_send_tso(q, s->buf, 10, 100);
    return EOPNOTSUPP;
}

static int ud_address(struct ibv_qp_ex *q, struct side *s)
{
    (void)s;
    ibv_wr_set_ud_addr(q, NULL, 1, 1);
    return EOPNOTSUPP;
}

static int xrc(struct ibv_qp_ex *q, struct side *s)
{
    (void)s;
    ibv_wr_set_xrc_srqn(q, 1);
    return EOPNOTSUPP;
}

static int atomic_write(struct ibv_qp_ex *q, struct side *s)
{
    ibv_wr_atomic_write(q, 1, 1, s->buf);
    return EOPNOTSUPP;
}

static int one_too_many(struct ibv_qp_ex *q, struct side *s)
{
    for (int i = 0; i < 8; i++) {
        ibv_wr_send(q);
        data(q, s, 0, 8);
    }
    return ENOMEM;
}

/** The first error counts. */
static int two_errors(struct ibv_qp_ex *q, struct side *s)
{
    tso(q, s);
    too_much_inline(q, s);
    return EOPNOTSUPP;
}

static int nothing_but_abort(struct ibv_qp_ex *q, struct side *s)
{
    (void)q, (void)s;
    return 0;
}

static void an_error_posts_nothing(void **state)
{
    static int (*const spoil[])(struct ibv_qp_ex *, struct side *) = {
        too_many_sges,
        too_much_inline,
        too_much_inline_in_sum,
        inline_read,
        long_atomic,
        bad_flags,
        no_window,
        tso,
        ud_address,
        xrc,
        atomic_write,
        one_too_many,
        two_errors,
        nothing_but_abort,
    };
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true, .send_wr = 8});
    side_recv(&p.b, 100, 0, 100);
    for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
        struct ibv_qp_ex *q = begin(&p.a, i);
        ibv_wr_send(q);
        data(q, &p.a, 0, 8);
        int r = spoil[i](q, &p.a);
        if (r)
            assert_int_equal(ibv_wr_complete(q), r);
        else
            ibv_wr_abort(q);
    }
    struct ibv_qp_ex *q = begin(&p.a, 1);
    assert_int_equal(ibv_wr_complete(q), 0); /* none */
    q = begin(&p.a, 1);
    data(q, &p.a, 0, 8); /* of nothing */
    assert_int_equal(ibv_wr_complete(q), EINVAL);
    side_poll_none(&p.a, 5);
    side_poll_none(&p.b, 5);

    q = begin(&p.a, 1);
    ibv_wr_send(q);
    data(q, &p.a, 0, 9);
    assert_int_equal(ibv_wr_complete(q), 0);
    expect_recv(&p.b, 100, IBV_WC_RECV, 9, 0, 0);
    expect(&p.a, 1, IBV_WC_SEND);
    pair_close(&p, 1);
}

/* ---- polling ---- */

static void a_poll_walks_over_completions(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true});
    assert_int_equal(ibv_start_poll(cq_ex(&p.a), &(struct ibv_poll_cq_attr){.comp_mask = 1}),
                     EINVAL);
    assert_int_equal(ibv_start_poll(cq_ex(&p.a), &(struct ibv_poll_cq_attr){0}), ENOENT);
    for (unsigned i = 0; i < 3; i++) {
        side_recv(&p.b, i, 0, 10);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 10 + i, 0, 5 + i, 0, 0), 0);
    }
    side_poll_none(&p.b, 0);
    struct ibv_cq_ex *c = start(&p.b, 0, IBV_WC_RECV);
    assert_int_equal(ibv_wc_read_byte_len(c), 5);
    for (unsigned i = 1; i < 3; i++) {
        int r;
        time_t end = time(NULL) + LIMIT_S;
        while ((r = ibv_next_poll(c)) == ENOENT && time(NULL) < end)
            ;
        assert_int_equal(r, 0);
        assert_int_equal(c->wr_id, i);
        assert_int_equal(ibv_wc_read_byte_len(c), 5 + i);
    }
    assert_int_equal(ibv_next_poll(c), ENOENT);
    ibv_end_poll(c);
    assert_int_equal(side_poll(&p.a).wr_id, 10); /* both ways of polling */
    expect(&p.a, 11, IBV_WC_SEND);
    assert_int_equal(side_poll(&p.a).wr_id, 12);

    side_recv(&p.b, 9, 0, 10); /* flushed: the status */
    assert_int_equal(rdma_disconnect(p.b.id), 0);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    while (ibv_start_poll(c, &(struct ibv_poll_cq_attr){0}) == ENOENT)
        ;
    assert_int_equal(c->status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(c->wr_id, 9);
    ibv_end_poll(c);
    pair_close(&p, 0);
}

static uint64_t ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void completions_carry_their_time(void **state)
{
    struct pair p;
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct ibv_device_attr_ex dev;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true});
    assert_int_equal(ibv_query_rt_values_ex(p.a.id->verbs, &v), 0);
    assert_int_equal(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    uint64_t wall = ns(CLOCK_REALTIME);
    side_recv(&p.b, 1, 0, 10);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 5, 0, 0), 0);
    expect(&p.a, 2, IBV_WC_SEND);
    struct ibv_cq_ex *c = start(&p.b, 1, IBV_WC_RECV);
    uint64_t raw = ibv_wc_read_completion_ts(c);
    assert_in_range(raw, (uint64_t)v.raw_clock.tv_sec * 1000000000 + v.raw_clock.tv_nsec,
                    ns(CLOCK_MONOTONIC));
    assert_in_range(ibv_wc_read_completion_wallclock_ns(c), wall - 1000000, /* clock slewing */
                    ns(CLOCK_REALTIME));
    assert_int_equal(ibv_wc_read_completion_ts(c), raw); /* it is the completion's */
    ibv_end_poll(c);
    assert_int_equal(ibv_query_device_ex(p.a.id->verbs, NULL, &dev), 0);
    assert_int_equal(dev.hca_core_clock, 1000000);
    assert_true(dev.completion_timestamp_mask == UINT64_MAX);
    pair_close(&p, 1);
}

/* ---- threads ---- */

#define THREADS 2
#define ROUNDS  200

static void *build(void *arg)
{
    struct pair *p = arg;
    for (int i = 0; i < ROUNDS;) {
        struct ibv_qp_ex *q = begin(&p->a, 0);
        for (int k = 0; k < 4; k++) {
            ibv_wr_rdma_write(q, p->b.mr->rkey, (uintptr_t)p->b.buf);
            data(q, &p->a, 0, 8);
        }
        i += ibv_wr_complete(q) == 0;
    }
    return NULL;
}

static void *reap(void *arg)
{
    struct pair *p = arg;
    struct ibv_cq_ex *c = cq_ex(&p->a);
    for (intptr_t got = 0;;) {
        if (ibv_start_poll(c, &(struct ibv_poll_cq_attr){0}))
            continue;
        do
            got += c->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(c) == IBV_WC_RDMA_WRITE;
        while (ibv_next_poll(c) == 0);
        ibv_end_poll(c);
        if (got == THREADS * ROUNDS * 4)
            return NULL;
    }
}

/** A batch that does not fit is tried again: had a part of it been posted, the count were off. */
static void threads_take_turns(void **state)
{
    struct pair p;
    pthread_t builder[THREADS], reaper;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true, .send_wr = 16, .recv_wr = THREADS * ROUNDS * 4});
    assert_int_equal(pthread_create(&reaper, NULL, reap, &p), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&builder[i], NULL, build, &p), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(builder[i], NULL);
    pthread_join(reaper, NULL);
    side_poll_none(&p.a, 5);
    pair_close(&p, 1);
}

/* ---- creation ---- */

static void refused(struct ibv_context *ctx, struct ibv_cq_init_attr_ex attr, int error)
{
    assert_null(ibv_create_cq_ex(ctx, &attr));
    assert_int_equal(errno, error);
}

static void cq_attributes(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_context *ctx = p.a.id->verbs;
    const uint32_t flags = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    refused(ctx, (struct ibv_cq_init_attr_ex){.cqe = 0}, EINVAL);
    refused(ctx, (struct ibv_cq_init_attr_ex){.cqe = UINT32_MAX}, EINVAL);
    refused(ctx, (struct ibv_cq_init_attr_ex){.cqe = 9, .wc_flags = IBV_WC_EX_WITH_CVLAN},
            EOPNOTSUPP);
    refused(ctx, (struct ibv_cq_init_attr_ex){.cqe = 9, .wc_flags = IBV_WC_EX_WITH_TM_INFO},
            EOPNOTSUPP);
    refused(ctx, (struct ibv_cq_init_attr_ex){.cqe = 9, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD},
            EINVAL);
    refused(ctx,
            (struct ibv_cq_init_attr_ex){
                .cqe = 9, .comp_mask = flags, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
            EOPNOTSUPP);
    struct ibv_cq_init_attr_ex single = {
        .cqe = 9, .comp_mask = flags, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
    struct ibv_cq_ex *c = ibv_create_cq_ex(ctx, &single);
    assert_non_null(c);
    assert_true(c->cqe >= 9);
    assert_int_equal(ibv_start_poll(c, &(struct ibv_poll_cq_attr){0}), ENOENT);
    assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(c), 0), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(c)), 0);
    pair_close(&p, 1);
}

static struct ibv_qp *create(struct pair *p, uint32_t mask, uint64_t ops, uint32_t flags)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = p->a.cq,
                                       .recv_cq = p->a.cq,
                                       .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = mask,
                                       .pd = p->a.pd,
                                       .create_flags = flags,
                                       .send_ops_flags = ops};
    errno = 0;
    return ibv_create_qp_ex(p->a.id->verbs, &attr);
}

static void qp_attributes(void **state)
{
    const uint32_t pd = IBV_QP_INIT_ATTR_PD, ops = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                   flags = IBV_QP_INIT_ATTR_CREATE_FLAGS;
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_null(ibv_qp_to_qp_ex(p.a.id->qp));
    assert_null(create(&p, ops, IBV_QP_EX_WITH_SEND, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(create(&p, pd | ops, IBV_QP_EX_WITH_TSO, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(create(&p, pd | IBV_QP_INIT_ATTR_RX_HASH, 0, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(create(&p, pd | flags, 0, IBV_QP_CREATE_SCATTER_FCS));
    assert_int_equal(errno, EOPNOTSUPP);
    struct ibv_qp *qp = create(&p, pd | flags, 0, 0);
    assert_non_null(qp);
    assert_null(ibv_qp_to_qp_ex(qp));
    assert_int_equal(ibv_destroy_qp(qp), 0);

    qp = create(&p, pd | ops, IBV_QP_EX_WITH_SEND, 0);
    assert_non_null(qp);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
    assert_non_null(q);
    ibv_wr_start(q);
    ibv_wr_rdma_write(q, 1, 1); /* not asked for */
    assert_int_equal(ibv_wr_complete(q), EOPNOTSUPP);
    ibv_wr_start(q);
    ibv_wr_send(q);
    assert_int_equal(ibv_wr_complete(q), EINVAL); /* not connected */
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_builder),
        cmocka_unit_test(every_setter),
        cmocka_unit_test(an_error_posts_nothing),
        cmocka_unit_test(a_poll_walks_over_completions),
        cmocka_unit_test(completions_carry_their_time),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(cq_attributes),
        cmocka_unit_test(qp_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests of the kernel's interface, the memory they are of, and shared receive queues. */
#include "kverbs_kit.h"

#include <errno.h>
#include <string.h>

static void expect(struct end *e, enum ib_wc_status status, enum ib_wc_opcode opcode)
{
    struct ib_wc wc = kit_poll(e->cq);
    if (wc.status != status)
        print_error("%s, wanted %s\n", ib_wc_status_msg(wc.status), ib_wc_status_msg(status));
    assert_int_equal(wc.status, status);
    if (status == IB_WC_SUCCESS)
        assert_int_equal(wc.opcode, opcode);
}

static void paint(struct end *e, u8 with)
{
    memset(e->buf, with, KIT_SIZE);
}

/* Many entries and requests at once: more than what goes to verbs in one call. */
static void long_lists(void **state)
{
    (void)state;
    enum { N = 30 };
    struct pair p;
    kit_open(&p, NULL);
    paint(&p.a, 'a');
    paint(&p.b, 'b');
    struct ib_sge in[N], out[N][4];
    struct ib_recv_wr recv[N], *bad_recv;
    struct ib_send_wr send[N], *bad_send;
    for (u64 i = 0; i < N; i++) {
        in[i] = kit_sge(&p.b, i * 64, 64);
        recv[i] = (struct ib_recv_wr){
            .wr_id = i, .sg_list = &in[i], .num_sge = 1, .next = i + 1 < N ? &recv[i + 1] : NULL};
        for (u64 j = 0; j < 4; j++)
            out[i][j] = kit_sge(&p.a, i * 64 + j * 16, 16);
        send[i] = (struct ib_send_wr){.wr_id = i,
                                      .sg_list = out[i],
                                      .num_sge = 4,
                                      .opcode = IB_WR_SEND,
                                      .send_flags = i % 7 == 6 ? IB_SEND_SIGNALED : 0,
                                      .next = i + 1 < N ? &send[i + 1] : NULL};
    }
    assert_int_equal(ib_post_recv(p.b.qp, recv, &bad_recv), 0);
    assert_int_equal(ib_post_send(p.a.qp, send, &bad_send), 0);
    for (u64 i = 0; i < N; i++)
        assert_int_equal(kit_poll(p.b.cq).wr_id, i);
    for (u64 i = 6; i < N; i += 7)
        assert_int_equal(kit_poll(p.a.cq).wr_id, i);
    assert_memory_equal(p.b.buf, p.a.buf, N * 64);
    assert_int_equal(p.b.buf[N * 64], 'b');
    kit_close(&p);
}

static void opcodes_with_data(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    strcpy((char *)p.a.buf, "inline, immediate");
    struct ib_sge sge = {(u64)(uintptr_t)p.a.buf, 18, 0xdead}; /* inline: any key, any memory */
    struct ib_send_wr wr = {.wr_id = 5,
                            .sg_list = &sge,
                            .num_sge = 1,
                            .opcode = IB_WR_SEND_WITH_IMM,
                            .ex.imm_data = cpu_to_be32(0x12345678),
                            .send_flags = IB_SEND_INLINE | IB_SEND_SIGNALED},
                      *bad;
    assert_int_equal(kit_recv(&p.b, 9, 100, 64), 0);
    assert_int_equal(ib_post_send(p.a.qp, &wr, &bad), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_SEND);
    struct ib_wc wc = kit_poll(p.b.cq);
    assert_int_equal(wc.opcode, IB_WC_RECV);
    assert_int_equal(wc.wc_flags, IB_WC_WITH_IMM);
    assert_int_equal(be32_to_cpu(wc.ex.imm_data), 0x12345678);
    assert_string_equal((char *)p.b.buf + 100, "inline, immediate");
    kit_close(&p);
}

static void fast_registration(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    struct ib_mr *mr = ib_alloc_mr(p.b.pd, IB_MR_TYPE_MEM_REG, 16);
    assert_false(IS_ERR(mr));
    paint(&p.a, 'a');
    paint(&p.b, 'b');

    /* What is invalid may be invalidated: sources begin with that. */
    assert_int_equal(kit_invalidate(&p.b, mr->rkey), 0);
    expect(&p.b, IB_WC_SUCCESS, IB_WC_LOCAL_INV);

    int rw = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
             IB_ACCESS_REMOTE_ATOMIC;
    u32 before = mr->rkey;
    assert_int_equal(kit_register(&p.b, mr, 4096, 8192, rw), 0);
    expect(&p.b, IB_WC_SUCCESS, IB_WC_REG_MR);
    assert_int_equal(mr->rkey, ib_inc_rkey(before));
    assert_int_equal(mr->iova, p.b.dma + 4096);
    assert_int_equal(mr->length, 8192);
    assert_int_equal(mr->page_size, PAGE_SIZE);

    assert_int_equal(kit_rdma(&p.a, IB_WR_RDMA_WRITE, 1, 0, 100, mr->iova + 10, mr->rkey), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
    assert_int_equal(kit_rdma(&p.a, IB_WR_RDMA_READ, 2, 200, 50, mr->iova + 90, mr->rkey), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_RDMA_READ);
    assert_int_equal(p.a.buf[209], 'a');
    assert_int_equal(p.a.buf[220], 'b');

    struct ib_sge sge = kit_sge(&p.a, 0, 8);
    struct ib_atomic_wr add = {.wr = {.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
                                      .sg_list = &sge,
                                      .num_sge = 1,
                                      .send_flags = IB_SEND_SIGNALED},
                               .remote_addr = mr->iova + 4096,
                               .rkey = mr->rkey,
                               .compare_add = 5};
    struct ib_send_wr *bad;
    *(u64 *)(p.b.buf + 8192) = 37;
    assert_int_equal(ib_post_send(p.a.qp, &add.wr, &bad), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_FETCH_ADD);
    assert_int_equal(*(u64 *)p.a.buf, 37);
    assert_int_equal(*(u64 *)(p.b.buf + 8192), 42);
    add.wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
    add.compare_add = 42;
    add.swap = 99;
    assert_int_equal(ib_post_send(p.a.qp, &add.wr, &bad), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_COMP_SWAP);
    assert_int_equal(*(u64 *)(p.b.buf + 8192), 99);

    /* The peer takes the right away, and a new key gives it again. */
    assert_int_equal(kit_recv(&p.b, 3, 0, 64), 0);
    struct ib_send_wr inv = {.opcode = IB_WR_SEND_WITH_INV,
                             .ex.invalidate_rkey = mr->rkey,
                             .send_flags = IB_SEND_SIGNALED};
    assert_int_equal(ib_post_send(p.a.qp, &inv, &bad), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_SEND);
    struct ib_wc wc = kit_poll(p.b.cq);
    assert_int_equal(wc.wc_flags, IB_WC_WITH_INVALIDATE);
    assert_int_equal(wc.ex.invalidate_rkey, mr->rkey);
    assert_int_equal(kit_register(&p.b, mr, 0, 64, IB_ACCESS_REMOTE_READ), 0);
    expect(&p.b, IB_WC_SUCCESS, IB_WC_REG_MR);
    assert_int_equal(kit_rdma(&p.a, IB_WR_RDMA_READ, 4, 0, 64, mr->iova, mr->rkey), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_RDMA_READ);
    assert_int_equal(kit_invalidate(&p.b, mr->rkey), 0);
    expect(&p.b, IB_WC_SUCCESS, IB_WC_LOCAL_INV);
    assert_int_equal(kit_rdma(&p.a, IB_WR_RDMA_READ, 5, 0, 64, mr->iova, mr->rkey), 0);
    expect(&p.a, IB_WC_REM_ACCESS_ERR, IB_WC_RDMA_READ);
    assert_int_equal(ib_dereg_mr(mr), 0);
    kit_close(&p);
}

/* One chain: register, use the key locally for what a read brings, invalidate. */
static void a_key_for_local_use(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    paint(&p.a, 'a');
    paint(&p.b, 'b');
    struct ib_mr *source = ib_alloc_mr(p.b.pd, IB_MR_TYPE_MEM_REG, 4);
    struct ib_mr *sink = ib_alloc_mr(p.a.pd, IB_MR_TYPE_MEM_REG, 4);
    assert_int_equal(kit_register(&p.b, source, 0, 64, IB_ACCESS_REMOTE_READ), 0);
    expect(&p.b, IB_WC_SUCCESS, IB_WC_REG_MR);
    struct scatterlist sg = {0};
    sg_init_marker(&sg, 1);
    sg_dma_address(&sg) = p.a.dma;
    sg_dma_len(&sg) = 64;
    assert_int_equal(ib_map_mr_sg(sink, &sg, 1, NULL, PAGE_SIZE), 1);
    struct ib_sge sge = {p.a.dma, 64, sink->lkey};
    struct ib_send_wr inv = {.opcode = IB_WR_LOCAL_INV,
                             .ex.invalidate_rkey = sink->rkey,
                             .send_flags = IB_SEND_FENCE | IB_SEND_SIGNALED},
                      *bad;
    struct ib_rdma_wr read = {
        .wr = {.opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .next = &inv},
        .remote_addr = source->iova,
        .rkey = source->rkey};
    struct ib_reg_wr reg = {.wr = {.opcode = IB_WR_REG_MR, .next = &read.wr},
                            .mr = sink,
                            .key = sink->rkey,
                            .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE};
    assert_int_equal(ib_post_send(p.a.qp, &reg.wr, &bad), 0);
    expect(&p.a, IB_WC_SUCCESS, IB_WC_LOCAL_INV);
    assert_memory_equal(p.a.buf, p.b.buf, 64);
    assert_int_equal(ib_dereg_mr(sink), 0);
    assert_int_equal(ib_dereg_mr(source), 0);
    kit_close(&p);
}

static void a_key_that_is_invalid_is_none(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    struct ib_mr *mr = ib_alloc_mr(p.a.pd, IB_MR_TYPE_MEM_REG, 1);
    struct ib_sge sge = {p.a.dma, 8, mr->lkey};
    struct ib_send_wr wr = {.opcode = IB_WR_SEND,
                            .sg_list = &sge,
                            .num_sge = 1,
                            .send_flags = IB_SEND_SIGNALED},
                      *bad;
    assert_int_equal(ib_post_send(p.a.qp, &wr, &bad), 0);
    expect(&p.a, IB_WC_LOC_PROT_ERR, IB_WC_SEND);
    assert_int_equal(ib_dereg_mr(mr), 0);
    kit_close(&p);
}

/* post_send_is_partial: those before the bad one are queued */
static void lists_with_something_bad(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    struct ib_mr *mr = ib_alloc_mr(p.a.pd, IB_MR_TYPE_MEM_REG, 1);
    struct ib_sge good = kit_sge(&p.a, 0, 8), unmapped = {8, 8, p.a.pd->local_dma_lkey};
    struct ib_reg_wr reg = {.mr = mr, .key = mr->rkey};
    static const struct {
        enum ib_wr_opcode opcode;
        int sges;
        bool mapped;
        int error;
    } cases[] = {
        {IB_WR_LSO, 1, true, -EOPNOTSUPP},
        {IB_WR_RDMA_READ_WITH_INV, 1, true, -EOPNOTSUPP},
        {IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 1, true, -EOPNOTSUPP},
        {IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, 1, true, -EOPNOTSUPP},
        {IB_WR_REG_SIG_MR, 1, true, -EOPNOTSUPP},
        {(enum ib_wr_opcode)99, 1, true, -EINVAL},
        {IB_WR_SEND, -1, true, -EINVAL},
        {IB_WR_SEND, 1000, true, -EINVAL},
        {IB_WR_SEND, 5, true, -EINVAL}, /* verbs say so */
        {IB_WR_SEND, 1, false, -EINVAL},
        {IB_WR_REG_MR, 0, true, -EINVAL}, /* nothing is mapped by ib_map_mr_sg() */
    };
    for (u64 i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ib_sge list[5] = {good, good, good, good, good};
        if (!cases[i].mapped)
            list[0] = unmapped;
        struct ib_send_wr third = {.opcode = IB_WR_SEND, .sg_list = &good, .num_sge = 1}, *bad;
        reg.wr = (struct ib_send_wr){
            .next = &third, .opcode = cases[i].opcode, .sg_list = list, .num_sge = cases[i].sges};
        struct ib_send_wr first = {.next = &reg.wr,
                                   .wr_id = i,
                                   .opcode = IB_WR_SEND,
                                   .sg_list = &good,
                                   .num_sge = 1,
                                   .send_flags = IB_SEND_SIGNALED};
        assert_int_equal(kit_recv(&p.b, i, 0, 64), 0);
        assert_int_equal(ib_post_send(p.a.qp, &first, &bad), cases[i].error);
        assert_ptr_equal(bad, &reg.wr);
        struct ib_wc wc = kit_poll(p.a.cq);
        assert_int_equal(wc.status, IB_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(kit_poll(p.b.cq).wr_id, i);
    }
    struct ib_recv_wr after = {.wr_id = 1}, *bad_recv;
    struct ib_recv_wr wrong = {.next = &after, .sg_list = &unmapped, .num_sge = 1};
    struct ib_recv_wr before = {.next = &wrong, .wr_id = 77, .sg_list = &good, .num_sge = 1};
    assert_int_equal(ib_post_recv(p.a.qp, &before, &bad_recv), -EINVAL);
    assert_ptr_equal(bad_recv, &wrong);
    wrong.num_sge = 100;
    wrong.sg_list = &good;
    assert_int_equal(ib_post_recv(p.a.qp, &wrong, &bad_recv), -EINVAL);
    assert_ptr_equal(bad_recv, &wrong);
    assert_int_equal(kit_send(&p.b, 1, 0, 8), 0);
    assert_int_equal(kit_poll(p.a.cq).wr_id, 77);
    assert_int_equal(ib_dereg_mr(mr), 0);
    kit_close(&p);
}

/* A full queue is told where it is full, also behind what went before in one call. */
static void a_full_queue(void **state)
{
    (void)state;
    enum { MANY = 4096 };
    struct pair p;
    kit_open(&p, NULL);
    static struct ib_recv_wr wr[MANY];
    struct ib_recv_wr *bad = NULL;
    for (int i = 0; i < MANY; i++)
        wr[i] = (struct ib_recv_wr){.wr_id = (u64)i, .next = i + 1 < MANY ? &wr[i + 1] : NULL};
    assert_int_equal(ib_post_recv(p.a.qp, wr, &bad), -ENOMEM);
    assert_true(bad - wr >= 64 && bad - wr < MANY);
    kit_close(&p);
}

static void mapping_an_mr(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, NULL);
    struct ib_mr *mr = ib_alloc_mr(p.a.pd, IB_MR_TYPE_MEM_REG, 2);
    struct scatterlist sg[3];
    sg_init_table(sg, 3);
    static const struct {
        u64 at[3];
        unsigned len[3];
        int n, offset;
        unsigned page;
        int mapped;
        u64 length;
    } cases[] = {
        {{0, 100, 300}, {100, 200, 10}, 3, 0, 4096, 3, 310}, /* they follow each other */
        {{0, 101, 300}, {100, 200, 10}, 3, 0, 4096, 1, 100}, /* a gap */
        {{0, 100, 300}, {100, 200, 10}, 3, 40, 4096, 3, 270},
        {{0, 100, 300}, {100, 200, 10}, 3, 100, 4096, -EINVAL, 0},
        {{0, 4096, 8192}, {4096, 4096, 4096}, 3, 0, 4096, 2, 8192}, /* two pages, no more */
        {{0, 4096, 8192}, {4096, 4096, 4096}, 3, 0, 65536, 3, 12288},
        {{0}, {100}, 0, 0, 4096, -EINVAL, 0},
        {{0}, {100}, 1, 0, 512, -EINVAL, 0},
        {{0}, {100}, 1, 0, 4097, -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (int j = 0; j < 3; j++) {
            sg_dma_address(&sg[j]) = p.a.dma + cases[i].at[j];
            sg_dma_len(&sg[j]) = cases[i].len[j];
        }
        unsigned offset = (unsigned)cases[i].offset;
        assert_int_equal(ib_map_mr_sg(mr, sg, cases[i].n, &offset, cases[i].page), cases[i].mapped);
        if (cases[i].mapped > 0) {
            assert_int_equal(mr->length, cases[i].length);
            assert_int_equal(mr->iova, p.a.dma + offset);
        }
    }
    assert_int_equal(ib_dereg_mr(mr), 0);
    kit_close(&p);
}

/* What an end has but for its id, with an SRQ for its receives. */
static struct ib_srq *make_with_srq(struct end *e, struct ib_srq_init_attr *attr,
                                    struct ib_qp_init_attr init)
{
    struct ib_device *d = e->id->device;
    e->pd = ib_alloc_pd(d, 0);
    struct ib_srq *srq = ib_create_srq(e->pd, attr);
    assert_false(IS_ERR(srq));
    struct ib_cq_init_attr cq = {.cqe = 64};
    e->cq = ib_create_cq(d, NULL, NULL, NULL, &cq);
    assert_false(IS_ERR(e->cq));
    init.send_cq = init.recv_cq = e->cq;
    init.srq = srq;
    init.cap = (struct ib_qp_cap){.max_send_wr = 4, .max_send_sge = 1};
    init.qp_type = IB_QPT_RC;
    assert_int_equal(rdma_create_qp(e->id, e->pd, &init), 0);
    e->qp = e->id->qp;
    e->buf = ib_dma_alloc_coherent(d, KIT_SIZE, &e->dma, GFP_KERNEL);
    return srq;
}

static void one_srq_for_receives(void **state)
{
    (void)state;
    struct pair p;
    kit_open(&p, &(struct kit_options){.stop_at_request = true});
    struct end *b = &p.b;
    struct ib_srq_init_attr attr = {.attr = {.max_wr = 32, .max_sge = 1}};
    struct ib_srq *srq = make_with_srq(b, &attr, (struct ib_qp_init_attr){.srq = NULL});
    struct ib_sge sge[20];
    struct ib_recv_wr wr[20], *bad;
    for (u64 i = 0; i < 20; i++) {
        sge[i] = kit_sge(b, i * 64, 64);
        wr[i] = (struct ib_recv_wr){
            .wr_id = i, .sg_list = &sge[i], .num_sge = 1, .next = i < 19 ? &wr[i + 1] : NULL};
    }
    assert_int_equal(ib_post_srq_recv(srq, wr, &bad), 0);
    struct rdma_conn_param param = {.responder_resources = 1};
    assert_int_equal(rdma_accept(b->id, &param), 0);
    kit_wait(&p.a, RDMA_CM_EVENT_ESTABLISHED);
    paint(&p.a, 's');
    for (u64 i = 0; i < 20; i++)
        assert_int_equal(kit_send(&p.a, i, 0, 64), 0);
    for (u64 i = 0; i < 20; i++)
        assert_int_equal(kit_poll(b->cq).wr_id, i);
    assert_int_equal(b->buf[20 * 64 - 1], 's');
    sge[0].lkey = p.a.pd->local_dma_lkey;
    sge[0].addr = 8;
    wr[0].next = NULL;
    assert_int_equal(ib_post_srq_recv(srq, wr, &bad), -EINVAL);
    assert_ptr_equal(bad, wr);
    assert_int_equal(ib_destroy_srq(srq), -EBUSY);
    rdma_destroy_qp(b->id);
    assert_int_equal(ib_destroy_srq(srq), 0);
    kit_close(&p);
}

struct heard {
    struct completion limit, access;
    struct ib_srq *srq;
    struct ib_qp *qp;
    int destroyed[2];
    bool refused; /* of the handler alone */
};

static void on_srq_event(struct ib_event *event, void *context)
{
    struct heard *h = context;
    assert_true(in_interrupt());
    assert_int_equal(event->event, IB_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event->element.srq, h->srq);
    h->destroyed[0] = ib_destroy_srq(h->srq);
    complete(&h->limit);
}

static void on_qp_event(struct ib_event *event, void *context)
{
    struct heard *h = context;
    if (event->event != IB_EVENT_QP_LAST_WQE_REACHED && event->event != IB_EVENT_QP_ACCESS_ERR)
        return;
    assert_ptr_equal(event->element.qp, h->qp);
    if (h->refused) /* both come, and the test goes on behind the first */
        return;
    h->refused = true;
    h->destroyed[1] = ib_destroy_qp(h->qp);
    complete(&h->access);
}

static void on_port_event(struct ib_event_handler *h, struct ib_event *event)
{
    (void)h, (void)event;
}

/* A limit is reached, a key is wrong: handlers hear of it, and cannot destroy what they are of. */
static void events_of_objects(void **state)
{
    (void)state;
    struct pair p;
    struct heard h = {.destroyed = {1, 1}};
    init_completion(&h.limit);
    init_completion(&h.access);
    kit_open(&p, &(struct kit_options){.stop_at_request = true});
    struct ib_event_handler ports;
    INIT_IB_EVENT_HANDLER(&ports, p.device, on_port_event);
    assert_int_equal(ib_register_event_handler(&ports), 0);
    struct end *b = &p.b;
    struct ib_srq_init_attr attr = {
        .event_handler = on_srq_event, .srq_context = &h, .attr = {.max_wr = 32, .max_sge = 1}};
    struct ib_qp_init_attr init = {.event_handler = on_qp_event, .qp_context = &h};
    h.srq = make_with_srq(b, &attr, init);
    h.qp = b->qp;
    struct ib_sge sge = kit_sge(b, 0, 64);
    struct ib_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    for (int i = 0; i < 4; i++)
        assert_int_equal(ib_post_srq_recv(h.srq, &wr, &bad), 0);
    struct ib_srq_attr limit = {.srq_limit = 3};
    assert_int_equal(ib_modify_srq(h.srq, &limit, IB_SRQ_LIMIT), 0);
    struct rdma_conn_param param = {.responder_resources = 1};
    assert_int_equal(rdma_accept(b->id, &param), 0);
    kit_wait(&p.a, RDMA_CM_EVENT_ESTABLISHED);
    for (u64 i = 0; i < 2; i++)
        assert_int_equal(kit_send(&p.a, i, 0, 64), 0);
    assert_true(wait_for_completion_timeout(&h.limit, 30 * HZ));
    assert_int_equal(h.destroyed[0], -EBUSY);
    assert_int_equal(kit_rdma(&p.a, IB_WR_RDMA_READ, 3, 0, 64, 4096, 0x4711), 0);
    assert_true(wait_for_completion_timeout(&h.access, 30 * HZ));
    assert_int_equal(h.destroyed[1], -EDEADLK);
    rdma_destroy_qp(b->id);
    assert_int_equal(ib_destroy_srq(h.srq), 0);
    assert_int_equal(ib_unregister_event_handler(&ports), 0);
    kit_close(&p);
}

/* One of two QPs that find each other by number, without any connection manager. */
static struct ib_qp *numbered(struct ib_pd *pd, struct ib_cq *cq, enum ib_qp_type type)
{
    struct ib_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .sq_sig_type = IB_SIGNAL_REQ_WR,
        .qp_type = type,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ib_qp *qp = ib_create_qp(pd, &init);
    assert_false(IS_ERR(qp));
    kit_init_qp(qp);
    return qp;
}

static void to_rts(struct ib_qp *qp, struct ib_qp *peer)
{
    int answers = qp->qp_type == IB_QPT_RC ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0;
    int asks = qp->qp_type == IB_QPT_RC
                   ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC
                   : 0;
    struct ib_qp_attr attr = {
        .qp_state = IB_QPS_RTR,
        .path_mtu = IB_MTU_1024,
        .dest_qp_num = peer->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.ah_flags = IB_AH_GRH, .port_num = 1, .grh = {.hop_limit = 1}}};
    assert_int_equal(ib_query_gid(qp->device, 1, 0, &attr.ah_attr.grh.dgid, NULL), 0);
    assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE), -EINVAL); /* attributes are missing */
    assert_int_equal(ib_modify_qp(qp, &attr,
                                  IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
                                      IB_QP_RQ_PSN | answers),
                     0);
    attr = (struct ib_qp_attr){
        .qp_state = IB_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | asks), 0);
    struct ib_qp_init_attr init;
    assert_int_equal(ib_query_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN, &init), 0);
    assert_int_equal(attr.qp_state, IB_QPS_RTS);
    assert_int_equal(attr.dest_qp_num, peer->qp_num);
}

static void qps_that_connect_by_number(void **state)
{
    (void)state;
    static const enum ib_qp_type types[] = {IB_QPT_RC, IB_QPT_UC};
    struct ib_device *d = kit_roce();
    static u8 memory[64] = "by number";
    u64 at = ib_dma_map_single(d, memory, sizeof memory, DMA_BIDIRECTIONAL);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct ib_pd *pd = ib_alloc_pd(d, 0);
        struct ib_cq_init_attr attr = {.cqe = 16};
        struct ib_cq *cq = ib_create_cq(d, NULL, NULL, NULL, &attr);
        struct ib_qp *a = numbered(pd, cq, types[i]), *b = numbered(pd, cq, types[i]);
        struct ib_sge in = {at + 32, 32, pd->local_dma_lkey}, out = {at, 10, pd->local_dma_lkey};
        struct ib_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
        struct ib_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IB_WR_SEND}, *bad_send;
        assert_int_equal(ib_post_recv(b, &recv, &bad_recv), 0);
        to_rts(a, b);
        to_rts(b, a);
        assert_int_equal(ib_post_send(a, &send, &bad_send), 0);
        struct ib_wc wc = kit_poll(cq);
        assert_int_equal(wc.status, IB_WC_SUCCESS);
        assert_ptr_equal(wc.qp, b);
        assert_string_equal((char *)memory + 32, "by number");
        memset(memory + 32, 0, 32);
        assert_int_equal(ib_destroy_qp(a), 0);
        assert_int_equal(ib_destroy_qp(b), 0);
        assert_int_equal(ib_destroy_cq(cq), 0);
        ib_dealloc_pd(pd);
    }
    ib_dma_unmap_single(d, at, sizeof memory, DMA_BIDIRECTIONAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lists),
        cmocka_unit_test(opcodes_with_data),
        cmocka_unit_test(fast_registration),
        cmocka_unit_test(a_key_for_local_use),
        cmocka_unit_test(a_key_that_is_invalid_is_none),
        cmocka_unit_test(lists_with_something_bad),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(mapping_an_mr),
        cmocka_unit_test(one_srq_for_receives),
        cmocka_unit_test(events_of_objects),
        cmocka_unit_test(qps_that_connect_by_number),
    };
    kit_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong by a program's own doing, other than by keys (access_test.c): the work requests'
 * statuses, the events, and the one line that each end leaves in the log.
 */
#include "logfile.h"
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define TERMINATED "peer sent a Terminate message: "
#define FATAL      (1u << IBV_EVENT_QP_FATAL)
#define ACCESS     (1u << IBV_EVENT_QP_ACCESS_ERR)
#define REQUEST    (1u << IBV_EVENT_QP_REQ_ERR)

/* ---- what side a does; side b has posted the receives 61 and 62 of 50 bytes ---- */

static void send_51(struct pair *p)
{
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 1, 0, 51, 0, 0), 0);
}

static void send_many(struct pair *p)
{
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 1, 0, 200000, 0, 0), 0);
}

static void post(struct side *s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->wr_id = 1;
    wr->send_flags |= IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(s->id->qp, wr, &bad), 0);
}

static void bad_second_entry(struct pair *p)
{
    uint64_t at = (uintptr_t)p->a.buf;
    uint32_t key = p->a.mr->lkey;
    struct ibv_sge sge[3] = {{at, 8, key}, {at + SIDE_BYTES - 4, 8, key}, {at, 8, key}};
    post(&p->a, &(struct ibv_send_wr){.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 3});
}

static void bad_sink_entry(struct pair *p)
{
    uint64_t at = (uintptr_t)p->a.buf;
    uint32_t key = p->a.mr->lkey;
    struct ibv_sge sge[2] = {{at, 8, key}, {at, 8, 0}};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_READ,
        .sg_list = sge,
        .num_sge = 2,
        .wr.rdma = {.remote_addr = (uintptr_t)p->b.buf, .rkey = p->b.mr->rkey}};
    post(&p->a, &wr);
}

static void read_without_depth(struct pair *p)
{
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0), 0);
}

static void invalidate(struct pair *p, enum ibv_wr_opcode opcode, uint32_t key)
{
    post(&p->a, &(struct ibv_send_wr){.opcode = opcode, .invalidate_rkey = key});
}

static void invalidate_nothing(struct pair *p)
{
    invalidate(p, IBV_WR_LOCAL_INV, 0x12345678);
}

static void send_invalidate_nothing(struct pair *p)
{
    invalidate(p, IBV_WR_SEND_WITH_INV, 0x12345678);
}

/* A key of side a is one of another protection domain to side b. */
static void send_invalidate_foreign(struct pair *p)
{
    invalidate(p, IBV_WR_SEND_WITH_INV, p->a.mr->rkey);
}

static void unaligned_atomic(struct pair *p)
{
    struct ibv_sge sge = {(uintptr_t)p->a.buf, 8, p->a.mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.atomic = {.compare_add = 1, .rkey = p->b.mr->rkey}};
    wr.wr.atomic.remote_addr = (((uintptr_t)p->b.buf + 7) & ~(uintptr_t)7) + 4;
    post(&p->a, &wr);
}

static void modify_to_error(struct pair *p)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(p->a.id->qp, &attr, IBV_QP_STATE), 0);
}

static void disconnect(struct pair *p)
{
    assert_int_equal(rdma_disconnect(p->a.id), 0);
}

/* ---- what comes of it ---- */

struct want {
    uint64_t wr_id;
    enum ibv_wc_status status;
};

/* All of it was with TCP when the peer refused, or not. */
#define EITHER ((enum ibv_wc_status) - 1)

static const struct row {
    const char *name;
    void (*act)(struct pair *p);
    struct want a, b; /* of the work request at fault; wr_id 0: there is none */
    unsigned events_a, events_b;
    const char *line_a, *line_b; /* NULL: none */
    struct pair_conf conf;
} rows[] = {
    {.name = "receive too small",
     .act = send_51,
     .a = {1, IBV_WC_SUCCESS},
     .b = {61, IBV_WC_LOC_LEN_ERR},
     .events_a = FATAL,
     .events_b = FATAL,
     .line_a = TERMINATED "DDP, Untagged Buffer Error, DDP Message too long for available buffer "
                          "(1/2/05), about the Send, QN 0, MSN 1, MO 0; 0 send and 1 receive *",
     .line_b = "receive, wr_id 0x3d: untagged message longer than its receive buffer: Send of 51 "
               "bytes, receive of 50; 0 send and 1 receive *"},
    {.name = "receive too small for the first segment",
     .act = send_many,
     .a = {1, EITHER},
     .b = {61, IBV_WC_LOC_LEN_ERR},
     .events_a = FATAL,
     .events_b = FATAL,
     .line_a = TERMINATED "DDP, Untagged Buffer Error, *; * send and 1 receive *",
     .line_b = "receive, wr_id 0x3d: untagged message longer than its receive buffer: Send of more "
               "than * bytes, receive of 50; 0 send and 1 receive *"},
    {.name = "shared receive too small",
     .act = send_51,
     .a = {1, IBV_WC_SUCCESS},
     .b = {61, IBV_WC_LOC_LEN_ERR},
     .events_a = FATAL | 1u << IBV_EVENT_QP_LAST_WQE_REACHED,
     .events_b = FATAL | 1u << IBV_EVENT_QP_LAST_WQE_REACHED,
     .line_a = TERMINATED "DDP, *; 0 send and 0 receive *",
     .line_b = "receive, wr_id 0x3d: *: Send of 51 bytes, receive of 50; 0 send and 0 receive *",
     .conf = {.srq_wr = 8}},
    {.name = "second entry of a Send",
     .act = bad_second_entry,
     .a = {1, IBV_WC_LOC_PROT_ERR},
     .events_a = REQUEST,
     .events_b = FATAL,
     .line_a = "Send, wr_id 0x1: scatter/gather entry *: entry 2 of 3, local source of 8 bytes at "
               "0x*, key 0x*: registered 0x* to 0x*, local write, *; 0 send and 1 receive *",
     .line_b = TERMINATED "RDMAP, Local Catastrophic Error (0/0/00); 0 send and 2 receive *"},
    {.name = "second entry of a Read",
     .act = bad_sink_entry,
     .a = {1, IBV_WC_LOC_PROT_ERR},
     .events_a = REQUEST,
     .events_b = FATAL,
     .line_a = "RDMA Read, wr_id 0x1: *: entry 2 of 2, local sink of 8 bytes at 0x*, key "
               "0x00000000: no such key; *",
     .line_b = TERMINATED "RDMAP, Local Catastrophic Error (0/0/00); 0 send and 2 receive *"},
    {.name = "Read without depth",
     .act = read_without_depth,
     .a = {1, IBV_WC_LOC_QP_OP_ERR},
     .events_a = REQUEST,
     .events_b = FATAL,
     .line_a = "RDMA Read, wr_id 0x1: work request cannot be executed: the connection was made "
               "with an initiator_depth of 0; *",
     .line_b = TERMINATED "RDMAP, Local Catastrophic Error (0/0/00); *",
     .conf = {.no_reads = true}},
    {.name = "invalidation of nothing",
     .act = invalidate_nothing,
     .a = {1, IBV_WC_LOC_QP_OP_ERR},
     .events_a = REQUEST,
     .events_b = FATAL,
     .line_a = "local invalidate, wr_id 0x1: work request cannot be executed: key 0x12345678: "
               "STag cannot be invalidated; *",
     .line_b = TERMINATED "RDMAP, Local Catastrophic Error (0/0/00); *"},
    {.name = "remote invalidation of nothing",
     .act = send_invalidate_nothing,
     .a = {1, IBV_WC_SUCCESS},
     .b = {61, IBV_WC_REM_INV_REQ_ERR},
     .events_a = FATAL,
     .events_b = ACCESS,
     .line_a = TERMINATED "RDMAP, Remote Operation Error, STag cannot be Invalidated (0/2/09), "
                          "about the Send with Invalidate, QN 0, MSN 1, MO 0; *",
     .line_b = "receive, wr_id 0x3d: STag cannot be invalidated: Send with Invalidate, key "
               "0x12345678; *"},
    {.name = "remote invalidation in another domain",
     .act = send_invalidate_foreign,
     .a = {1, IBV_WC_SUCCESS},
     .b = {61, IBV_WC_REM_INV_REQ_ERR},
     .events_a = FATAL,
     .events_b = ACCESS,
     .line_a = TERMINATED "RDMAP, Remote Protection Error, STag cannot be Invalidated (0/1/09), *",
     .line_b = "receive, wr_id 0x3d: STag of another stream cannot be invalidated: *, key 0x*; *"},
    {.name = "unaligned atomic",
     .act = unaligned_atomic,
     .a = {1, IBV_WC_REM_INV_REQ_ERR},
     .events_a = FATAL,
     .events_b = ACCESS,
     .line_a = "atomic fetch and add, wr_id 0x1: " TERMINATED
               "RDMAP, Remote Operation Error, Catastrophic error, localized to RDMAP Stream "
               "(0/2/07), about the Atomic Request, QN 1, *; *",
     .line_b =
         "atomic on an unaligned address: atomic of 8 bytes at 0x*, key 0x*: registered *; *"},
    {.name = "modify_qp",
     .act = modify_to_error,
     .events_b = FATAL,
     .line_b = TERMINATED "RDMAP, Local Catastrophic Error (0/0/00); 0 send and 2 receive *"},
    {.name = "disconnect", .act = disconnect},
};

/** The work request at fault, then the others, each flushed once and in order. */
static void drain(struct side *s, const struct want *fault, uint64_t first, uint64_t last)
{
    for (uint64_t i = fault->wr_id ? 0 : 1; i <= (s->srq ? 0 : last - first + 1); i++) {
        struct ibv_wc wc = side_poll(s);
        uint64_t wr_id = i == 0 ? fault->wr_id : first + i - 1;
        enum ibv_wc_status status = i == 0 ? fault->status : IBV_WC_WR_FLUSH_ERR;
        if (status == EITHER)
            status = wc.status ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
        if (wc.wr_id != wr_id || wc.status != status)
            fail_msg("wr_id %u %s, wanted %u %s", (unsigned)wc.wr_id, ibv_wc_status_str(wc.status),
                     (unsigned)wr_id, ibv_wc_status_str(status));
        assert_int_equal(wc.qp_num, s->id->qp->qp_num);
        assert_true(!wc.vendor_err == !wc.status);
    }
    side_event(s, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(s, 1);
    assert_int_equal(s->id->qp->state, IBV_QPS_ERR);
}

static void run(const struct row *r)
{
    struct pair p;
    pair_open(&p, &r->conf);
    side_recv(&p.a, 51, 0, 50);
    side_recv(&p.b, 61, 0, 50);
    side_recv(&p.b, 62, 64, 50);
    r->act(&p);
    drain(&p.a, &r->a, 51, 51);
    drain(&p.b, &r->b, r->b.wr_id ? 62 : 61, 62);
    assert_int_equal(async_events(p.a.id->qp), r->events_a);
    assert_int_equal(async_events(p.b.id->qp), r->events_b);
    log_expect(p.a.id->qp->qp_num, r->line_a);
    log_expect(p.b.id->qp->qp_num, r->line_b);
    log_clear();
    pair_close(&p, 0);
}

static void every_mistake(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("  %s\n", rows[i].name);
        run(&rows[i]);
    }
}

/* ---- several work requests ---- */

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

static void expect_end(struct pair *p)
{
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(&p->a, 1);
    side_poll_none(&p->b, 1);
    pair_close(p, 0);
}

/** The peer's Terminate finds the read it is about among others. */
static void the_bad_one_of_many_reads(void **state)
{
    (void)state;
    for (unsigned bad = 1; bad <= 4; bad++) {
        struct pair p;
        char line[256];
        pair_open(&p, &(struct pair_conf){.depth = 4});
        struct ibv_mr mr = *p.b.mr;
        struct side wrong = {.buf = p.b.buf, .mr = &mr};
        mr.rkey ^= 0x10100;
        for (unsigned i = 1; i <= 6; i++)
            assert_int_equal(
                side_post(&p.a, i == bad ? &wrong : &p.b, IBV_WR_RDMA_READ, i, 0, 100000, 0, 0), 0);
        for (unsigned i = 1; i <= 6; i++) {
            struct ibv_wc wc = side_poll(&p.a);
            assert_int_equal(wc.wr_id, i);
            if (i == bad)
                assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
            else if (i > bad || wc.status != IBV_WC_SUCCESS) /* those before it may be answered */
                assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        }
        snprintf(line, sizeof(line), "RDMA Read, wr_id 0x%x: " TERMINATED "*", bad);
        log_expect(p.a.id->qp->qp_num, line);
        log_clear();
        expect_end(&p);
    }
}

/** A region that goes away while the read of it waits behind a Send that finds no receive. */
static void a_region_that_went_before_its_read_was_due(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
    struct side peer = {.buf = p.b.buf, .mr = mr};
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 2, 0, 8, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    side_recv(&p.b, 61, 64, 8);
    expect(&p.b, 61, IBV_WC_SUCCESS);
    expect(&p.a, 2, IBV_WC_REM_ACCESS_ERR);
    log_expect(p.a.id->qp->qp_num, "RDMA Read, wr_id 0x2: *(0/1/00)*");
    log_expect(p.b.id->qp->qp_num, "read or atomic from an invalid STag: RDMA Read of 8 bytes *");
    log_clear();
    expect_end(&p);
}

/** What the extended view says of failed completions. */
static void extended_completions(void **state)
{
    struct pair p;
    struct ibv_poll_cq_attr attr = {0};
    unsigned n = 0;
    (void)state;
    pair_open(&p, &(struct pair_conf){.ex = true});
    struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p.b.cq;
    side_recv(&p.b, 1, 0, 50);
    side_recv(&p.b, 2, 0, 50);
    send_51(&p);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    for (int r = ibv_start_poll(cq, &attr); r == 0; r = ibv_next_poll(cq)) {
        assert_int_equal(cq->wr_id, ++n);
        assert_int_equal(cq->status, n == 1 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(ibv_wc_read_qp_num(cq), p.b.id->qp->qp_num);
        assert_int_not_equal(ibv_wc_read_vendor_err(cq), 0);
    }
    ibv_end_poll(cq);
    assert_int_equal(n, 2);
    log_clear();
    pair_close(&p, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake),
        cmocka_unit_test(the_bad_one_of_many_reads),
        cmocka_unit_test(a_region_that_went_before_its_read_was_due),
        cmocka_unit_test(extended_completions),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}

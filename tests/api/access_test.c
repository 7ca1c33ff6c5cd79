/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every way to use memory, with everything that can be wrong with the key: which work request
 * fails and how, what is flushed, the events, what both ends say in the log, and that not one byte
 * was written anywhere.
 */
#include "logfile.h"
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define REGION     8192 /* offset and size of the region under test, within the buffer */
#define BYTES      8
#define FILL_A     0x5a
#define FILL_B     0xb5
#define ALL        (IBV_ACCESS_LOCAL_WRITE | REMOTE)
#define REMOTE     (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define TERMINATED "peer sent a Terminate message: "

/** What the access is for. Side a acts, but for RECV. */
enum use { WRITE, READ, ADD, SWAP, GATHER, SINK, RECV };

static const struct {
    const char *name, *in_log;
    enum ibv_wr_opcode opcode;
    unsigned right;            /* of the region, that the access needs */
    enum ibv_wc_status status; /* of the work request that wants the access */
    enum ibv_event_type event; /* on the side that finds the fault */
    bool of_peer;              /* side b finds it */
    const char *request;       /* that b's Terminate is about */
} uses[] = {
    [WRITE] = {"RDMA Write", "RDMA Write", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE,
               IBV_WC_SUCCESS, IBV_EVENT_QP_ACCESS_ERR, true, "RDMA Write segment at "},
    [READ] = {"RDMA Read", "RDMA Read", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ,
              IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, true,
              "RDMA Read Request, MSN *, for 8 bytes at "},
    [ADD] = {"atomic fetch and add", "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD,
             IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, true,
             "Atomic Request, QN 1, "},
    [SWAP] = {"atomic compare and swap", "atomic", IBV_WR_ATOMIC_CMP_AND_SWP,
              IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, true,
              "Atomic Request, QN 1, "},
    [GATHER] = {"Send", "entry 1 of 1, local source", IBV_WR_SEND, 0, IBV_WC_LOC_PROT_ERR,
                IBV_EVENT_QP_REQ_ERR, false, NULL},
    [SINK] = {"RDMA Read", "entry 1 of 1, local sink", IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE,
              IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_REQ_ERR, false, NULL},
    [RECV] = {"receive", "entry 1 of 1, local sink", IBV_WR_SEND, IBV_ACCESS_LOCAL_WRITE,
              IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_ACCESS_ERR, true, NULL},
};

enum fault { NONE, KEY, ZERO, NEXT, BEFORE, BEHIND, WRAP, RIGHT, DOMAIN, DEREG, INVALID, OF_QP };

/** Terminate code and its name for a tagged message, and for a read or atomic. */
#define CODES(tagged, tagged_name, read, read_name)                                                \
    "DDP, Tagged Buffer Error, " tagged_name " (1/1/" tagged ")",                                  \
        "RDMAP, Remote Protection Error, " read_name " (0/1/" read ")"

static const struct {
    const char *name, *in_log; /* behind the key */
    const char *tagged, *read;
} faults[] = {
    [KEY] = {"key", ": no such key", CODES("00", "Invalid STag", "00", "Invalid STag")},
    [ZERO] = {"key 0", ": no such key", CODES("00", "Invalid STag", "00", "Invalid STag")},
    [NEXT] = {"next key", ": no such key", CODES("00", "Invalid STag", "00", "Invalid STag")},
    [BEFORE] = {"before the start", ": registered 0x*",
                CODES("01", "Base or bounds violation", "01", "Base or bounds violation")},
    [BEHIND] = {"behind the end", ": registered 0x*",
                CODES("01", "Base or bounds violation", "01", "Base or bounds violation")},
    [WRAP] = {"wrap", ": registered 0x*", CODES("03", "TO wrap", "04", "TO wrap")},
    [RIGHT] = {"right", ": registered 0x*",
               CODES("00", "Invalid STag", "02", "Access rights violation")},
    [DOMAIN] = {"domain", ": the key is of another protection domain",
                CODES("02", "STag not associated with DDP Stream", "03",
                      "STag not associated with RDMAP Stream")},
    [DEREG] = {"deregistered", ": no such key any more: it was deregistered lately",
               CODES("00", "Invalid STag", "00", "Invalid STag")},
    [INVALID] = {"invalidated", ": invalidated, was 0x*",
                 CODES("00", "Invalid STag", "00", "Invalid STag")},
    [OF_QP] = {"QP's flags",
               ": registered 0x*, local write, remote write, remote read, remote "
               "atomic; the QP's access flags do not allow it",
               CODES("00", "Invalid STag", "02", "Access rights violation")},
};

static bool applies(enum use use, enum fault fault)
{
    if (fault == RIGHT)
        return uses[use].right != 0;
    return fault != OF_QP || use <= SWAP;
}

/** The memory under test, with something wrong. */
struct target {
    struct side *owner;
    struct ibv_pd *pd; /* NULL: the owner's */
    struct ibv_mr *mr; /* NULL: deregistered */
    uint64_t addr;
    uint32_t key;
};

static void invalidate(struct side *s, uint32_t key)
{
    struct ibv_send_wr wr = {.wr_id = 99,
                             .opcode = IBV_WR_LOCAL_INV,
                             .send_flags = IBV_SEND_SIGNALED,
                             .invalidate_rkey = key};
    struct ibv_send_wr *bad;
    assert_int_equal(ibv_post_send(s->id->qp, &wr, &bad), 0);
    assert_int_equal(side_poll(s).status, IBV_WC_SUCCESS);
}

static void restrict_qp(struct side *s, unsigned right)
{
    bool write = right == IBV_ACCESS_REMOTE_WRITE;
    struct ibv_qp_attr attr = {.qp_access_flags =
                                   write ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(ibv_modify_qp(s->id->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static struct target make_target(struct side *owner, enum use use, enum fault fault)
{
    struct target t = {.owner = owner};
    unsigned access = fault == RIGHT ? ALL & ~uses[use].right : ALL;
    if (fault == RIGHT && uses[use].right == IBV_ACCESS_LOCAL_WRITE)
        access = IBV_ACCESS_REMOTE_READ; /* no remote write without local write */
    if (fault == DOMAIN)
        t.pd = ibv_alloc_pd(owner->id->verbs);
    t.mr = ibv_reg_mr(t.pd ? t.pd : owner->pd, owner->buf + REGION, REGION, (int)access);
    assert_non_null(t.mr);
    t.addr = (uintptr_t)owner->buf + REGION;
    t.key = t.mr->rkey;
    assert_int_equal(t.mr->lkey, t.mr->rkey);
    if (fault == KEY)
        t.key ^= 0x10100;
    else if (fault == ZERO)
        t.key = 0;
    else if (fault == NEXT)
        t.key++;
    else if (fault == BEFORE)
        t.addr -= 1;
    else if (fault == BEHIND)
        t.addr += REGION - BYTES + 1;
    else if (fault == WRAP)
        t.addr = UINT64_MAX - BYTES + 2;
    else if (fault == INVALID)
        invalidate(owner, t.key);
    else if (fault == OF_QP)
        restrict_qp(owner, uses[use].right);
    if (fault == DEREG) {
        assert_int_equal(ibv_dereg_mr(t.mr), 0);
        t.mr = NULL;
    }
    return t;
}

static void drop_target(struct target *t)
{
    if (t->pd)
        assert_int_equal(ibv_dealloc_pd(t->pd), EBUSY);
    if (t->mr)
        assert_int_equal(ibv_dereg_mr(t->mr), 0);
    if (t->pd)
        assert_int_equal(ibv_dealloc_pd(t->pd), 0);
}

static void act(struct pair *p, enum use use, const struct target *t)
{
    bool local = use >= GATHER;
    struct ibv_sge good = {(uintptr_t)p->a.buf, BYTES, p->a.mr->lkey};
    struct ibv_sge bad = {t->addr, BYTES, t->key};
    struct ibv_send_wr wr[2] = {{.wr_id = 1, .next = &wr[1]}, {.wr_id = 2}}, *bad_wr;
    for (int i = 0; i < 2; i++) {
        wr[i].sg_list = &good;
        wr[i].num_sge = 1;
        wr[i].opcode = IBV_WR_SEND;
        wr[i].send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    }
    wr[0].opcode = uses[use].opcode;
    if (use == GATHER || use == SINK)
        wr[0].sg_list = &bad;
    uint64_t remote = local ? (uintptr_t)p->b.buf : t->addr;
    uint32_t rkey = local ? p->b.mr->rkey : t->key;
    if (use == ADD || use == SWAP) {
        wr[0].wr.atomic.remote_addr = remote;
        wr[0].wr.atomic.rkey = rkey;
        wr[0].wr.atomic.compare_add = 0xb5b5b5b5b5b5b5b5;
    } else {
        wr[0].wr.rdma.remote_addr = remote;
        wr[0].wr.rdma.rkey = rkey;
    }
    if (uses[use].status == IBV_WC_SUCCESS || use == RECV) /* the next one might do so, too */
        wr[0].next = NULL;
    assert_int_equal(ibv_post_send(p->a.id->qp, wr, &bad_wr), 0);
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.wr_id, wr_id);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, s->id->qp->qp_num);
    assert_true(!wc.vendor_err == !wc.status);
}

static void expect_completions(struct pair *p, enum use use)
{
    if (use == RECV) {
        expect(&p->a, 1, IBV_WC_SUCCESS);
        expect(&p->b, 60, IBV_WC_LOC_PROT_ERR);
    } else {
        expect(&p->a, 1, uses[use].status);
        if (uses[use].status != IBV_WC_SUCCESS)
            expect(&p->a, 2, IBV_WC_WR_FLUSH_ERR);
    }
    expect(&p->a, 50, IBV_WC_WR_FLUSH_ERR);
    expect(&p->b, 61, IBV_WC_WR_FLUSH_ERR);
    expect(&p->b, 62, IBV_WC_WR_FLUSH_ERR);
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(&p->a, 1);
    side_poll_none(&p->b, 1);
    assert_int_equal(p->a.id->qp->state, IBV_QPS_ERR);
    assert_int_equal(p->b.id->qp->state, IBV_QPS_ERR);
}

static void expect_lines(const struct pair *p, enum use use, enum fault fault,
                         const struct target *t)
{
    char facts[256], line[512], culprit[64] = "";
    const struct side *finder = uses[use].of_peer ? &p->b : &p->a;
    const struct side *other = uses[use].of_peer ? &p->a : &p->b;
    if (use == RECV || use == GATHER || use == SINK)
        snprintf(culprit, sizeof(culprit), "%s, wr_id 0x%x: ", uses[use].name,
                 use == RECV ? 60 : 1);
    snprintf(facts, sizeof(facts), "%s of %d bytes at 0x%llx, key 0x%08x%s", uses[use].in_log,
             BYTES, (unsigned long long)t->addr, t->key, faults[fault].in_log);
    snprintf(line, sizeof(line), "%s*: %s; %d send and %d receive work requests flushed", culprit,
             facts, uses[use].of_peer ? 0 : 1, uses[use].of_peer ? 2 : 1);
    log_expect(finder->id->qp->qp_num, line);

    const char *said = "RDMAP, Local Catastrophic Error (0/0/00)";
    if (use <= SWAP)
        said = use == WRITE ? faults[fault].tagged : faults[fault].read;
    culprit[0] = 0;
    if (use == READ || use == ADD || use == SWAP)
        snprintf(culprit, sizeof(culprit), "%s, wr_id 0x1: ", uses[use].name);
    snprintf(line, sizeof(line), "%s" TERMINATED "%s%s%s*; %d send and %d receive *", culprit, said,
             uses[use].request ? ", about the " : "", uses[use].request ? uses[use].request : "",
             use == READ || use == ADD || use == SWAP, uses[use].of_peer ? 1 : 2);
    log_expect(other->id->qp->qp_num, line);
    log_clear();
}

static void expect_untouched(const struct pair *p)
{
    for (size_t i = 0; i < SIDE_BYTES; i++)
        if (p->a.buf[i] != FILL_A || p->b.buf[i] != FILL_B)
            fail_msg("byte %zu was written", i);
}

static void try(enum use use, enum fault fault)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){.ex = fault % 2});
    memset(p.a.buf, FILL_A, SIDE_BYTES);
    memset(p.b.buf, FILL_B, SIDE_BYTES);
    bool of_a = use == GATHER || use == SINK;
    struct target t = make_target(of_a ? &p.a : &p.b, use, fault);
    if (use == RECV) {
        struct ibv_sge sge = {t.addr, BYTES, t.key};
        struct ibv_recv_wr wr = {.wr_id = 60, .sg_list = &sge, .num_sge = 1}, *bad;
        assert_int_equal(ibv_post_recv(p.b.id->qp, &wr, &bad), 0);
    }
    side_recv(&p.a, 50, 0, BYTES);
    side_recv(&p.b, 61, 0, BYTES);
    side_recv(&p.b, 62, 0, BYTES);
    act(&p, use, &t);
    expect_completions(&p, use);
    expect_lines(&p, use, fault, &t);
    unsigned finder = 1u << uses[use].event, other = 1u << IBV_EVENT_QP_FATAL;
    assert_int_equal(async_events(p.a.id->qp), uses[use].of_peer ? other : finder);
    assert_int_equal(async_events(p.b.id->qp), uses[use].of_peer ? finder : other);
    expect_untouched(&p);
    drop_target(&t);
    pair_close(&p, 0);
}

static void every_fault_of_every_use(void **state)
{
    (void)state;
    for (enum use use = WRITE; use <= RECV; use++)
        for (enum fault fault = KEY; fault <= OF_QP; fault++)
            if (applies(use, fault)) {
                print_message("  %s, %s\n", uses[use].name, faults[fault].name);
                try(use, fault);
            }
}

/** The edges that are right: the first and the last bytes of a region, and nothing at all. */
static void the_edges_are_usable(void **state)
{
    static const struct {
        uint64_t at;
        uint32_t len;
        bool any_key;
    } rows[] = {
        {0, BYTES, false}, {REGION - BYTES, BYTES, false}, {0, REGION, false}, {0, 0, true}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        struct target t = make_target(&p.b, WRITE, NONE);
        struct ibv_mr mr = *t.mr;
        struct side peer = {.buf = p.b.buf + REGION, .mr = &mr};
        if (rows[i].any_key)
            mr.rkey ^= 0x10100;
        assert_int_equal(
            side_post(&p.a, &peer, IBV_WR_RDMA_WRITE, 1, 0, rows[i].len, rows[i].at, 0), 0);
        assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 2, 0, rows[i].len, rows[i].at, 0),
                         0);
        expect(&p.a, 1, IBV_WC_SUCCESS);
        expect(&p.a, 2, IBV_WC_SUCCESS);
        drop_target(&t);
        pair_close(&p, 1);
    }
}

/** What the CM sets, and nothing at all, forbid nothing: not atomics either. */
static void the_rights_of_the_cm_are_all(void **state)
{
    static const unsigned rights[] = {0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    (void)state;
    for (size_t i = 0; i < COUNT(rights); i++) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        struct ibv_qp_attr attr = {.qp_access_flags = rights[i]};
        assert_int_equal(ibv_modify_qp(p.b.id->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
        struct target t = make_target(&p.b, WRITE, NONE);
        for (enum use use = WRITE; use <= SWAP; use++) {
            side_recv(&p.b, 60, 0, BYTES);
            act(&p, use, &t);
            expect(&p.a, 1, IBV_WC_SUCCESS);
            if (use != WRITE) { /* a Send goes with it */
                expect(&p.a, 2, IBV_WC_SUCCESS);
                expect(&p.b, 60, IBV_WC_SUCCESS);
            }
        }
        drop_target(&t);
        pair_close(&p, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_every_use),
        cmocka_unit_test(the_edges_are_usable),
        cmocka_unit_test(the_rights_of_the_cm_are_all),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}

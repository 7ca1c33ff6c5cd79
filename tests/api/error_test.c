/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong over one connection: the right status on the right work request, everything else
 * flushed once and in order, one DISCONNECTED on each side, nothing written outside a valid region
 * (pair_close() looks at the canaries), and one English line in the log.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char log_name[] = "/tmp/anywarp-error-test-XXXXXX";

static int log_setup(void **state)
{
    (void)state;
    int fd = mkstemp(log_name);
    if (fd < 0)
        return -1;
    close(fd);
    return setenv("VERBS_LOG_LEVEL", "2", 1) || setenv("VERBS_LOG_FILE", log_name, 1);
}

static int log_teardown(void **state)
{
    (void)state;
    return unlink(log_name);
}

/** Whether the log has @p text; it is emptied. */
static int logged(const char *text)
{
    char bytes[16384];
    FILE *f = fopen(log_name, "r");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes) - 1, f);
    bytes[n] = 0;
    fclose(f);
    assert_int_equal(truncate(log_name, 0), 0);
    if (!strstr(bytes, text))
        print_error("wanted \"%s\" in:\n%s", text, bytes);
    return strstr(bytes, text) != NULL;
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

static void expect_end(struct pair *p)
{
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(p->a.id->qp->state, IBV_QPS_ERR);
    assert_int_equal(p->b.id->qp->state, IBV_QPS_ERR);
    side_poll_none(&p->a, 5);
    side_poll_none(&p->b, 5);
    pair_close(p, 0);
}

/** Reads of the peer that it must refuse. */
struct refusal {
    const char *name;
    long addr, key; /* added to what is right */
    uint32_t len;
    int access;       /* of the regions, 0: all */
    const char *line; /* in the log of the responder */
};

static const struct refusal refusals[] = {
    {"key", 0, 0x10100, 8, 0, "no such key"},
    {"behind the end", SIDE_BYTES - 4, 0, 8, 0, "registered"},
    {"before the start", -1, 0, 8, 0, "registered"},
    {"wrap", -1 - (long)SIDE_BYTES, 0, SIDE_BYTES, 0, "registered"},
    {"right", 0, 0, 8, IBV_ACCESS_LOCAL_WRITE, "local write"},
};
#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static void bad_reads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *r = &refusals[i];
        struct pair p;
        print_message("  %s\n", r->name);
        pair_open(&p, &(struct pair_conf){.access = r->access});
        struct ibv_mr mr = *p.b.mr;
        struct side peer = {.buf = p.b.buf + r->addr, .mr = &mr};
        mr.rkey += (uint32_t)r->key;
        assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 1, 0, r->len, 0, 0), 0);
        assert_int_equal(side_post(&p.a, &peer, IBV_WR_SEND, 2, 0, 8, 0, IBV_SEND_FENCE), 0);
        expect(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
        expect(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
        expect_end(&p);
        assert_true(logged(r->line));
    }
}

static void bad_writes_end_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *r = &refusals[i];
        struct pair p;
        print_message("  %s\n", r->name);
        pair_open(&p, &(struct pair_conf){.access = r->access});
        struct ibv_mr mr = *p.b.mr;
        struct side peer = {.buf = p.b.buf + r->addr, .mr = &mr};
        mr.rkey += (uint32_t)r->key;
        memset(p.b.buf, 0x5a, SIDE_BYTES);
        side_recv(&p.b, 60, 0, 8);
        assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_WRITE, 1, 0, r->len, 0, 0), 0);
        expect(&p.a, 1, IBV_WC_SUCCESS); /* with TCP: says nothing about the peer */
        expect(&p.b, 60, IBV_WC_WR_FLUSH_ERR);
        for (size_t k = 0; k < SIDE_BYTES; k++)
            assert_int_equal(p.b.buf[k], 0x5a);
        expect_end(&p);
        assert_true(logged(r->line));
    }
}

static void a_short_receive_fails(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 7, 0, 50);
    side_recv(&p.b, 8, 100, 50);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 51, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    expect(&p.b, 7, IBV_WC_LOC_LEN_ERR);
    expect(&p.b, 8, IBV_WC_WR_FLUSH_ERR);
    expect_end(&p);
    assert_true(logged("longer than its receive buffer"));
}

static void a_bad_local_key_fails_its_own_request(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr mr = *p.a.mr;
    struct side wrong = p.a;
    wrong.mr = &mr;
    mr.lkey ^= 0x100;
    side_recv(&p.b, 9, 0, 50);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), 0);
    assert_int_equal(side_post(&wrong, &p.b, IBV_WR_SEND, 2, 0, 8, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    expect(&p.a, 2, IBV_WC_LOC_PROT_ERR);
    expect(&p.b, 9, IBV_WC_WR_FLUSH_ERR);
    expect_end(&p);
    assert_true(logged("no such key"));
}

static void a_bad_receive_key_fails_its_own_receive(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr mr = *p.b.mr;
    struct side wrong = p.b;
    wrong.mr = &mr;
    mr.lkey ^= 0x100;
    side_recv(&wrong, 3, 0, 50);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    expect(&p.b, 3, IBV_WC_LOC_PROT_ERR);
    expect_end(&p);
    assert_true(logged("no such key"));
}

static void a_deregistered_region_is_gone(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr copy = *mr;
    struct side peer = {.buf = p.b.buf, .mr = &copy};
    assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 1, 0, 64, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 2, 0, 64, 0, 0), 0);
    expect(&p.a, 2, IBV_WC_REM_ACCESS_ERR);
    expect_end(&p);
    assert_true(logged("no such key"));
}

static void a_region_of_another_domain_is_refused(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_pd *pd = ibv_alloc_pd(p.b.id->verbs);
    struct ibv_mr *mr = ibv_reg_mr(pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
    struct side peer = {.buf = p.b.buf, .mr = mr};
    assert_int_equal(side_post(&p.a, &peer, IBV_WR_RDMA_READ, 1, 0, 64, 0, 0), 0);
    expect(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    expect_end(&p);
    assert_true(logged("another protection domain"));
}

static void an_unaligned_atomic_touches_nothing(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.compare_add = 1, .rkey = p.b.mr->rkey}};
    struct ibv_send_wr *bad;
    wr.wr.atomic.remote_addr = (((uintptr_t)p.b.buf + 7) & ~(uintptr_t)7) + 4;
    memset(p.b.buf, 0, 64);
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    struct ibv_wc wc = side_poll(&p.a);
    assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 1);
    for (int i = 0; i < 64; i++)
        assert_int_equal(p.b.buf[i], 0);
    expect_end(&p);
    assert_true(logged("unaligned"));
}

static void work_posted_in_error_is_flushed(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_STATE), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    for (unsigned i = 0; i < 5; i++) {
        side_recv(&p.a, 10 + i, 0, 8);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
        expect(&p.a, 10 + i, IBV_WC_WR_FLUSH_ERR);
        expect(&p.a, i, IBV_WC_WR_FLUSH_ERR);
    }
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(p.a.id->qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(p.a.id->qp->state, IBV_QPS_ERR); /* an iWARP QP does not come back */
    pair_close(&p, 0);
}

static void everything_posted_completes_once(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 1});
    for (unsigned i = 0; i < 20; i++)
        side_recv(&p.a, 100 + i, 0, 8);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, 0, 100000, 0, 0), 0);
    rdma_destroy_qp(p.b.id); /* the peer goes away in the middle */
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    unsigned i = 0;
    struct ibv_wc wc;
    for (; i < 30; i++) { /* those that were answered, then the flushed ones, in order */
        wc = side_poll(&p.a);
        assert_int_equal(wc.wr_id, i);
    }
    for (i = 0; i < 20; i++)
        expect(&p.a, 100 + i, IBV_WC_WR_FLUSH_ERR);
    side_poll_none(&p.a, 5);
    pair_close(&p, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_reads_are_refused),
        cmocka_unit_test(bad_writes_end_the_connection),
        cmocka_unit_test(a_short_receive_fails),
        cmocka_unit_test(a_bad_local_key_fails_its_own_request),
        cmocka_unit_test(a_bad_receive_key_fails_its_own_receive),
        cmocka_unit_test(a_deregistered_region_is_gone),
        cmocka_unit_test(a_region_of_another_domain_is_refused),
        cmocka_unit_test(an_unaligned_atomic_touches_nothing),
        cmocka_unit_test(work_posted_in_error_is_flushed),
        cmocka_unit_test(everything_posted_completes_once),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}

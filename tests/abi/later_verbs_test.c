/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs that rdma-core 59 to 65 brought, whatever release the library is built with. */
#include "api/pair.h"
#include "env/later.h"
#include "fails.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd, *other;

static int setup(void **state)
{
    (void)state;
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    other = ctx ? ibv_alloc_pd(ctx) : NULL;
    return pd && other ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return ibv_dealloc_pd(pd) || ibv_dealloc_pd(other) || ibv_close_device(ctx);
}

static void port_speed(void **state)
{
    uint64_t speed = 0;
    (void)state;
    assert_int_equal(ibv_query_port_speed(ctx, 1, &speed), 0);
    assert_int_not_equal(speed, 0);
    assert_int_equal(ibv_query_port_speed(ctx, 0, &speed), EINVAL);
    assert_int_equal(ibv_query_port_speed(ctx, 257, &speed), EINVAL);
    assert_int_equal(ibv_query_port_speed(ctx, 1, NULL), EINVAL);
    assert_int_equal(ibv_query_port_speed(NULL, 1, &speed), EINVAL);
}

static void registration_with_one_argument(void **state)
{
    static _Alignas(4096) char memory[8192];
    struct ibv_mr_init_attr attr = {
        .length = sizeof memory,
        .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
        .comp_mask = IBV_REG_MR_MASK_ADDR,
        .addr = memory,
        .iova = 1, /* not asked for */
        .fd = -1,
    };
    (void)state;
    struct ibv_mr *mr = ibv_reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory);
    assert_int_equal(mr->length, sizeof memory);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    attr.comp_mask |= IBV_REG_MR_MASK_IOVA;
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &attr)); /* another place in its page */
    attr.iova = 1 << 20;
    mr = ibv_reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    attr.access = IBV_ACCESS_REMOTE_WRITE; /* without local */
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &attr));
    attr.access = IBV_ACCESS_LOCAL_WRITE;
    attr.comp_mask = 0;
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &attr));
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD;
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &attr));
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | 1 << 20;
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &attr));
    attr.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA;
    NULL_AND(EOPNOTSUPP, ibv_reg_mr_ex(pd, &attr));
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH;
    NULL_AND(EOPNOTSUPP, ibv_reg_mr_ex(pd, &attr));
    NULL_AND(EINVAL, ibv_reg_mr_ex(NULL, &attr));
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, NULL));
}

static void buffers(void **state)
{
    struct ibv_buf *buf = NULL;
    (void)state;
    uint8_t *p = ibv_alloc_buf(pd, 5000, &buf);
    assert_non_null(p);
    assert_non_null(buf);
    assert_int_equal((uintptr_t)p % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    memset(p, 0x5a, 5000);

    struct ibv_mr *mr = ibv_reg_buf_mr(pd, buf, p + 1000, 4000, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, p + 1000);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    NULL_AND(EINVAL, ibv_reg_buf_mr(other, buf, p, 5000, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, buf, p, 5001, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, buf, p + 1, 5000, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, buf, p - 1, 1, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, buf, p + 1, SIZE_MAX, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, NULL, p, 1, 0));
    NULL_AND(EINVAL, ibv_reg_buf_mr(pd, buf, p, 0, 0));

    /* The same, with the space where the field is in every release. */
    struct {
        struct ibv_mr_init_attr attr;
        struct ibv_buf *after;
    } a = {.attr = {.length = 5000, .comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF}};
    a.attr.addr = p;
    memcpy((char *)&a + offsetof(struct ibv_mr_init_attr, dmah) + sizeof(void *), &buf, sizeof buf);
    mr = ibv_reg_mr_ex(pd, &a.attr);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    NULL_AND(EINVAL, ibv_reg_mr_ex(other, &a.attr));
    a.attr.length = 5001;
    NULL_AND(EINVAL, ibv_reg_mr_ex(pd, &a.attr));

    errno = 0;
    assert_int_equal(ibv_export_buf_dmabuf_fd(buf), -1);
    assert_int_equal(errno, ENODATA);
    ibv_free_buf(buf);
    ibv_free_buf(NULL);
    NULL_AND(EINVAL, ibv_alloc_buf(NULL, 1, &buf));
    NULL_AND(EINVAL, ibv_alloc_buf(pd, 0, &buf));
    NULL_AND(EINVAL, ibv_alloc_buf(pd, 1, NULL));
    NULL_AND(ENOMEM, ibv_alloc_buf(pd, SIZE_MAX, &buf));
    NULL_AND(ENOMEM, ibv_alloc_buf(pd, SIZE_MAX / 2, &buf));
}

/** Permission for memory that is not protected from the host is no reason to refuse a domain. */
static void parent_domain(void **state)
{
    struct ibv_parent_domain_init_attr attr = {
        .pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC};
    struct ibv_buf *buf;
    (void)state;
    struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
    assert_non_null(parent);
    void *p = ibv_alloc_buf(parent, 4096, &buf);
    assert_non_null(p);
    struct ibv_mr *mr = ibv_reg_buf_mr(parent, buf, p, 4096, 0);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    ibv_free_buf(buf);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
}

static void what_only_adapters_have(void **state)
{
    (void)state;
    NULL_AND(EOPNOTSUPP, ibv_alloc_dmah(ctx, &(struct ibv_dmah_init_attr){0}));
    assert_int_equal(ibv_dealloc_dmah(NULL), EOPNOTSUPP);
    errno = 0;
    assert_int_equal(ibv_dm_export_dmabuf_fd(NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
}

/* ---- completion counters ---- */

static struct ibv_comp_cntr *counter(struct ibv_context *context, enum ibv_comp_cntr_type type)
{
    struct ibv_comp_cntr *c =
        ibv_create_comp_cntr(context, &(struct ibv_comp_cntr_init_attr){.type = type});
    assert_non_null(c);
    assert_ptr_equal(c->context, context);
    return c;
}

static uint64_t done(struct ibv_comp_cntr *c)
{
    uint64_t value = UINT64_MAX;
    assert_int_equal(ibv_read_comp_cntr(c, &value), 0);
    return value;
}

static uint64_t failed(struct ibv_comp_cntr *c)
{
    uint64_t value = UINT64_MAX;
    assert_int_equal(ibv_read_err_comp_cntr(c, &value), 0);
    return value;
}

/** Nobody polls meanwhile. */
static void await_done(struct ibv_comp_cntr *c, uint64_t value)
{
    for (int i = 0; i < 10000 && done(c) < value; i++)
        poll(NULL, 0, 1);
    assert_int_equal(done(c), value);
}

static void counter_values(void **state)
{
    struct ibv_comp_cntr_caps caps;
    struct {
        struct ibv_comp_cntr_caps known;
        uint64_t later;
    } big;
    (void)state;
    assert_int_equal(ibv_query_comp_cntr_caps(ctx, &caps), 0);
    assert_true(caps.max_value == UINT64_MAX);
    memset(&big, 0xff, sizeof big);
    assert_int_equal(_ibv_query_comp_cntr_caps(ctx, &big.known, sizeof big), 0);
    assert_memory_equal(&big.known, &caps, sizeof caps);
    assert_int_equal(big.later, 0);
    assert_int_equal(ibv_query_comp_cntr_caps(NULL, &caps), EINVAL);
    assert_int_equal(ibv_query_comp_cntr_caps(ctx, NULL), EINVAL);

    struct ibv_comp_cntr *c = counter(ctx, IBV_COMP_CNTR_TYPE_WRS);
    assert_int_equal(done(c), 0);
    assert_int_equal(failed(c), 0);
    assert_int_equal(ibv_set_comp_cntr(c, 5), 0);
    assert_int_equal(ibv_inc_comp_cntr(c, 2), 0);
    assert_int_equal(ibv_set_err_comp_cntr(c, UINT64_MAX), 0);
    assert_int_equal(ibv_inc_err_comp_cntr(c, 4), 0);
    assert_int_equal(done(c), 7);
    assert_int_equal(failed(c), 3);
    assert_int_equal(ibv_destroy_comp_cntr(c), 0);

    uint64_t value;
    assert_int_equal(ibv_set_comp_cntr(NULL, 1), EINVAL);
    assert_int_equal(ibv_set_err_comp_cntr(NULL, 1), EINVAL);
    assert_int_equal(ibv_inc_comp_cntr(NULL, 1), EINVAL);
    assert_int_equal(ibv_inc_err_comp_cntr(NULL, 1), EINVAL);
    assert_int_equal(ibv_read_comp_cntr(NULL, &value), EINVAL);
    assert_int_equal(ibv_read_err_comp_cntr(NULL, &value), EINVAL);
    assert_int_equal(ibv_destroy_comp_cntr(NULL), EINVAL);
    NULL_AND(EINVAL, ibv_create_comp_cntr(ctx, NULL));
    NULL_AND(EINVAL, ibv_create_comp_cntr(NULL, &(struct ibv_comp_cntr_init_attr){0}));
    NULL_AND(EINVAL, ibv_create_comp_cntr(ctx, &(struct ibv_comp_cntr_init_attr){.comp_mask = 1}));
    NULL_AND(EINVAL, ibv_create_comp_cntr(ctx, &(struct ibv_comp_cntr_init_attr){.flags = 1}));
    NULL_AND(EINVAL, ibv_create_comp_cntr(ctx, &(struct ibv_comp_cntr_init_attr){
                                                   .type = (enum ibv_comp_cntr_type)2}));
}

static void as_many_as_it_says(void **state)
{
    struct ibv_comp_cntr_caps caps;
    (void)state;
    assert_int_equal(ibv_query_comp_cntr_caps(ctx, &caps), 0);
    struct ibv_comp_cntr **c = calloc(caps.max_counters, sizeof *c);
    assert_non_null(c);
    for (uint32_t i = 0; i < caps.max_counters; i++)
        c[i] = counter(ctx, IBV_COMP_CNTR_TYPE_WRS);
    NULL_AND(ENOMEM, ibv_create_comp_cntr(ctx, &(struct ibv_comp_cntr_init_attr){0}));
    for (uint32_t i = 0; i < caps.max_counters; i++)
        assert_int_equal(ibv_destroy_comp_cntr(c[i]), 0);
    free(c);
}

enum { SEND, RECV, READ, REMOTE_READ, WRITE, REMOTE_WRITE, KINDS };

static struct ibv_comp_cntr *ops[2][KINDS], *bytes;

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *c, uint32_t mask)
{
    return ibv_qp_attach_comp_cntr(qp, c, &(struct ibv_qp_attach_comp_cntr_attr){.op_mask = mask});
}

/** The QPs of a pair get a counter for each operation. */
static void count_each(struct side *s)
{
    struct ibv_qp *qp = s->id->qp;
    unsigned b = ops[0][SEND] != NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        ops[b][i] = counter(qp->context, IBV_COMP_CNTR_TYPE_WRS);
        assert_int_equal(attach(qp, ops[b][i], 1u << i), i == REMOTE_READ ? ENOTSUP : 0);
        assert_int_equal(attach(qp, ops[b][i], 1u << i), i == REMOTE_READ ? ENOTSUP : EBUSY);
    }
    assert_int_equal(attach(qp, ops[b][SEND], 0), EINVAL);
    assert_int_equal(attach(qp, ops[b][SEND], 1 << 6), ENOTSUP);
    assert_int_equal(attach(NULL, ops[b][SEND], 1), EINVAL);
    assert_int_equal(attach(qp, NULL, 1), EINVAL);
    assert_int_equal(ibv_qp_attach_comp_cntr(qp, ops[b][SEND], NULL), EINVAL);
    struct ibv_qp_attach_comp_cntr_attr unknown = {.comp_mask = 1, .op_mask = 1};
    assert_int_equal(ibv_qp_attach_comp_cntr(qp, ops[b][SEND], &unknown), EINVAL);
    struct ibv_comp_cntr *foreign = counter(ctx, IBV_COMP_CNTR_TYPE_WRS);
    assert_int_equal(attach(qp, foreign, 1), EINVAL);
    assert_int_equal(ibv_destroy_comp_cntr(foreign), 0);
}

static void end_counting(void)
{
    for (unsigned b = 0; b < 2; b++)
        for (unsigned i = 0; i < KINDS; i++) {
            assert_int_equal(ibv_destroy_comp_cntr(ops[b][i]), 0);
            ops[b][i] = NULL;
        }
}

static void expect(unsigned b, const uint64_t want[KINDS])
{
    for (unsigned i = 0; i < KINDS; i++)
        if (done(ops[b][i]) != want[i])
            fail_msg("side %u, operation %u: %lu, not %lu", b, i, (unsigned long)done(ops[b][i]),
                     (unsigned long)want[i]);
}

static void unsignaled(struct side *s, const struct side *peer, enum ibv_wr_opcode op, uint32_t len)
{
    /* What comes in goes elsewhere than what goes out comes from. */
    size_t at = op == IBV_WR_RDMA_READ ? SIDE_BYTES / 2 : 0;
    struct ibv_sge sge = {(uintptr_t)s->buf + at, len, s->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = op,
              .wr.rdma = {(uintptr_t)peer->buf + SIDE_BYTES / 4, peer->mr->rkey}};
    assert_int_equal(ibv_post_send(s->id->qp, &wr, &bad), 0);
}

static void operations_are_counted(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 64, .recv_wr = 64, .made = count_each});
    assert_int_equal(attach(p.a.id->qp, ops[0][SEND], 1), EINVAL); /* connected */
    for (unsigned i = 0; i < 8; i++)
        side_recv(&p.b, i, SIDE_BYTES * 3 / 4, 4096);
    for (unsigned i = 0; i < 3; i++)
        unsignaled(&p.a, &p.b, IBV_WR_SEND, 100);
    for (unsigned i = 0; i < 5; i++)
        unsignaled(&p.a, &p.b, IBV_WR_RDMA_WRITE, 2000);
    unsignaled(&p.a, &p.b, IBV_WR_RDMA_WRITE_WITH_IMM, 50);
    unsignaled(&p.a, &p.b, IBV_WR_SEND_WITH_IMM, 50);
    for (unsigned i = 0; i < 2; i++)
        unsignaled(&p.a, &p.b, IBV_WR_RDMA_READ, 3000);
    await_done(ops[0][READ], 2);
    expect(0, (uint64_t[KINDS]){[SEND] = 4, [WRITE] = 6, [READ] = 2});
    expect(1, (uint64_t[KINDS]){[RECV] = 5, [REMOTE_WRITE] = 6});
    assert_int_equal(ibv_destroy_comp_cntr(ops[0][SEND]), EBUSY);

    /* What is flushed is an error of each. */
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(p.b.id->qp, &error, IBV_QP_STATE), 0);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    unsignaled(&p.b, &p.a, IBV_WR_SEND, 1);
    for (unsigned i = 0; i < 5 + 3 + 1; i++)
        side_poll(&p.b);
    assert_int_equal(failed(ops[1][RECV]), 3);
    assert_int_equal(failed(ops[1][SEND]), 1);
    expect(1, (uint64_t[KINDS]){[RECV] = 5, [REMOTE_WRITE] = 6});
    pair_close(&p, 0);
    end_counting();
}

static void count_bytes(struct side *s)
{
    if (!bytes)
        bytes = counter(s->id->qp->context, IBV_COMP_CNTR_TYPE_BYTES);
    assert_int_equal(attach(s->id->qp, bytes, 1u << RECV | 1u << REMOTE_WRITE | 1u << READ), 0);
}

/** One counter for several operations of several QPs. */
static void bytes_are_counted(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 64, .recv_wr = 64, .made = count_bytes});
    side_recv(&p.b, 1, SIDE_BYTES * 3 / 4, 4096);
    side_recv(&p.a, 1, SIDE_BYTES * 3 / 4, 4096);
    unsignaled(&p.a, &p.b, IBV_WR_SEND, 100);
    unsignaled(&p.b, &p.a, IBV_WR_SEND, 30);
    unsignaled(&p.a, &p.b, IBV_WR_RDMA_WRITE, 100000); /* several FPDUs */
    unsignaled(&p.a, &p.b, IBV_WR_RDMA_READ, 7000);
    await_done(bytes, 107130);
    assert_int_equal(ibv_set_comp_cntr(bytes, 0), 0);
    unsignaled(&p.b, &p.a, IBV_WR_RDMA_WRITE, 11);
    await_done(bytes, 11);
    pair_close(&p, 1);
    assert_int_equal(failed(bytes), 0);
    assert_int_equal(ibv_destroy_comp_cntr(bytes), 0);
    bytes = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_speed),
        cmocka_unit_test(registration_with_one_argument),
        cmocka_unit_test(buffers),
        cmocka_unit_test(parent_domain),
        cmocka_unit_test(what_only_adapters_have),
        cmocka_unit_test(counter_values),
        cmocka_unit_test(as_many_as_it_says),
        cmocka_unit_test(operations_are_counted),
        cmocka_unit_test(bytes_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

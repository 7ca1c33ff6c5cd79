/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: what can be registered, reregistering, the null region, parent domains, advice,
 * and that nobody touches memory after it was given back, whatever traffic there is.
 */
#include "fails.h"
#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LW  IBV_ACCESS_LOCAL_WRITE
#define RW  IBV_ACCESS_REMOTE_WRITE
#define RR  IBV_ACCESS_REMOTE_READ
#define RA  IBV_ACCESS_REMOTE_ATOMIC
#define ALL (LW | RW | RR | RA)

#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define PD          IBV_REREG_MR_CHANGE_PD
#define ACCESS      IBV_REREG_MR_CHANGE_ACCESS

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

/** The peer went on strike: the connection is over. */
static void ends(struct pair *p)
{
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    pair_close(p, 0);
}

/** Side a reads or writes @p len bytes at @p to of side b, from or to its own buf. */
static enum ibv_wc_status access_by(struct pair *p, enum ibv_wr_opcode op, uint32_t rkey,
                                    uint64_t to, uint32_t len)
{
    struct ibv_mr mr = {.rkey = rkey};
    struct side peer = {.buf = (uint8_t *)(uintptr_t)to, .mr = &mr};
    assert_int_equal(side_post(&p->a, &peer, op, 77, 0, len, 0, 0), 0);
    struct ibv_wc wc = side_poll(&p->a);
    assert_int_equal(wc.wr_id, 77);
    return wc.status;
}

static void *pages(size_t len, int prot)
{
    void *m = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    return m;
}

/* ---- registration ---- */

static void what_can_be_registered(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    const size_t page = (size_t)getpagesize();
    uint8_t *ro = pages(page, PROT_READ), *hole = pages(3 * page, PROT_READ | PROT_WRITE);
    assert_int_equal(munmap(hole + page, page), 0);
    const struct {
        void *addr;
        size_t len;
        unsigned access;
        int err;
    } rows[] = {
        {p.a.buf, 64, 0, 0},
        {p.a.buf, 64, ALL | IBV_ACCESS_MW_BIND, 0},
        {p.a.buf, 64, ALL | IBV_ACCESS_RELAXED_ORDERING, 0},
        {p.a.buf, 64, ALL | IBV_ACCESS_HUGETLB, 0},
        {p.a.buf, 64, ALL | IBV_ACCESS_ZERO_BASED, 0},
        {ro, page, RR, 0},
        {p.a.buf, 64, RW, EINVAL},
        {p.a.buf, 64, RA | RR, EINVAL},
        {p.a.buf, 64, 1u << 8, EINVAL},
        {p.a.buf, 64, LW | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
        {p.a.buf, 0, LW, EINVAL},
        {p.a.buf, SIZE_MAX, LW, EINVAL},
        {ro, page, LW, EFAULT},
        {hole, 3 * page, LW, EFAULT},
        {hole + page, 1, 0, EFAULT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        struct ibv_mr *mr = ibv_reg_mr(p.a.pd, rows[i].addr, rows[i].len, rows[i].access);
        if (!mr != !!rows[i].err || errno != rows[i].err)
            fail_msg("row %zu: errno %d", i, errno);
        if (mr)
            assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    assert_null(ibv_reg_mr_iova(p.a.pd, ro, 4096, UINT64_MAX - 4094, RR));
    assert_int_equal(errno, EINVAL);
    munmap(ro, page);
    munmap(hole, page);
    munmap(hole + 2 * page, page);
    pair_close(&p, 1);
}

static void what_is_not_offered(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_context *ctx = p.a.id->verbs;
    NULL_AND(EOPNOTSUPP, ibv_reg_dmabuf_mr(p.a.pd, 0, 4096, 0, 0, LW));
    NULL_AND(EOPNOTSUPP, ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 64}));
    NULL_AND(EOPNOTSUPP, ibv_import_device(ctx->cmd_fd));
    NULL_AND(EOPNOTSUPP, ibv_import_pd(ctx, p.a.pd->handle));
    NULL_AND(EOPNOTSUPP, ibv_import_mr(p.a.pd, p.a.mr->handle));
    NULL_AND(EOPNOTSUPP, ibv_import_dm(ctx, 1));
    pair_close(&p, 1);
}

/** Tagged offsets: of iova, of zero. The local key has the same ones. */
static void offsets(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    memset(p.b.buf, 7, 8192);
    uint64_t in_page = (uintptr_t)p.b.buf & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    uint64_t iova = 0x123450000000 + in_page;
    struct ibv_mr *mr[] = {
        ibv_reg_mr_iova(p.b.pd, p.b.buf, 4096, iova, ALL),
        ibv_reg_mr_iova2(p.b.pd, p.b.buf, 4096, iova, ALL),
        ibv_reg_mr(p.b.pd, p.b.buf, 4096, ALL | IBV_ACCESS_ZERO_BASED),
    };
    uint64_t base[] = {iova, iova, 0};
    for (int i = 0; i < 3; i++) {
        assert_non_null(mr[i]);
        assert_ptr_equal(mr[i]->addr, p.b.buf);
        memset(p.a.buf, i, 100);
        assert_int_equal(access_by(&p, IBV_WR_RDMA_WRITE, mr[i]->rkey, base[i] + 4000, 96), 0);
        assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, mr[i]->rkey, base[i] + 3999, 97), 0);
        assert_int_equal(p.b.buf[3999], 7);
        assert_int_equal(p.b.buf[4000], i);
        assert_int_equal(p.b.buf[4095], i);
        assert_int_equal(p.b.buf[4096], 7);
        assert_memory_equal(p.a.buf, p.b.buf + 3999, 97);
        assert_int_equal(ibv_dereg_mr(mr[i]), 0);
    }
    pair_close(&p, 1);
}

/* ---- reregistering ---- */

/** Each combination of flags: what is to change does, the rest stays, and the keys do. */
static void rereg_changes_what_is_asked(void **state)
{
    (void)state;
    for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++)
        for (int probe = 0; probe < 2; probe++) {
            struct pair p;
            print_message("  flags %d, probe %d\n", flags, probe);
            pair_open(&p, &(struct pair_conf){0});
            memset(p.b.buf, 1, 64);
            memset(p.b.buf + 128, 2, 64);
            struct ibv_pd *other = ibv_alloc_pd(p.b.id->verbs);
            struct ibv_pd *from = flags & PD ? other : p.b.pd;
            struct ibv_mr *mr = ibv_reg_mr(from, p.b.buf, 64, flags & ACCESS ? LW : LW | RR);
            uint32_t old = mr->rkey;
            assert_int_equal(
                ibv_rereg_mr(mr, flags, p.b.pd, p.b.buf + 128, 64, flags & ACCESS ? LW | RR : 0),
                0);
            assert_ptr_equal(mr->pd, p.b.pd);
            assert_int_equal(mr->lkey, old);
            assert_int_equal(mr->rkey, old);
            uint8_t *now = flags & TRANSLATION ? p.b.buf + 128 : p.b.buf;
            assert_ptr_equal(mr->addr, now);
            assert_int_equal(mr->length, 64);
            assert_int_equal(ibv_dealloc_pd(other), 0); /* nothing is left there */

            assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)now, 64), 0);
            assert_int_equal(p.a.buf[63], flags & TRANSLATION ? 2 : 1);
            uint8_t *elsewhere = flags & TRANSLATION ? p.b.buf : p.b.buf + 128;
            uint8_t *outside = probe ? elsewhere : now + 60;
            assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, old, (uintptr_t)outside, 8),
                             IBV_WC_REM_ACCESS_ERR);
            assert_int_equal(ibv_dereg_mr(mr), 0);
            ends(&p);
        }
}

static void rereg_keeps_the_old_region_on_errors(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    uint8_t *ro = pages(4096, PROT_READ);
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    struct ibv_pd *far = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, ALL);
    struct ibv_mr *reads = ibv_reg_mr(p.b.pd, ro, 64, RR), copy = *mr;
    const struct {
        struct ibv_mr *mr;
        int flags;
        struct ibv_pd *pd;
        void *addr;
        size_t len;
        int access, err;
    } rows[] = {
        {mr, 0, NULL, NULL, 0, 0, EINVAL},
        {mr, 8, NULL, NULL, 0, 0, EINVAL},
        {mr, -1, p.b.pd, p.b.buf, 8, 0, EINVAL},
        {mr, PD, NULL, NULL, 0, 0, EINVAL},
        {mr, PD, far, NULL, 0, 0, EINVAL},
        {mr, PD, p.b.pd, NULL, 0, RR, EINVAL}, /* access without its flag */
        {mr, TRANSLATION, NULL, p.b.buf, 0, 0, EINVAL},
        {mr, TRANSLATION, NULL, NULL, 64, 0, EINVAL},
        {mr, TRANSLATION, NULL, p.b.buf, SIZE_MAX, 0, EINVAL},
        {mr, TRANSLATION, NULL, ro, 64, 0, EFAULT}, /* not writable */
        {mr, ACCESS, NULL, NULL, 0, RW, EINVAL},
        {mr, ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
        {mr, ACCESS | PD, far, NULL, 0, LW, EINVAL},
        {mr, ACCESS | TRANSLATION, NULL, p.b.buf, 64, 1 << 8, EINVAL},
        {reads, ACCESS, NULL, NULL, 0, LW, EFAULT}, /* the old range is not writable */
        {NULL, ACCESS, NULL, NULL, 0, LW, EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        int r = ibv_rereg_mr(rows[i].mr, rows[i].flags, rows[i].pd, rows[i].addr, rows[i].len,
                             rows[i].access);
        if (r != IBV_REREG_MR_ERR_INPUT || errno != rows[i].err)
            fail_msg("row %zu: %d, errno %d", i, r, errno);
        assert_memory_equal(mr, &copy, sizeof(copy));
        assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)p.b.buf, 64), 0);
        assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, reads->rkey, (uintptr_t)ro, 64), 0);
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(reads), 0);
    assert_int_equal(ibv_dealloc_pd(far), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
    munmap(ro, 4096);
    pair_close(&p, 1);
}

static void rereg_revives_what_was_invalidated(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, LW | RR);
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .opcode = IBV_WR_LOCAL_INV,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .invalidate_rkey = mr->rkey};
    assert_int_equal(ibv_post_send(p.b.id->qp, &wr, &bad), 0);
    expect(&p.b, 1, IBV_WC_SUCCESS);
    assert_int_equal(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, LW | RR), 0);
    assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)p.b.buf, 64), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    pair_close(&p, 1);
}

/* ---- traffic ---- */

#define ROUNDS 12

/** After dereg or rereg the memory is the program's alone: it is written to, and then unmapped. */
static void memory_given_back_under_traffic(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct pair p;
        pthread_t thread;
        pair_open(&p, &(struct pair_conf){.depth = 8});
        uint8_t *m = pages(TRAFFIC_BYTES, PROT_READ | PROT_WRITE);
        struct ibv_mr *mr = ibv_reg_mr(p.b.pd, m, TRAFFIC_BYTES, ALL), copy = *mr;
        struct traffic t = {.from = &p.a,
                            .op = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                            .to = {.buf = m, .mr = &copy}};
        assert_int_equal(pthread_create(&thread, NULL, traffic_drive, &t), 0);
        while (atomic_load(&t.done) < 3 * i)
            sched_yield();
        if (i % 4 < 2)
            assert_int_equal(ibv_dereg_mr(mr), 0);
        else
            assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, NULL, p.b.buf, 64, 0), 0);
        memset(m, i, TRAFFIC_BYTES);
        assert_int_equal(munmap(m, TRAFFIC_BYTES), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (i % 4 >= 2)
            assert_int_equal(ibv_dereg_mr(mr), 0);
        ends(&p);
    }
}

/* ---- the null region ---- */

static void the_null_region(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *null = ibv_alloc_null_mr(p.a.pd), *sink = ibv_alloc_null_mr(p.b.pd);
    assert_non_null(null);
    assert_non_null(sink);
    assert_true(null->length == SIZE_MAX);
    assert_int_equal(ibv_rereg_mr(null, ACCESS, NULL, NULL, 0, LW), IBV_REREG_MR_ERR_INPUT);
    memset(p.a.buf, 1, 4096);
    memset(p.b.buf, 2, 300000);

    /* Zeros between data; of those received, some are thrown away. */
    struct ibv_sge from[] = {{(uintptr_t)p.a.buf, 10, p.a.mr->lkey},
                             {0, 200000, null->lkey},
                             {(uintptr_t)p.a.buf, 10, p.a.mr->lkey}};
    struct ibv_sge into[] = {{(uintptr_t)p.b.buf, 20, p.b.mr->lkey},
                             {UINT64_MAX - 300000, 100000, sink->lkey},
                             {(uintptr_t)p.b.buf + 20, 100000, p.b.mr->lkey}};
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = 5, .sg_list = into, .num_sge = 3};
    struct ibv_send_wr *bad, send = {.wr_id = 1,
                                     .sg_list = from,
                                     .num_sge = 3,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
    assert_int_equal(ibv_post_recv(p.b.id->qp, &recv, &bad_recv), 0);
    assert_int_equal(ibv_post_send(p.a.id->qp, &send, &bad), 0);
    expect(&p.a, 1, IBV_WC_SUCCESS);
    expect(&p.b, 5, IBV_WC_SUCCESS);
    for (int i = 0; i < 100020; i++)
        assert_int_equal(p.b.buf[i], i < 10 || (i >= 100010 && i < 100020) ? 1 : 0);
    assert_int_equal(p.b.buf[100020], 2);

    /* A read and an atomic for nothing. */
    struct ibv_sge nowhere = {123, 4096, null->lkey};
    struct ibv_send_wr read = {.wr_id = 2,
                               .sg_list = &nowhere,
                               .num_sge = 1,
                               .opcode = IBV_WR_RDMA_READ,
                               .send_flags = IBV_SEND_SIGNALED,
                               .wr.rdma = {(uintptr_t)p.b.buf, p.b.mr->rkey}};
    assert_int_equal(ibv_post_send(p.a.id->qp, &read, &bad), 0);
    expect(&p.a, 2, IBV_WC_SUCCESS);
    assert_int_equal(p.a.buf[123], 1);

    /* No remote access. */
    assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, sink->rkey, 0, 8), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(null), 0);
    assert_int_equal(ibv_dereg_mr(sink), 0);
    ends(&p);
}

/* ---- domains ---- */

static void thread_and_parent_domains(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_context *ctx = p.a.id->verbs;
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){0});
    assert_non_null(td);
    assert_null(ibv_alloc_td(ctx, &(struct ibv_td_init_attr){.comp_mask = 1}));
    assert_int_equal(errno, EINVAL);

    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
    assert_non_null(parent);
    const struct {
        struct ibv_parent_domain_init_attr attr;
        int err;
    } rows[] = {
        {{.td = td}, EINVAL},
        {{.pd = parent}, EINVAL},
        {{.pd = pd, .comp_mask = 8}, EINVAL},
        {{.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS}, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_parent_domain_init_attr a = rows[i].attr;
        assert_null(ibv_alloc_parent_domain(ctx, &a));
        assert_int_equal(errno, rows[i].err);
    }
    attr = (struct ibv_parent_domain_init_attr){
        .pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, .pd_context = &p};
    struct ibv_pd *second = ibv_alloc_parent_domain(ctx, &attr);
    assert_non_null(second);
    assert_int_equal(ibv_dealloc_pd(second), 0);

    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    struct ibv_mr *mr = ibv_reg_mr(parent, p.a.buf, 64, LW);
    assert_ptr_equal(mr->pd, parent);
    assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, PD, pd, NULL, 0, 0), 0); /* to the domain itself */
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    pair_close(&p, 1);
}

/** Everything of a connection is made on a parent domain; what the plain one has is the same. */
static void a_connection_on_parent_domains(void **state)
{
    struct pair p;
    (void)state;
    for (unsigned srq = 0; srq < 2; srq++) {
        pair_open(&p, &(struct pair_conf){.parent = true, .ex = true, .srq_wr = 8 * srq});
        assert_int_equal(ibv_dealloc_pd(p.b.pd), EBUSY);
        assert_int_equal(ibv_dealloc_pd(p.b.under), EBUSY);
        struct ibv_mr *plain = ibv_reg_mr(p.b.under, p.b.buf, 64, ALL);
        memset(p.b.buf, 3, 64);
        assert_int_equal(access_by(&p, IBV_WR_RDMA_READ, plain->rkey, (uintptr_t)p.b.buf, 64), 0);
        assert_int_equal(p.a.buf[63], 3);
        side_recv(&p.b, 1, 100, 8);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 2, 0, 8, 0, 0), 0);
        expect(&p.a, 2, IBV_WC_SUCCESS);
        expect(&p.b, 1, IBV_WC_SUCCESS);
        assert_int_equal(p.b.buf[107], 3);
        assert_int_equal(ibv_dereg_mr(plain), 0);
        pair_close(&p, 1);
    }
}

/* ---- advice ---- */

static void advice(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    enum { PAGES = 64 };
    const size_t page = (size_t)getpagesize(), len = PAGES * page;
    uint8_t *m = pages(len, PROT_READ | PROT_WRITE);
    /* Said of what is not there, it is said of anything, and nothing is done. */
    const bool populates = madvise(NULL, page, MADV_POPULATE_WRITE) && errno == ENOMEM;
    if (!populates)
        print_message("madvise() populates nothing here: not looked whether pages are present\n");
    struct ibv_mr *mr = ibv_reg_mr(p.a.pd, m, len, LW), *ro = ibv_reg_mr(p.a.pd, m, len, 0);
    struct ibv_mr *null = ibv_alloc_null_mr(p.a.pd);
    struct ibv_mw *mw = ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_2);
    const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
                                    write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                    present = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
    const uint64_t at = (uintptr_t)m;
    const struct {
        enum ibv_advise_mr_advice advice;
        uint32_t flags, lkey;
        uint64_t addr;
        uint32_t len;
        int err;
    } rows[] = {
        {read, 0, mr->lkey, at, (uint32_t)len, 0},
        {read, 0, ro->lkey, at + 1, 1, 0},
        {read, IBV_ADVISE_MR_FLAG_FLUSH, mr->lkey, at + page + 904, (uint32_t)page, 0},
        {present, 0, mr->lkey, at, (uint32_t)page, 0},
        {write, 0, null->lkey, 0, (uint32_t)page, 0},
        {read, 0, mr->lkey, at, 0, 0},
        {write, 0, ro->lkey, at, 1, EPERM},
        {read, 0, p.b.mr->lkey, (uintptr_t)p.b.buf, 1, EPERM},
        {read, 0, mr->lkey ^ 1, at, 1, EFAULT},
        {read, 0, mr->lkey, at, (uint32_t)len + 1, EFAULT},
        {read, 0, mr->lkey, at - 1, 1, EFAULT},
        {read, 0, mr->lkey, UINT64_MAX, 2, EFAULT},
        {read, 0, mw->rkey, at, 1, EINVAL},
        {read, 2, mr->lkey, at, 1, EINVAL},
        {(enum ibv_advise_mr_advice)9, 0, mr->lkey, at, 1, ENOTSUP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_sge sge[] = {{at, 1, mr->lkey}, {rows[i].addr, rows[i].len, rows[i].lkey}};
        int r = ibv_advise_mr(p.a.pd, rows[i].advice, rows[i].flags, sge, 2);
        if (r != rows[i].err)
            fail_msg("row %zu: %d", i, r);
    }
    assert_int_equal(ibv_advise_mr(p.a.pd, read, 0, NULL, 1), EINVAL);
    assert_int_equal(ibv_advise_mr(p.a.pd, read, 0, &(struct ibv_sge){0}, 0), EINVAL);

    unsigned char in[PAGES];
    assert_int_equal(madvise(m, len, MADV_DONTNEED), 0);
    struct ibv_sge all = {at, (uint32_t)len, mr->lkey};
    assert_int_equal(ibv_advise_mr(p.a.pd, write, IBV_ADVISE_MR_FLAG_FLUSH, &all, 1), 0);
    assert_int_equal(mincore(m, len, in), 0);
    for (int i = 0; i < PAGES && populates; i++)
        assert_true(in[i] & 1);
    assert_int_equal(munmap(m + page, page), 0);
    assert_int_equal(ibv_advise_mr(p.a.pd, read, 0, &all, 1), EFAULT);

    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(null), 0);
    assert_int_equal(ibv_dereg_mr(ro), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(m, page);
    munmap(m + 2 * page, len - 2 * page);
    pair_close(&p, 1);
}

/** Kilobytes that count against RLIMIT_MEMLOCK, or would at an adapter. */
static unsigned long pinned_kb(void)
{
    unsigned long sum = 0, kb;
    unsigned fields = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "VmLck: %lu", &kb) == 1 || sscanf(line, "VmPin: %lu", &kb) == 1) {
            sum += kb;
            fields++;
        }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(fields, 2);
    return sum;
}

static void nothing_is_pinned(void **state)
{
    const size_t len = 16 << 20;
    struct rlimit limit;
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    unsigned long before = pinned_kb();
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, limit.rlim_max}), 0);
    void *m = pages(len, PROT_READ | PROT_WRITE);
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, m, len, LW | RW);
    assert_non_null(mr);
    assert_int_equal(access_by(&p, IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)m, 64), IBV_WC_SUCCESS);
    assert_int_equal(pinned_kb(), before);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    munmap(m, len);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_registered),
        cmocka_unit_test(nothing_is_pinned),
        cmocka_unit_test(what_is_not_offered),
        cmocka_unit_test(offsets),
        cmocka_unit_test(rereg_changes_what_is_asked),
        cmocka_unit_test(rereg_keeps_the_old_region_on_errors),
        cmocka_unit_test(rereg_revives_what_was_invalidated),
        cmocka_unit_test(memory_given_back_under_traffic),
        cmocka_unit_test(the_null_region),
        cmocka_unit_test(thread_and_parent_domains),
        cmocka_unit_test(a_connection_on_parent_domains),
        cmocka_unit_test(advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of both types: what a bind gives, what takes it away, what is refused and how, and
 * in which order. Side b owns memory and windows, side a is the peer that uses their keys.
 */
#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define LW  IBV_ACCESS_LOCAL_WRITE
#define RW  IBV_ACCESS_REMOTE_WRITE
#define RR  IBV_ACCESS_REMOTE_READ
#define RA  IBV_ACCESS_REMOTE_ATOMIC
#define MW  IBV_ACCESS_MW_BIND
#define ALL (LW | RW | RR | RA)
#define ZB  IBV_ACCESS_ZERO_BASED

#define AT     4096 /* where windows are in the memory of side b */
#define LENGTH 256

static void expect_op(struct side *s, uint64_t wr_id, enum ibv_wc_status status,
                      enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
    if (status == IBV_WC_SUCCESS)
        assert_int_equal(wc.opcode, opcode);
}

static void ends(struct pair *p)
{
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    pair_close(p, 0);
}

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

static enum ibv_wc_status read_by(struct pair *p, uint32_t rkey, uint64_t to, uint32_t len)
{
    return access_by(p, IBV_WR_RDMA_READ, rkey, to, len);
}

static uint64_t at(const struct pair *p, long offset)
{
    return (uintptr_t)p->b.buf + (uint64_t)(AT + offset);
}

static struct ibv_mw_bind_info part(const struct pair *p, struct ibv_mr *mr, unsigned access)
{
    return (struct ibv_mw_bind_info){
        .mr = mr, .addr = at(p, 0), .length = LENGTH, .mw_access_flags = access};
}

/** Side b binds a window of either type; the window's rkey is right afterwards. @return of the post
 */
static int post_bind(struct side *s, struct ibv_mw *mw, uint64_t wr_id,
                     struct ibv_mw_bind_info info, unsigned flags)
{
    if (mw->type == IBV_MW_TYPE_1) {
        struct ibv_mw_bind bind = {
            .wr_id = wr_id, .send_flags = IBV_SEND_SIGNALED | flags, .bind_info = info};
        return ibv_bind_mw(s->id->qp, mw, &bind);
    }
    struct ibv_send_wr *bad,
        wr = {.wr_id = wr_id,
              .opcode = IBV_WR_BIND_MW,
              .send_flags = IBV_SEND_SIGNALED | flags,
              .bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = info}};
    int r = ibv_post_send(s->id->qp, &wr, &bad);
    if (!r)
        mw->rkey = wr.bind_mw.rkey;
    return r;
}

static void bind_to(struct side *s, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
    assert_int_equal(post_bind(s, mw, 500, info, 0), 0);
    expect_op(s, 500, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
}

static int post_invalidate(struct side *s, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t key)
{
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = wr_id, .opcode = op, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key};
    return ibv_post_send(s->id->qp, &wr, &bad);
}

/** A pair, with memory of side b that windows can be bound to, and one window. */
struct scene {
    struct pair p;
    struct ibv_mr *mr;
    struct ibv_mw *mw;
};

static void scene_open(struct scene *s, enum ibv_mw_type type, unsigned mr_access, bool ex)
{
    pair_open(&s->p, &(struct pair_conf){.ex = ex});
    for (int i = 0; i < SIDE_BYTES; i++)
        s->p.b.buf[i] = (uint8_t)(i % 251);
    s->mr = ibv_reg_mr(s->p.b.pd, s->p.b.buf, SIDE_BYTES, mr_access);
    s->mw = ibv_alloc_mw(s->p.b.pd, type);
    assert_non_null(s->mr);
    assert_non_null(s->mw);
    assert_int_equal(s->mw->type, type);
    assert_ptr_equal(s->mw->pd, s->p.b.pd);
}

static void scene_close(struct scene *s, bool connected)
{
    assert_int_equal(ibv_dealloc_mw(s->mw), 0);
    assert_int_equal(ibv_dereg_mr(s->mr), 0);
    if (connected)
        pair_close(&s->p, 1);
    else
        ends(&s->p);
}

static void the_device_says_so(void **state)
{
    struct pair p;
    struct ibv_device_attr attr;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    assert_int_equal(ibv_query_device(p.a.id->verbs, &attr), 0);
    assert_true(attr.max_mw > 0);
    assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    errno = 0;
    assert_null(ibv_alloc_mw(p.a.pd, (enum ibv_mw_type)3));
    assert_int_equal(errno, EINVAL);
    pair_close(&p, 1);
}

/* ---- what a bind gives ---- */

static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

/** Inside all is well, up to the first and the last byte; the memory needs no remote right. */
static void a_window_gives_its_part(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++)
        for (unsigned zero = 0; zero < 2; zero++) {
            struct scene s;
            scene_open(&s, types[t], LW | MW, false);
            uint32_t unbound = s.mw->rkey;
            bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RW | RR | RA | (zero ? ZB : 0)));
            assert_int_equal(s.mw->rkey, ibv_inc_rkey(unbound));
            uint64_t base = zero ? 0 : at(&s.p, 0);
            assert_int_equal(read_by(&s.p, s.mw->rkey, base, LENGTH), IBV_WC_SUCCESS);
            assert_memory_equal(s.p.a.buf, s.p.b.buf + AT, LENGTH);
            memset(s.p.a.buf, 0xee, 8);
            assert_int_equal(access_by(&s.p, IBV_WR_RDMA_WRITE, s.mw->rkey, base + LENGTH - 8, 8),
                             IBV_WC_SUCCESS);
            assert_int_equal(read_by(&s.p, s.mw->rkey, base + LENGTH - 8, 8), IBV_WC_SUCCESS);
            assert_int_equal(s.p.b.buf[AT + LENGTH - 8], 0xee);
            assert_int_equal(s.p.b.buf[AT + LENGTH - 1], 0xee);
            assert_int_equal(s.p.b.buf[AT + LENGTH], (AT + LENGTH) % 251);
            scene_close(&s, true);
        }
}

/** Each access ends its connection. */
static void a_window_gives_no_more(void **state)
{
    const struct {
        const char *name;
        unsigned mr, mw;
        enum ibv_wr_opcode op;
        long offset;
        uint32_t len;
        uint32_t flip; /* of the key */
    } rows[] = {
        {"below", LW | MW, RR, IBV_WR_RDMA_READ, -1, 8, 0},
        {"above", LW | MW, RR, IBV_WR_RDMA_READ, LENGTH, 1, 0},
        {"too long", LW | MW, RR, IBV_WR_RDMA_READ, 0, LENGTH + 1, 0},
        {"address in a zero-based one", LW | MW, RR | ZB, IBV_WR_RDMA_READ, 0, 1, 0},
        {"no right to read", ALL | MW, RW, IBV_WR_RDMA_READ, 0, 8, 0},
        {"no right at all", ALL | MW, 0, IBV_WR_RDMA_READ, 0, 8, 0},
        {"another key of the index", LW | MW, RR, IBV_WR_RDMA_READ, 0, 8, 0xff},
        {"no atomics", ALL | MW, RR | RW, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0},
    };
    (void)state;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct scene s;
            print_message("  type %d, %s\n", types[t], rows[i].name);
            scene_open(&s, types[t], rows[i].mr, false);
            bind_to(&s.p.b, s.mw, part(&s.p, s.mr, rows[i].mw));
            assert_int_equal(access_by(&s.p, rows[i].op, s.mw->rkey ^ rows[i].flip,
                                       at(&s.p, rows[i].offset), rows[i].len),
                             IBV_WC_REM_ACCESS_ERR);
            for (int k = AT - 8; k < AT + LENGTH + 8; k++)
                assert_int_equal(s.p.b.buf[k], k % 251);
            scene_close(&s, false);
        }
}

/** A Write without the right places nothing; the STag of a window is nobody's lkey. */
static void a_window_is_for_the_peer_and_its_rights(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, IBV_MW_TYPE_1, ALL | MW, false);
    bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
    assert_int_equal(access_by(&s.p, IBV_WR_RDMA_WRITE, s.mw->rkey, at(&s.p, 0), 8), 0);
    side_event(&s.p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&s.p.b, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(s.p.b.buf[AT], AT % 251);
    assert_int_equal(ibv_dealloc_mw(s.mw), 0);
    assert_int_equal(ibv_dereg_mr(s.mr), 0);
    pair_close(&s.p, 0);

    scene_open(&s, IBV_MW_TYPE_1, ALL | MW, false);
    bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR | RW));
    struct ibv_mr mr = {.lkey = s.mw->rkey, .rkey = s.p.a.mr->rkey};
    struct side wrong = s.p.b;
    wrong.mr = &mr;
    assert_int_equal(side_post(&wrong, &s.p.a, IBV_WR_RDMA_WRITE, 1, AT, 8, 0, 0), 0);
    expect_op(&s.p.b, 1, IBV_WC_LOC_PROT_ERR, 0);
    scene_close(&s, false);
}

static void a_window_through_the_extended_view(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, IBV_MW_TYPE_2, LW | MW, true);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(s.p.b.id->qp);
    struct ibv_mw_bind_info info = part(&s.p, s.mr, RR);
    uint32_t key = ibv_inc_rkey(s.mw->rkey);
    ibv_wr_start(q);
    q->wr_id = 1;
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(q, s.mw, key, &info);
    assert_int_equal(ibv_wr_complete(q), 0);
    expect_op(&s.p.b, 1, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
    assert_int_equal(read_by(&s.p, key, at(&s.p, 0), LENGTH), IBV_WC_SUCCESS);
    ibv_wr_start(q);
    q->wr_id = 2;
    ibv_wr_local_inv(q, key);
    assert_int_equal(ibv_wr_complete(q), 0);
    expect_op(&s.p.b, 2, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
    assert_int_equal(read_by(&s.p, key, at(&s.p, 0), 1), IBV_WC_REM_ACCESS_ERR);
    scene_close(&s, false);
}

/* ---- what takes it away ---- */

enum taking { REBIND, ZERO_LENGTH, DEALLOC, LOCAL_INV, SEND_INV };

static const struct {
    const char *name;
    enum ibv_mw_type type;
    enum taking by;
} takings[] = {
    {"bound again", IBV_MW_TYPE_1, REBIND},
    {"bound with length zero", IBV_MW_TYPE_1, ZERO_LENGTH},
    {"deallocated", IBV_MW_TYPE_1, DEALLOC},
    {"deallocated", IBV_MW_TYPE_2, DEALLOC},
    {"invalidated", IBV_MW_TYPE_2, LOCAL_INV},
    {"invalidated by the peer", IBV_MW_TYPE_2, SEND_INV},
};

static void take(struct scene *s, enum taking by)
{
    struct ibv_mw_bind_info info = part(&s->p, s->mr, RR);
    switch (by) {
    case REBIND:
        bind_to(&s->p.b, s->mw, info);
        break;
    case ZERO_LENGTH:
        bind_to(&s->p.b, s->mw, (struct ibv_mw_bind_info){0});
        break;
    case LOCAL_INV:
        assert_int_equal(post_invalidate(&s->p.b, IBV_WR_LOCAL_INV, 9, s->mw->rkey), 0);
        expect_op(&s->p.b, 9, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
        break;
    case SEND_INV:
        side_recv(&s->p.b, 8, 0, 8);
        assert_int_equal(post_invalidate(&s->p.a, IBV_WR_SEND_WITH_INV, 9, s->mw->rkey), 0);
        expect_op(&s->p.a, 9, IBV_WC_SUCCESS, IBV_WC_SEND);
        struct ibv_wc wc = side_poll(&s->p.b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_true(wc.wc_flags & IBV_WC_WITH_INV);
        assert_int_equal(wc.invalidated_rkey, s->mw->rkey);
        break;
    default:
        assert_int_equal(ibv_dealloc_mw(s->mw), 0);
        s->mw = ibv_alloc_mw(s->p.b.pd, IBV_MW_TYPE_1);
        assert_non_null(s->mw);
    }
}

static void what_was_taken_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(takings) / sizeof(takings[0]); i++) {
        struct scene s;
        print_message("  type %d, %s\n", takings[i].type, takings[i].name);
        scene_open(&s, takings[i].type, LW | MW, false);
        bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
        uint32_t old = s.mw->rkey;
        assert_int_equal(read_by(&s.p, old, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        assert_int_equal(ibv_dereg_mr(s.mr), EBUSY);
        assert_int_equal(ibv_rereg_mr(s.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW),
                         IBV_REREG_MR_ERR_INPUT);
        assert_int_equal(errno, EBUSY);
        assert_int_equal(read_by(&s.p, old, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        take(&s, takings[i].by);
        if (takings[i].by != REBIND) /* nothing pins the memory any more */
            assert_int_equal(ibv_rereg_mr(s.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW), 0);
        assert_int_equal(read_by(&s.p, old, at(&s.p, 0), 8), IBV_WC_REM_ACCESS_ERR);
        scene_close(&s, false);
    }
}

/** A window is used again and again: 600 binds go twice around the keys. */
static void a_window_is_bound_many_times(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct scene s;
        scene_open(&s, types[t], LW | MW, false);
        for (long i = 0; i < 600; i++) {
            struct ibv_mw_bind_info info = part(&s.p, s.mr, RR);
            info.addr += (uint64_t)i * 8;
            info.length = 8;
            bind_to(&s.p.b, s.mw, info);
            if (i % 50 == 0) {
                assert_int_equal(read_by(&s.p, s.mw->rkey, at(&s.p, i * 8), 8), IBV_WC_SUCCESS);
                assert_memory_equal(s.p.a.buf, s.p.b.buf + AT + i * 8, 8);
            }
            if (types[t] == IBV_MW_TYPE_2)
                take(&s, LOCAL_INV);
        }
        scene_close(&s, true);
    }
}

/* ---- type 2 is its QP's ---- */

static void only_its_qp_uses_a_type_2_window(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct scene s;
        struct pair second;
        scene_open(&s, types[t], LW | MW, false);
        pair_open(&second, &(struct pair_conf){.with = &s.p.b});
        bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
        assert_int_equal(read_by(&s.p, s.mw->rkey, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        enum ibv_wc_status status = read_by(&second, s.mw->rkey, at(&s.p, 0), 8);
        assert_int_equal(status, t ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
        if (t)
            ends(&second);
        else
            pair_close(&second, 1);
        assert_int_equal(read_by(&s.p, s.mw->rkey, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        scene_close(&s, true);
    }
}

static void another_qp_cannot_invalidate_it(void **state)
{
    struct scene s;
    struct pair second;
    (void)state;
    scene_open(&s, IBV_MW_TYPE_2, LW | MW, false);
    pair_open(&second, &(struct pair_conf){.with = &s.p.b});
    bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
    assert_int_equal(post_invalidate(&second.b, IBV_WR_LOCAL_INV, 1, s.mw->rkey), 0);
    expect_op(&second.b, 1, IBV_WC_LOC_QP_OP_ERR, 0);
    ends(&second);
    pair_open(&second, &(struct pair_conf){.with = &s.p.b});
    side_recv(&second.b, 2, 0, 8);
    assert_int_equal(post_invalidate(&second.a, IBV_WR_SEND_WITH_INV, 1, s.mw->rkey), 0);
    expect_op(&second.a, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    expect_op(&second.b, 2, IBV_WC_REM_INV_REQ_ERR, 0);
    ends(&second);
    assert_int_equal(read_by(&s.p, s.mw->rkey, at(&s.p, 0), 8), IBV_WC_SUCCESS);
    scene_close(&s, true);
}

/**
 * Memory that is registered for all peers of a domain is no one peer's to take away: whoever tries
 * that ends its own connection, and the others and the program itself do not notice.
 */
static void a_peer_takes_no_memory_from_the_others(void **state)
{
    (void)state;
    for (unsigned bind = 0; bind < 2; bind++) {
        struct scene s;
        struct pair second;
        scene_open(&s, IBV_MW_TYPE_2, ALL | (bind ? MW : 0), false);
        pair_open(&second, &(struct pair_conf){.with = &s.p.b});
        side_recv(&second.b, 2, 0, 8);
        assert_int_equal(read_by(&s.p, s.mr->rkey, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        assert_int_equal(post_invalidate(&second.a, IBV_WR_SEND_WITH_INV, 1, s.mr->rkey), 0);
        expect_op(&second.a, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
        expect_op(&second.b, 2, IBV_WC_REM_INV_REQ_ERR, 0);
        ends(&second);
        assert_int_equal(read_by(&s.p, s.mr->rkey, at(&s.p, 0), 8), IBV_WC_SUCCESS);
        assert_memory_equal(s.p.a.buf, s.p.b.buf + AT, 8);
        struct side own = s.p.b;
        own.mr = s.mr;
        side_recv(&s.p.a, 3, 0, 8);
        assert_int_equal(side_post(&own, &s.p.a, IBV_WR_SEND, 4, AT, 8, 0, 0), 0);
        expect_op(&s.p.b, 4, IBV_WC_SUCCESS, IBV_WC_SEND);
        expect_op(&s.p.a, 3, IBV_WC_SUCCESS, IBV_WC_RECV);
        scene_close(&s, true);
    }
}

static void a_type_2_window_ends_with_its_qp(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, IBV_MW_TYPE_2, LW | MW, false);
    bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
    assert_int_equal(ibv_dereg_mr(s.mr), EBUSY);
    rdma_destroy_qp(s.p.b.id);
    assert_int_equal(ibv_dereg_mr(s.mr), 0);
    assert_int_equal(ibv_dealloc_pd(s.p.b.pd), EBUSY);
    assert_int_equal(ibv_dealloc_mw(s.mw), 0);
    ends(&s.p);
}

/* ---- errors ---- */

static void binds_that_are_not_posted(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct scene s;
        scene_open(&s, types[t], ALL | MW, false);
        struct ibv_pd *other = ibv_alloc_pd(s.p.b.id->verbs);
        struct ibv_mr *far = ibv_reg_mr(other, s.p.b.buf, SIDE_BYTES, ALL | MW);
        uint32_t key = s.mw->rkey;
        struct ibv_mw_bind_info good = part(&s.p, s.mr, RR), info = good;
        info.mw_access_flags = MW;
        assert_int_equal(post_bind(&s.p.b, s.mw, 1, info, 0), EINVAL);
        assert_int_equal(post_bind(&s.p.b, s.mw, 1, good, IBV_SEND_INLINE), EINVAL);
        assert_int_equal(post_bind(&s.p.b, s.mw, 1, good, 1 << 20), EINVAL);
        info = good;
        info.mr = NULL;
        assert_int_equal(post_bind(&s.p.b, s.mw, 1, info, 0), EINVAL);
        info.mr = far;
        assert_int_equal(post_bind(&s.p.b, s.mw, 1, info, 0), EPERM);
        /* A QP of another domain. */
        assert_int_equal(post_bind(&s.p.a, s.mw, 1, good, 0), EPERM);
        struct ibv_send_wr *bad,
            wr = {.opcode = IBV_WR_BIND_MW,
                  .bind_mw = {.mw = s.mw, .rkey = s.mw->rkey + 0x100, .bind_info = good}};
        assert_int_equal(ibv_post_send(s.p.b.id->qp, &wr, &bad), EINVAL);
        wr.bind_mw.rkey = ibv_inc_rkey(s.mw->rkey);
        if (types[t] == IBV_MW_TYPE_1) {
            assert_int_equal(ibv_post_send(s.p.b.id->qp, &wr, &bad), EINVAL);
            assert_ptr_equal(bad, &wr);
        } else {
            wr.bind_mw.bind_info.length = 0;
            assert_int_equal(ibv_post_send(s.p.b.id->qp, &wr, &bad), EINVAL);
            struct ibv_mw_bind one = {.bind_info = good};
            assert_int_equal(ibv_bind_mw(s.p.b.id->qp, s.mw, &one), EINVAL);
        }
        assert_int_equal(s.mw->rkey, key);
        bind_to(&s.p.b, s.mw, good); /* the QP is as it was */
        assert_int_equal(ibv_dereg_mr(far), 0);
        assert_int_equal(ibv_dealloc_pd(other), 0);
        scene_close(&s, true);
    }
}

enum spoiler { NO_BIND, READ_ONLY, OUTSIDE, WRAPS, GONE, WINDOW_GONE, NULL_MR, TWICE };

static const struct {
    const char *name;
    enum spoiler spoiler;
} failures[] = {
    {"memory without MW_BIND", NO_BIND}, {"memory without local write", READ_ONLY},
    {"outside the memory", OUTSIDE},     {"wraps", WRAPS},
    {"memory deregistered", GONE},       {"window deallocated", WINDOW_GONE},
    {"the null region", NULL_MR},        {"type 2 bound twice", TWICE},
};

/** They are accepted, complete with MW_BIND_ERR when their turn comes, and end the QP. */
static void binds_that_fail(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
            enum spoiler f = failures[i].spoiler;
            struct scene s;
            if (f == TWICE && types[t] == IBV_MW_TYPE_1)
                continue;
            print_message("  type %d, %s\n", types[t], failures[i].name);
            scene_open(&s, types[t],
                       f == NO_BIND     ? ALL
                       : f == READ_ONLY ? RR | MW
                                        : ALL | MW,
                       false);
            struct ibv_mr copy = *s.mr, *null = ibv_alloc_null_mr(s.p.b.pd);
            struct ibv_mw stale = *s.mw;
            struct ibv_mw_bind_info info = part(&s.p, s.mr, RW);
            if (f == OUTSIDE)
                info.addr += SIDE_BYTES - AT - LENGTH + 1;
            if (f == WRAPS)
                info.length = UINT64_MAX - info.addr + 2;
            if (f == TWICE)
                bind_to(&s.p.b, s.mw, info);
            if (f == GONE) {
                assert_int_equal(ibv_dereg_mr(s.mr), 0);
                s.mr = ibv_reg_mr(s.p.b.pd, s.p.b.buf, 64, LW);
                info.mr = &copy;
            }
            if (f == NULL_MR)
                info.mr = null;
            if (f == WINDOW_GONE) {
                assert_int_equal(ibv_dealloc_mw(s.mw), 0);
                s.mw = ibv_alloc_mw(s.p.b.pd, types[t]);
            }
            struct ibv_mw *mw = f == WINDOW_GONE ? &stale : s.mw;
            assert_int_equal(side_post(&s.p.b, &s.p.a, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0), 0);
            assert_int_equal(post_bind(&s.p.b, mw, 2, info, 0), 0);
            int r = side_post(&s.p.b, &s.p.a, IBV_WR_SEND, 3, 0, 8, 0, 0);
            assert_int_equal(r, 0);
            struct ibv_wc wc = side_poll(&s.p.b); /* answered, or cut off */
            assert_int_equal(wc.wr_id, 1);
            expect_op(&s.p.b, 2, IBV_WC_MW_BIND_ERR, 0);
            expect_op(&s.p.b, 3, IBV_WC_WR_FLUSH_ERR, 0);
            assert_int_equal(s.p.b.id->qp->state, IBV_QPS_ERR);
            assert_int_equal(ibv_dereg_mr(null), 0);
            scene_close(&s, false);
        }
}

static void invalidates_that_fail(void **state)
{
    const struct {
        const char *name;
        enum ibv_mw_type type;
        bool bound, memory;
    } rows[] = {
        {"type 1", IBV_MW_TYPE_1, true, false},
        {"not bound", IBV_MW_TYPE_2, false, false},
        {"memory under a window", IBV_MW_TYPE_2, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int remote = 0; remote < 2; remote++) {
            struct scene s;
            print_message("  %s, %s\n", rows[i].name, remote ? "by the peer" : "local");
            scene_open(&s, rows[i].type, ALL | MW, false);
            if (rows[i].bound)
                bind_to(&s.p.b, s.mw, part(&s.p, s.mr, RR));
            uint32_t key = rows[i].memory ? s.mr->rkey : s.mw->rkey;
            if (remote) {
                side_recv(&s.p.b, 1, 0, 8);
                assert_int_equal(post_invalidate(&s.p.a, IBV_WR_SEND_WITH_INV, 1, key), 0);
                expect_op(&s.p.a, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
                expect_op(&s.p.b, 1, IBV_WC_REM_INV_REQ_ERR, 0);
            } else {
                assert_int_equal(post_invalidate(&s.p.b, IBV_WR_LOCAL_INV, 1, key), 0);
                expect_op(&s.p.b, 1, IBV_WC_LOC_QP_OP_ERR, 0);
            }
            scene_close(&s, false);
        }
}

/* ---- order ---- */

/** A Send posted behind the bind may carry the key; a fenced bind waits for the read before it. */
static void binds_keep_their_place(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct scene s;
        scene_open(&s, types[t], LW | MW, false);
        for (unsigned i = 0; i < 50; i++) {
            side_recv(&s.p.a, 100 + i, 0, 4);
            assert_int_equal(side_post(&s.p.b, &s.p.a, IBV_WR_RDMA_READ, 1, 0, 4000, 8192, 0), 0);
            assert_int_equal(
                post_bind(&s.p.b, s.mw, 2, part(&s.p, s.mr, RR), i % 2 ? IBV_SEND_FENCE : 0), 0);
            memcpy(s.p.b.buf + 16384, &s.mw->rkey, 4);
            assert_int_equal(side_post(&s.p.b, &s.p.a, IBV_WR_SEND, 3, 16384, 4, 0, 0), 0);
            expect_op(&s.p.a, 100 + i, IBV_WC_SUCCESS, IBV_WC_RECV);
            uint32_t key;
            memcpy(&key, s.p.a.buf, 4);
            assert_int_equal(read_by(&s.p, key, at(&s.p, 0), LENGTH), IBV_WC_SUCCESS);
            expect_op(&s.p.b, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
            expect_op(&s.p.b, 2, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
            expect_op(&s.p.b, 3, IBV_WC_SUCCESS, IBV_WC_SEND);
            if (types[t] == IBV_MW_TYPE_2)
                take(&s, LOCAL_INV);
        }
        scene_close(&s, true);
    }
}

/** An invalidate takes nothing from the Send before it, even if TCP has not taken that yet. */
static void a_local_invalidate_waits_for_what_is_before_it(void **state)
{
    enum { SENDS = 400, SIZE = 32768 };
    static struct ibv_mr *mr[SENDS];
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 2 * SENDS, .recv_wr = SENDS});
    struct side other = p.a;
    for (unsigned i = 0; i < SENDS; i++) { /* more than TCP takes: nobody receives yet */
        other.mr = mr[i] = ibv_reg_mr(p.a.pd, p.a.buf, SIDE_BYTES, 0); /* no remote right */
        assert_int_equal(side_post(&other, &p.b, IBV_WR_SEND, i, 0, SIZE, 0, 0), 0);
        assert_int_equal(post_invalidate(&p.a, IBV_WR_LOCAL_INV, SENDS + i, mr[i]->lkey), 0);
    }
    for (unsigned i = 0; i < SENDS; i++)
        side_recv(&p.b, i, 0, SIZE);
    for (unsigned i = 0; i < SENDS; i++) {
        expect_op(&p.a, i, IBV_WC_SUCCESS, IBV_WC_SEND);
        expect_op(&p.a, SENDS + i, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
        expect_op(&p.b, i, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    assert_int_equal(side_post(&other, &p.b, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
    expect_op(&p.a, 1, IBV_WC_LOC_PROT_ERR, 0);
    for (unsigned i = 0; i < SENDS; i++)
        assert_int_equal(ibv_dereg_mr(mr[i]), 0);
    ends(&p);
}

/* ---- traffic ---- */

#define ROUNDS 12

/** Unbinding and then deregistering gives the memory back, whatever the peer is doing to it. */
static void memory_given_back_under_traffic(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct scene s;
        pthread_t thread;
        scene_open(&s, types[i / 2 % 2], LW | MW, false);
        uint8_t *m =
            mmap(NULL, TRAFFIC_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(m != MAP_FAILED);
        struct ibv_mr *mr = ibv_reg_mr(s.p.b.pd, m, TRAFFIC_BYTES, LW | MW);
        bind_to(&s.p.b, s.mw,
                (struct ibv_mw_bind_info){.mr = mr,
                                          .addr = (uintptr_t)m,
                                          .length = TRAFFIC_BYTES,
                                          .mw_access_flags = RW | RR});
        struct ibv_mr key = {.rkey = s.mw->rkey};
        struct traffic t = {.from = &s.p.a,
                            .op = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                            .to = {.buf = m, .mr = &key}};
        assert_int_equal(pthread_create(&thread, NULL, traffic_drive, &t), 0);
        while (atomic_load(&t.done) < 3 * i)
            sched_yield();
        take(&s, i % 3 == 0 ? DEALLOC : s.mw->type == IBV_MW_TYPE_1 ? ZERO_LENGTH : LOCAL_INV);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        memset(m, i, TRAFFIC_BYTES);
        assert_int_equal(munmap(m, TRAFFIC_BYTES), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        scene_close(&s, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_says_so),
        cmocka_unit_test(a_window_gives_its_part),
        cmocka_unit_test(a_window_gives_no_more),
        cmocka_unit_test(a_window_is_for_the_peer_and_its_rights),
        cmocka_unit_test(a_window_through_the_extended_view),
        cmocka_unit_test(what_was_taken_is_refused),
        cmocka_unit_test(a_window_is_bound_many_times),
        cmocka_unit_test(only_its_qp_uses_a_type_2_window),
        cmocka_unit_test(another_qp_cannot_invalidate_it),
        cmocka_unit_test(a_peer_takes_no_memory_from_the_others),
        cmocka_unit_test(a_type_2_window_ends_with_its_qp),
        cmocka_unit_test(binds_that_are_not_posted),
        cmocka_unit_test(binds_that_fail),
        cmocka_unit_test(invalidates_that_fail),
        cmocka_unit_test(binds_keep_their_place),
        cmocka_unit_test(a_local_invalidate_waits_for_what_is_before_it),
        cmocka_unit_test(memory_given_back_under_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

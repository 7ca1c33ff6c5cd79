/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz/victim.h"

#include <errno.h>

#define RIGHTS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)
#define AT           (VICTIM_PAGE - VICTIM_BYTES) /* in the page: tagged offsets have to agree */
#define WINDOW_AT    200                          /* in VICTIM_BELOW */
#define WINDOW_BYTES 400

static const struct {
    unsigned access;
    uint64_t iova;
} kinds[VICTIM_REGIONS] = {
    [VICTIM_ALL] = {RIGHTS, 0x10000 + AT},
    [VICTIM_LOCAL] = {IBV_ACCESS_LOCAL_WRITE, 0x20000 + AT},
    [VICTIM_READ] = {IBV_ACCESS_REMOTE_READ, 0x30000 + AT},
    [VICTIM_WRITE] = {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, AT},
    [VICTIM_FOREIGN] = {RIGHTS, 0x50000 + AT},
    [VICTIM_GONE] = {RIGHTS, 0x60000 + AT},
    [VICTIM_BELOW] = {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, 0x70000 + AT},
    [VICTIM_TOP] = {RIGHTS, -(uint64_t)VICTIM_BYTES},
};

static _Alignas(VICTIM_PAGE) uint8_t arena[VICTIM_ARENA];
static struct ibv_context *ctx;

static uint8_t *memory(unsigned region)
{
    return arena + region * VICTIM_PAGE + AT;
}

static bool is_readable(unsigned region, size_t at)
{
    return (kinds[region].access & IBV_ACCESS_REMOTE_READ && region < VICTIM_FOREIGN) ||
           region == VICTIM_TOP ||
           (region == VICTIM_BELOW && at >= WINDOW_AT && at < WINDOW_AT + WINDOW_BYTES);
}

/** The bytes [at, at+len) of a region may change, as far as they are its own. */
static void allow(struct victim *v, unsigned region, uint64_t at, uint64_t len)
{
    size_t first = (size_t)(memory(region) - arena);
    if (at >= VICTIM_BYTES)
        return;
    if (len > VICTIM_BYTES - at)
        len = VICTIM_BYTES - at;
    memset(v->may_change + first + at, true, len);
}

static void fill(struct victim *v)
{
    memset(arena, VICTIM_SECRET, sizeof(arena));
    for (unsigned r = 0; r < VICTIM_REGIONS; r++)
        for (size_t i = 0; i < VICTIM_BYTES; i++)
            if (is_readable(r, i))
                memory(r)[i] = (uint8_t)(i % 200);
    memcpy(v->expect, arena, sizeof(arena));
    for (unsigned r = 0; r < VICTIM_REGIONS; r++)
        if (kinds[r].access & IBV_ACCESS_REMOTE_WRITE && r != VICTIM_FOREIGN && r != VICTIM_GONE)
            allow(v, r, 0, VICTIM_BYTES);
}

static void open_memory(struct victim *v)
{
    for (unsigned r = 0; r < VICTIM_REGIONS; r++) {
        v->mr[r] = ibv_reg_mr_iova2(r == VICTIM_FOREIGN ? v->other : v->pd, memory(r), VICTIM_BYTES,
                                    kinds[r].iova, kinds[r].access);
        FUZZ_CHECK(v->mr[r]);
        v->key[r] = v->mr[r]->rkey;
        v->base[r] = kinds[r].access & IBV_ACCESS_ZERO_BASED ? 0 : kinds[r].iova;
    }
    FUZZ_CHECK(ibv_dereg_mr(v->mr[VICTIM_GONE]) == 0);
    v->mr[VICTIM_GONE] = NULL;
    v->mw = ibv_alloc_mw(v->pd, IBV_MW_TYPE_2);
    FUZZ_CHECK(v->mw);
}

static void open_qp(struct victim *v)
{
    struct ibv_qp_init_attr init = {
        .send_cq = v->cq,
        .recv_cq = v->cq,
        .srq = v->srq,
        .cap = {VICTIM_WRS, VICTIM_WRS, 4, 4, 64},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS & ~1u};
    v->qp = ibv_create_qp(v->pd, &init);
    FUZZ_CHECK(v->qp);
    FUZZ_CHECK(
        ibv_modify_qp(v->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

void victim_open(struct victim *v, bool shared_receives)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = VICTIM_WRS, .max_sge = 4}};
    memset(v, 0, sizeof(*v));
    v->sends.last = v->recvs.last = -1;
    if (!ctx)
        ctx = still_open();
    FUZZ_CHECK(ctx);
    v->pd = ibv_alloc_pd(ctx);
    v->other = ibv_alloc_pd(ctx);
    v->cq = ibv_create_cq(ctx, 2 * VICTIM_WRS, NULL, NULL, 0);
    FUZZ_CHECK(v->pd && v->other && v->cq);
    v->srq = shared_receives ? ibv_create_srq(v->pd, &srq) : NULL;
    fill(v);
    open_memory(v);
    open_qp(v);
}

uint32_t victim_key(const struct victim *v, uint8_t which, uint64_t *base)
{
    which %= 16;
    *base = which < VICTIM_KEYS ? v->base[which] : 0;
    return which < VICTIM_KEYS ? v->key[which] : which == 15 ? 0 : 0x1234567u * which;
}

/* ---- the program ---- */

/** Up to 4 pieces, mostly inside a region; what data may come into is noted. */
static int take_sges(struct victim *v, struct fuzz_in *in, struct ibv_sge *sge, int n, bool sink)
{
    for (int i = 0; i < n; i++) {
        uint8_t which = fuzz_u8(in), r = which % 16;
        uint64_t base, at = fuzz_u8(in) * 20u, len = fuzz_u8(in);
        uint32_t key = victim_key(v, which, &base);
        if (which & 0x80)
            len *= 24;
        sge[i] = (struct ibv_sge){.addr = base + at, .length = (uint32_t)len, .lkey = key};
        if (sink && r < VICTIM_REGIONS && r != VICTIM_FOREIGN && v->mr[r] &&
            kinds[r].access & IBV_ACCESS_LOCAL_WRITE)
            allow(v, r, at, len);
    }
    return n;
}

void victim_recv(struct victim *v, struct fuzz_in *in)
{
    struct ibv_sge sge[4];
    unsigned i = v->recvs.posted;
    uint8_t n = fuzz_u8(in) % 5;
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = sge}, *bad = NULL;
    if (i == sizeof(v->recvs.done))
        return;
    wr.num_sge = take_sges(v, in, sge, n, true);
    int r = v->srq ? ibv_post_srq_recv(v->srq, &wr, &bad) : ibv_post_recv(v->qp, &wr, &bad);
    FUZZ_CHECK(r == 0 ? bad == NULL : r == ENOMEM && bad == &wr);
    v->recvs.posted += r == 0;
}

static void take_bind(struct victim *v, struct fuzz_in *in, struct ibv_send_wr *wr)
{
    uint64_t len = fuzz_u8(in) % WINDOW_BYTES + 1;
    wr->bind_mw.mw = v->mw;
    wr->bind_mw.rkey = ibv_inc_rkey(v->mw->rkey);
    wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = v->mr[VICTIM_BELOW],
        .addr = kinds[VICTIM_BELOW].iova + WINDOW_AT,
        .length = len,
        .mw_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    allow(v, VICTIM_BELOW, WINDOW_AT, len);
}

static void take_operands(struct victim *v, struct fuzz_in *in, struct ibv_send_wr *wr)
{
    uint64_t base;
    uint8_t which = fuzz_u8(in);
    uint32_t key = victim_key(v, which, &base);
    switch (wr->opcode) {
    case IBV_WR_BIND_MW:
        take_bind(v, in, wr);
        break;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
        wr->invalidate_rkey = key;
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        wr->wr.atomic.remote_addr = base + which;
        wr->wr.atomic.rkey = key;
        break;
    default:
        wr->wr.rdma.remote_addr = base + which;
        wr->wr.rdma.rkey = key;
    }
}

void victim_send(struct victim *v, struct fuzz_in *in)
{
    struct ibv_sge sge[4];
    unsigned i = v->sends.posted;
    uint8_t what = fuzz_u8(in), how = fuzz_u8(in);
    struct ibv_send_wr wr = {.wr_id = i, .sg_list = sge, .opcode = what % 12}, *bad = NULL;
    bool atomic =
        wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (i == sizeof(v->sends.done) || (wr.opcode == IBV_WR_BIND_MW && !v->mr[VICTIM_BELOW]))
        return;
    wr.send_flags = how & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    take_operands(v, in, &wr);
    wr.num_sge = atomic ? 1 : take_sges(v, in, sge, how >> 6, wr.opcode == IBV_WR_RDMA_READ);
    if (atomic) /* it comes where the peer may write in any case */
        sge[0] = (struct ibv_sge){v->base[VICTIM_ALL] + how, 8, v->key[VICTIM_ALL]};
    int r = ibv_post_send(v->qp, &wr, &bad);
    FUZZ_CHECK(r == 0 ? bad == NULL : bad == &wr);
    FUZZ_CHECK(r == 0 || r == ENOMEM || r == EINVAL || r == EOPNOTSUPP || r == EPERM);
    if (r == 0 && wr.opcode == IBV_WR_BIND_MW) {
        v->key[VICTIM_WINDOW] = wr.bind_mw.rkey;
        v->base[VICTIM_WINDOW] = kinds[VICTIM_BELOW].iova + WINDOW_AT;
    }
    v->sends.signaled[i] = wr.send_flags & IBV_SEND_SIGNALED;
    v->sends.posted += r == 0;
}

void victim_dereg(struct victim *v, uint8_t which)
{
    unsigned r = which % VICTIM_REGIONS;
    size_t first = (size_t)(memory(r) - arena);
    if (!v->mr[r])
        return;
    int e = ibv_dereg_mr(v->mr[r]);
    FUZZ_CHECK(e == 0 || (e == EBUSY && r == VICTIM_BELOW));
    if (e)
        return;
    v->mr[r] = NULL;
    /* The program uses it for something else. */
    memset(memory(r), VICTIM_SECRET, VICTIM_BYTES);
    memset(v->expect + first, VICTIM_SECRET, VICTIM_BYTES);
    memset(v->may_change + first, false, VICTIM_BYTES);
}

/* ---- promises ---- */

static bool is_receive(const struct ibv_wc *wc)
{
    return wc->opcode & IBV_WC_RECV;
}

void victim_poll(struct victim *v)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(v->cq, 1, &wc) == 1) {
        bool recv = is_receive(&wc), good = wc.status == IBV_WC_SUCCESS;
        unsigned i = (unsigned)wc.wr_id;
        FUZZ_CHECK(wc.qp_num == v->qp->qp_num);
        if (recv) {
            FUZZ_CHECK(i < v->recvs.posted && ++v->recvs.done[i] == 1);
            FUZZ_CHECK((int)i > v->recvs.last && !(good && v->recvs.failed));
            v->recvs.last = (int)i;
            v->recvs.failed |= !good;
        } else {
            FUZZ_CHECK(i < v->sends.posted && ++v->sends.done[i] == 1);
            FUZZ_CHECK((int)i > v->sends.last && !(good && v->sends.failed));
            FUZZ_CHECK(!good || v->sends.signaled[i]);
            v->sends.last = (int)i;
            v->sends.failed |= !good;
        }
    }
}

static void check_completions(struct victim *v)
{
    for (unsigned i = 0; i < v->sends.posted; i++)
        FUZZ_CHECK(v->sends.done[i] == 1 || (!v->sends.signaled[i] && v->sends.done[i] == 0));
    for (unsigned i = 0; i < v->recvs.posted; i++)
        FUZZ_CHECK(v->recvs.done[i] == 1 || (v->srq && v->recvs.done[i] == 0));
}

/* In runs, not byte by byte: the fuzzer watches each comparison of ours. */
static void check_memory(struct victim *v)
{
    const uint8_t *end = v->may_change + VICTIM_ARENA, *run = v->may_change, *stop;
    while ((run = memchr(run, true, (size_t)(end - run)))) {
        stop = memchr(run, false, (size_t)(end - run));
        size_t at = (size_t)(run - v->may_change);
        run = stop ? stop : end;
        memcpy(v->expect + at, arena + at, (size_t)(run - v->may_change) - at);
    }
    FUZZ_CHECK(memcmp(arena, v->expect, VICTIM_ARENA) == 0);
}

void victim_close(struct victim *v)
{
    victim_poll(v);
    check_completions(v);
    FUZZ_CHECK(v->qp->state == IBV_QPS_ERR);
    FUZZ_CHECK(ibv_destroy_qp(v->qp) == 0);
    FUZZ_CHECK(ibv_dealloc_mw(v->mw) == 0);
    check_memory(v);
    for (unsigned r = 0; r < VICTIM_REGIONS; r++)
        FUZZ_CHECK(!v->mr[r] || ibv_dereg_mr(v->mr[r]) == 0);
    FUZZ_CHECK(!v->srq || ibv_destroy_srq(v->srq) == 0);
    FUZZ_CHECK(ibv_destroy_cq(v->cq) == 0);
    FUZZ_CHECK(ibv_dealloc_pd(v->other) == 0 && ibv_dealloc_pd(v->pd) == 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended view of a QP: work requests built by calls, between wr_start and wr_complete, and
 * then posted all or none. They are gathered in a builder of the QP, inline data with them;
 * build_lock is held from start to complete or abort, so threads that build take turns, and nobody
 * else waits.
 */
#include "advice/life.h"
#include "device/context.h"
#include "faults/like.h"
#include "observe/record.h"
#include "qp/qp.h"
#include "qpn/dial.h"
#include "ud/ud.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/ops.h"
#include "verbs/record.h"

#include <stdlib.h>
#include <string.h>

struct iw_builder {
    uint64_t ops;   /* IBV_QP_EX_WITH_* asked for at creation */
    uint32_t count; /* WRs so far */
    int error;      /* the first; nothing is built any more */
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;  /* max_sge for each WR */
    uint8_t *inline_data; /* the QP's max_inline_data for each WR */
    uint32_t max_sge;     /* at least 1: inline data needs one */
};

/** What each opcode needs among send_ops_flags. */
static const uint64_t op_of[] = {
    [IBV_WR_RDMA_WRITE] = IBV_QP_EX_WITH_RDMA_WRITE,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    [IBV_WR_SEND] = IBV_QP_EX_WITH_SEND,
    [IBV_WR_SEND_WITH_IMM] = IBV_QP_EX_WITH_SEND_WITH_IMM,
    [IBV_WR_RDMA_READ] = IBV_QP_EX_WITH_RDMA_READ,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    [IBV_WR_LOCAL_INV] = IBV_QP_EX_WITH_LOCAL_INV,
    [IBV_WR_BIND_MW] = IBV_QP_EX_WITH_BIND_MW,
    [IBV_WR_SEND_WITH_INV] = IBV_QP_EX_WITH_SEND_WITH_INV,
};

#define SEND_OPS                                                                                   \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |     \
     IBV_QP_EX_WITH_SEND_WITH_INV)

static struct iw_qp *iw_qp_of(struct ibv_qp_ex *q)
{
    return container_of(q, struct iw_qp, pub_ex);
}

static void remember(struct ibv_qp_ex *q, int error)
{
    struct iw_builder *b = iw_qp_of(q)->builder;
    if (!b->error)
        b->error = error;
}

/* ---- start and end ---- */

#define REFUSE(q, ...) iw_refuse_once(&iw_qp_of(q)->refused, "ibv_wr_complete", __VA_ARGS__)

static void wr_start(struct ibv_qp_ex *q)
{
    struct iw_qp *qp = iw_qp_of(q);
    lock_get(&qp->build_lock);
    qp->builder->count = 0;
    qp->builder->error = 0;
    atomic_store_explicit(&qp->built, false, memory_order_relaxed);
}

static int wr_complete(struct ibv_qp_ex *q)
{
    struct iw_qp *qp = iw_qp_of(q);
    struct iw_builder *b = qp->builder;
    struct ibv_send_wr *bad;
    int r = b->error;
    atomic_store_explicit(&qp->built, true, memory_order_relaxed);
    if (!r && b->count)
        r = iw_post_send(qp, b->wr, &bad, IW_POST_ALL);
    lock_put(&qp->build_lock);
    return r;
}

/* With a check going on. */

static void check_wr_start(struct ibv_qp_ex *q)
{
    if (!iw_life_over(&q->qp_base, "ibv_wr_start"))
        wr_start(q);
}

static int check_wr_complete(struct ibv_qp_ex *q)
{
    struct iw_qp *qp = iw_qp_of(q);
    struct iw_builder *b = qp->builder;
    const struct ibv_send_wr *wr = !b->error && b->count ? b->wr : NULL;
    verbs_check_send(qp, wr);
    int r = wr_complete(q);
    if (r)
        verbs_check_unsent(qp, wr);
    return r;
}

/* With a record. */
static int record_wr_complete(struct ibv_qp_ex *q)
{
    const struct iw_builder *b = iw_qp_of(q)->builder;
    if (!b->error && b->count)
        verbs_record_send(&q->qp_base, b->wr);
    struct iw_recorded r = iw_record(WR_COMPLETE, q->qp_base.qp_num, b->count);
    return iw_record_end(r, iw_advice_on() ? check_wr_complete(q) : wr_complete(q));
}

static void wr_abort(struct ibv_qp_ex *q)
{
    lock_put(&iw_qp_of(q)->build_lock);
}

/* ---- work requests ---- */

/** The next WR, with opcode, id and flags; @p scratch instead if there is an error. */
static struct ibv_send_wr *add(struct ibv_qp_ex *q, enum ibv_wr_opcode op,
                               struct ibv_send_wr *scratch)
{
    struct iw_qp *qp = iw_qp_of(q);
    struct iw_builder *b = qp->builder;
    assert_held(&qp->build_lock);
    if (!(b->ops & op_of[op]))
        remember(q, REFUSE(q, NOT_ASKED, op));
    else if (b->count == qp->cap.max_send_wr)
        remember(q, REFUSE(q, SEND_FULL, b->count, 0));
    if (b->error)
        return scratch;
    struct ibv_send_wr *wr = &b->wr[b->count];
    *wr = (struct ibv_send_wr){
        .wr_id = q->wr_id,
        .sg_list = &b->sge[(size_t)b->count * b->max_sge],
        .opcode = op,
        .send_flags = q->wr_flags & ~(unsigned)IBV_SEND_INLINE,
    };
    if (b->count)
        wr[-1].next = wr;
    b->count++;
    return wr;
}

static void add_atomic(struct ibv_qp_ex *q, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
                       uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr scratch, *wr = add(q, op, &scratch);
    wr->wr.atomic.remote_addr = addr;
    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.compare_add = compare_add;
    wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr, uint64_t compare,
                              uint64_t swap)
{
    add_atomic(q, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr, uint64_t n)
{
    add_atomic(q, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, n, 0);
}

static struct ibv_send_wr *add_rdma(struct ibv_qp_ex *q, enum ibv_wr_opcode op, uint32_t rkey,
                                    uint64_t addr, struct ibv_send_wr *scratch)
{
    struct ibv_send_wr *wr = add(q, op, scratch);
    wr->wr.rdma.remote_addr = addr;
    wr->wr.rdma.rkey = rkey;
    return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr)
{
    struct ibv_send_wr scratch;
    add_rdma(q, IBV_WR_RDMA_READ, rkey, addr, &scratch);
}

static void wr_rdma_write(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr)
{
    struct ibv_send_wr scratch;
    add_rdma(q, IBV_WR_RDMA_WRITE, rkey, addr, &scratch);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr, __be32 imm)
{
    struct ibv_send_wr scratch;
    add_rdma(q, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, &scratch)->imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *q)
{
    struct ibv_send_wr scratch;
    add(q, IBV_WR_SEND, &scratch);
}

static void wr_send_imm(struct ibv_qp_ex *q, __be32 imm)
{
    struct ibv_send_wr scratch;
    add(q, IBV_WR_SEND_WITH_IMM, &scratch)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *q, uint32_t rkey)
{
    struct ibv_send_wr scratch;
    add(q, IBV_WR_SEND_WITH_INV, &scratch)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *q, uint32_t rkey)
{
    struct ibv_send_wr scratch;
    add(q, IBV_WR_LOCAL_INV, &scratch)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *q, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct ibv_send_wr scratch, *wr = add(q, IBV_WR_BIND_MW, &scratch);
    wr->bind_mw.mw = mw;
    wr->bind_mw.rkey = rkey;
    wr->bind_mw.bind_info = *info;
}

/* ---- what this device does not do ---- */

static void wr_send_tso(struct ibv_qp_ex *q, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    (void)hdr, (void)hdr_sz, (void)mss;
    remember(q, REFUSE(q, OFFERED));
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *q, uint32_t srqn)
{
    (void)srqn;
    remember(q, REFUSE(q, OFFERED));
}

static void wr_atomic_write(struct ibv_qp_ex *q, uint32_t rkey, uint64_t addr, const void *data)
{
    (void)rkey, (void)addr, (void)data;
    remember(q, REFUSE(q, OFFERED));
}

/* ---- data ---- */

/** The WR whose data is set; NULL if there is an error. */
static struct ibv_send_wr *latest(struct ibv_qp_ex *q)
{
    struct iw_builder *b = iw_qp_of(q)->builder;
    assert_held(&iw_qp_of(q)->build_lock);
    if (b->count == 0)
        remember(q, REFUSE(q, NO_WORK));
    return b->error ? NULL : &b->wr[b->count - 1];
}

static void wr_set_ud_addr(struct ibv_qp_ex *q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    if (!iw_qp_of(q)->datagrams) {
        remember(q, REFUSE(q, OFFERED));
        return;
    }
    struct ibv_send_wr *wr = latest(q);
    int over = iw_life_over(ah, "ibv_wr_set_ud_addr");
    if (over)
        remember(q, over);
    if (!wr || over)
        return;
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = qpn;
    wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *q, size_t n, const struct ibv_sge *list)
{
    struct ibv_send_wr *wr = latest(q);
    if (!wr)
        return;
    uint32_t max = iw_qp_of(q)->cap.max_send_sge;
    if (n > max) {
        remember(q, REFUSE(q, SEND_SGES, (int)n, max));
        return;
    }
    if (n && !list) {
        remember(q, REFUSE(q, NO_SGES, (int)n));
        return;
    }
    if (n)
        memcpy(wr->sg_list, list, n * sizeof(*list));
    wr->num_sge = (int)n;
    wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
}

static void wr_set_sge(struct ibv_qp_ex *q, uint32_t lkey, uint64_t addr, uint32_t length)
{
    wr_set_sge_list(q, 1, &(struct ibv_sge){.addr = addr, .length = length, .lkey = lkey});
}

static void wr_set_inline_data_list(struct ibv_qp_ex *q, size_t n, const struct ibv_data_buf *list)
{
    struct iw_qp *qp = iw_qp_of(q);
    struct iw_builder *b = qp->builder;
    struct ibv_send_wr *wr = latest(q);
    size_t max = qp->cap.max_inline_data, len = 0;
    if (!wr)
        return;
    uint8_t *to = b->inline_data + (b->count - 1) * max;
    for (size_t i = 0; i < n; len += list[i++].length) {
        if (list[i].length > max - len) {
            unsigned long long more = len + list[i].length;
            remember(q, REFUSE(q, INLINE_LENGTH, more, qp->cap.max_inline_data));
            return;
        }
        if (list[i].length)
            memcpy(to + len, list[i].addr, list[i].length);
    }
    wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)to, .length = (uint32_t)len};
    wr->num_sge = 1;
    wr->send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *q, void *addr, size_t length)
{
    wr_set_inline_data_list(q, 1, &(struct ibv_data_buf){.addr = addr, .length = length});
}

/* ---- life ---- */

static void fill(struct ibv_qp_ex *q)
{
    q->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    q->wr_atomic_fetch_add = wr_atomic_fetch_add;
    q->wr_bind_mw = wr_bind_mw;
    q->wr_local_inv = wr_local_inv;
    q->wr_rdma_read = wr_rdma_read;
    q->wr_rdma_write = wr_rdma_write;
    q->wr_rdma_write_imm = wr_rdma_write_imm;
    q->wr_send = wr_send;
    q->wr_send_imm = wr_send_imm;
    q->wr_send_inv = wr_send_inv;
    q->wr_send_tso = wr_send_tso;
    q->wr_set_ud_addr = wr_set_ud_addr;
    q->wr_set_xrc_srqn = wr_set_xrc_srqn;
    q->wr_set_inline_data = wr_set_inline_data;
    q->wr_set_inline_data_list = wr_set_inline_data_list;
    q->wr_set_sge = wr_set_sge;
    q->wr_set_sge_list = wr_set_sge_list;
    q->wr_start = iw_advice_on() ? check_wr_start : wr_start;
    q->wr_complete = iw_record_on()   ? record_wr_complete
                     : iw_advice_on() ? check_wr_complete
                                      : wr_complete;
    q->wr_abort = wr_abort;
    q->wr_atomic_write = wr_atomic_write;
}

/** One block, as large as the send queue; pages are touched when used. */
static struct iw_builder *builder_create(const struct ibv_qp_cap *cap, uint64_t ops)
{
    uint32_t max_sge = cap->max_send_sge ? cap->max_send_sge : 1;
    size_t n = cap->max_send_wr;
    struct iw_builder *b = calloc(
        1, sizeof(*b) + n * (sizeof(*b->wr) + max_sge * sizeof(*b->sge) + cap->max_inline_data));
    if (!b)
        return NULL;
    b->ops = ops;
    b->max_sge = max_sge;
    b->wr = (struct ibv_send_wr *)(b + 1);
    b->sge = (struct ibv_sge *)(b->wr + n);
    b->inline_data = (uint8_t *)(b->sge + n * max_sge);
    return b;
}

/* Of UC. */
#define UC_OPS                                                                                     \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
     IBV_QP_EX_WITH_SEND_WITH_IMM)

#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

/** What a QP of this type has. */
static uint64_t ops_of(enum ibv_qp_type type)
{
    return type == IBV_QPT_UC ? UC_OPS : type == IBV_QPT_UD ? UD_OPS : SEND_OPS;
}

/** Whether what the mask announces beside PD is nothing that a QP here has not. */
static bool is_offered(const struct ibv_qp_init_attr_ex *a)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                           IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const uint64_t ops = ops_of(a->qp_type);
    const uint32_t flags = a->qp_type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
    return !(a->comp_mask & ~known) &&
           !((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && (a->create_flags & ~flags)) &&
           !((a->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && a->max_tso_header) &&
           !((a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && (a->send_ops_flags & ~ops));
}

static struct ibv_qp *create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                             struct iw_dial *dial)
{
    if (!is_offered(attr))
        return null_errno(iw_refuse("ibv_create_qp_ex", QP_OPS, attr->comp_mask));
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
        return null_errno(iw_refuse("ibv_create_qp_ex", QP_PD));
    if (attr->pd->context != context)
        return null_errno(iw_refuse("ibv_create_qp_ex", OTHER_CONTEXT, "the protection domain"));
    int r =
        attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? iw_like_ops(attr->send_ops_flags) : 0;
    if (r)
        return null_errno(r);
    struct ibv_qp_init_attr plain = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
    };
    struct iw_builder *builder = NULL;
    bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct ibv_qp *qp = create_qp(attr->pd, &plain, dial);
    if (qp && extended)
        builder = builder_create(&plain.cap, attr->send_ops_flags);
    if (qp && extended && !builder) {
        iw_qp(qp)->dial = NULL; /* the caller's */
        ibv_destroy_qp(qp);
        return null_errno(ENOMEM);
    }
    if (!qp)
        return NULL;
    iw_qp(qp)->builder = builder;
    if (iw_qp(qp)->datagrams && (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
        iw_ud(iw_qp(qp))->block_self = attr->create_flags;
    if (extended)
        fill(&iw_qp(qp)->pub_ex);
    attr->cap = plain.cap;
    return qp;
}

static struct ibv_qp *create_dialling(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                      bool numbered)
{
    if (attr->qp_type == IBV_QPT_UD)
        return create(context, attr, NULL);
    struct iw_dial *dial = iw_dial_new(numbered);
    if (!dial)
        return null_errno(ENOMEM);
    struct ibv_qp *qp = create(context, attr, dial);
    if (!qp)
        iw_dial_free(dial);
    return qp;
}

struct ibv_qp *op_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    return create_dialling(context, attr, true);
}

struct ibv_qp *iw_cm_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    if (attr->qp_type == IBV_QPT_UD)
        return create(context, attr, NULL);
    if (attr->qp_type != IBV_QPT_RC)
        return null_errno(iw_refuse("rdma_create_qp", QP_TYPE, attr->qp_type));
    if (iw_device(context->device)->roce)
        return create_dialling(context, attr, false);
    return create(context, attr, NULL);
}

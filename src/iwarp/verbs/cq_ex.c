/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended view of a CQ: its completions one by one, read field by field. A completion is taken
 * off the queue when the poll reaches it.
 */
#include "advice/shadow.h"
#include "cq/cq.h"
#include "cq/visibility.h"
#include "device/context.h"
#include "engine/poller.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "faults/plight.h"
#include "mem/pd.h"
#include "observe/record.h"
#include "qp/overrun.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/ops.h"
#include "verbs/record.h"

#include <time.h>

#define STAMPS   (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define NS_PER_S 1000000000ull

static struct iw_cq *iw_cq_of(struct ibv_cq_ex *c)
{
    return container_of(c, struct iw_cq, pub_ex);
}

/** Moves to the next completion; looking for it makes progress as ibv_poll_cq does. */
static int advance(struct iw_cq *cq)
{
    bool over = atomic_load(&cq->overrun); /* before the looks: what was added earlier is seen */
    bool got = iw_cq_take_one(cq, &cq->current);
    iw_engine_polled(&cq->poller);
    if (!got && iw_engine_give_way())
        got = iw_cq_take_one(cq, &cq->current);
    if (!got) {
        iw_engine_poll(&cq->poller);
        got = iw_cq_take_one(cq, &cq->current);
    } else {
        iw_engine_found(&cq->poller);
    }
    iw_shadow_polled(cq->shadow, 1, got);
    if (!got)
        return over ? EIO : ENOENT;
    iw_visibility_show(cq, &cq->current.wc, 1);
    if (cq->shadow)
        verbs_check_completed(cq, &cq->current.wc);
    cq->pub_ex.status = cq->current.wc.status;
    cq->pub_ex.wr_id = cq->current.wc.wr_id;
    return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
    struct iw_cq *cq = iw_cq_of(ex);
    if (!cq->single_threaded)
        lock_put(&cq->poll_lock);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct iw_cq *cq = iw_cq_of(ex);
    if (attr->comp_mask)
        return iw_refuse("ibv_start_poll", VALUE, "a comp_mask");
    if (!cq->single_threaded)
        lock_get(&cq->poll_lock);
    int r = advance(cq);
    if (r)
        end_poll(ex);
    return r;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return advance(iw_cq_of(ex));
}

/* With a record. */

static int recorded(struct ibv_cq_ex *ex, int r)
{
    const struct iw_cq *cq = iw_cq_of(ex);
    if (!r)
        verbs_record_completion(&cq->pub, &cq->current.wc);
    else if (r == ENOENT)
        iw_record_empty(&cq->pub);
    return r;
}

static int record_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return recorded(ex, start_poll(ex, attr));
}

static int record_next_poll(struct ibv_cq_ex *ex)
{
    return recorded(ex, next_poll(ex));
}

/* ---- the fields ---- */

#define READ(type, field)                                                                          \
    static type read_##field(struct ibv_cq_ex *ex)                                                 \
    {                                                                                              \
        return iw_cq_of(ex)->current.wc.field;                                                     \
    }

READ(enum ibv_wc_opcode, opcode)
READ(uint32_t, vendor_err)
READ(uint32_t, byte_len)
READ(__be32, imm_data) /* also the invalidated key: they share their place */
READ(uint32_t, qp_num)
READ(uint32_t, src_qp)
READ(unsigned int, wc_flags)
READ(uint32_t, slid)
READ(uint8_t, sl)
READ(uint8_t, dlid_path_bits)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t read_stamp(struct ibv_cq_ex *ex)
{
    return iw_cq_of(ex)->current.stamp;
}

/** By the distance that the two clocks have now. */
static uint64_t read_wallclock(struct ibv_cq_ex *ex)
{
    return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - iw_cq_of(ex)->current.stamp);
}

/* What an RNIC has no notion of cannot be asked for at creation; who reads it all the same gets 0.
 */

static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
    (void)ex;
    *info = (struct ibv_wc_tm_info){0};
}

static void fill(struct ibv_cq_ex *ex)
{
    ex->start_poll = iw_record_on() ? record_start_poll : start_poll;
    ex->next_poll = iw_record_on() ? record_next_poll : next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_byte_len = read_byte_len;
    ex->read_imm_data = read_imm_data;
    ex->read_qp_num = read_qp_num;
    ex->read_src_qp = read_src_qp;
    ex->read_wc_flags = read_wc_flags;
    ex->read_slid = read_slid;
    ex->read_sl = read_sl;
    ex->read_dlid_path_bits = read_dlid_path_bits;
    ex->read_completion_ts = read_stamp;
    ex->read_cvlan = read_cvlan;
    ex->read_flow_tag = read_flow_tag;
    ex->read_tm_info = read_tm_info;
    ex->read_completion_wallclock_ns = read_wallclock;
}

/* ---- life ---- */

/** @return NULL if it is no parent domain of this context */
static struct iw_pd *parent_of(struct ibv_context *context, struct ibv_pd *pd)
{
    return pd && pd->context == context && iw_pd(pd)->root != iw_pd(pd) ? iw_pd(pd) : NULL;
}

#define EX "ibv_create_cq_ex"

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
    const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    struct iw_pd *parent =
        attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? parent_of(context, attr->parent_domain) : NULL;
    if ((attr->comp_mask & ~known) || (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
        (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | STAMPS)))
        return null_errno(iw_refuse(EX, ATTRIBUTE, "comp_mask, flags or wc_flags"));
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !parent)
        return null_errno(iw_refuse(EX, VALUE, "what is no parent domain of this context"));
    if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX)
        return null_errno(iw_refuse(EX, VALUE, "cqe or comp_vector above 2^31 - 1"));
    int r = iw_like_cq(attr->cqe);
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_CREATE_CQ, NULL))
        return null_errno(ENOMEM);
    struct iw_cq *cq = iw_cq_create(context, (int)attr->cqe, attr->cq_context, attr->channel,
                                    (int)attr->comp_vector, iw_qps_fail);
    if (!cq)
        return NULL;
    cq->parent = parent;
    if (parent)
        atomic_fetch_add(&parent->users, 1);
    cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    cq->stamped = attr->wc_flags & STAMPS;
    fill(&cq->pub_ex);
    atomic_fetch_add(&iw_context(context)->users, 1);
    iw_plight_born(&cq->pub, "cq");
    verbs_check_cq(cq);
    return &cq->pub_ex;
}

struct ibv_cq_ex *op_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct iw_recorded r = iw_record(CREATE_CQ, 0, attr->cqe, (uintptr_t)attr->channel);
    struct ibv_cq_ex *cq = create_cq_ex(context, attr);
    iw_record_made(r, cq, (uintptr_t)ibv_cq_ex_to_cq(cq), errno);
    return cq;
}

int op_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
    if (values->comp_mask)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    return 0;
}

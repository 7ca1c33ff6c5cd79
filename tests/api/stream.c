/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include "calls.h"

#include <string.h>
#include <sys/mman.h>

#define WARM_UP    20000
#define ROUND      128 /* messages, of which the second half is small */
#define TRIES      5000
#define INLINE     128
#define MIXED_MAX  9000
#define MIXED_FEW  500
#define SIGNAL     16
#define FILLS      251 /* a prime: what follows in a slot is another one */
#define POLL_BATCH 16

/* ---- messages ---- */

static uint32_t mixed_length(uint64_t i)
{
    uint32_t some = (uint32_t)(i * 2654435761u) >> 8;
    return 1 + some % (i % ROUND < ROUND / 2 ? MIXED_MAX : MIXED_FEW);
}

struct message stream_message(const struct shape *shape, uint64_t i)
{
    uint32_t len = shape->mixed ? mixed_length(i) : STREAM_SHORT;
    return (struct message){
        .offset = (i % shape->slots + 1) * shape->slot - len,
        .len = len,
        .fill = (uint8_t)(1 + i % FILLS),
        .is_inline = shape->mixed && len <= INLINE && i % 2,
        .signaled = !shape->mixed || i % SIGNAL == SIGNAL - 1,
    };
}

void stream_image(const struct shape *shape, uint64_t n, uint8_t *area)
{
    for (uint64_t i = 0; i < n; i++) {
        struct message m = stream_message(shape, i);
        memset(area + m.offset, m.fill, m.len);
    }
}

/** Where a message is sent from. */
static uint8_t *source_of(const struct stream *s, uint64_t i)
{
    return s->buf + i % s->shape->depth * s->shape->slot;
}

/* ---- the connection ---- */

static void make_qp(struct stream *s)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap = {s->shape->depth, STREAM_SENDS, 1, 1, INLINE},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags =
            IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND,
    };
    attr.pd = ibv_alloc_pd(s->id->verbs);
    CHECK(attr.pd && !rdma_create_qp_ex(s->id, &attr));
    s->buf = mmap(NULL, STREAM_PEER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(s->buf != MAP_FAILED);
    s->mr = ibv_reg_mr(attr.pd, s->buf, STREAM_PEER, IBV_ACCESS_LOCAL_WRITE);
    CHECK(s->mr);
}

void stream_open(struct stream *s)
{
    struct rdma_conn_param param = {.initiator_depth = 1};
    s->ch = rdma_create_event_channel();
    CHECK(s->ch);
    s->id = child_resolve(s->ch, s->told);
    make_qp(s);
    CHECK(!rdma_connect(s->id, &param));
    child_event(s->ch, RDMA_CM_EVENT_ESTABLISHED, &s->peer, sizeof(s->peer));
}

void stream_tell(struct stream *s, uint64_t n)
{
    CHECK(write(s->telling, &n, sizeof(n)) == sizeof(n));
}

void stream_sleep(struct stream *s)
{
    char c;
    CHECK(read(s->told, &c, 1) == 1);
}

/* ---- the stream ---- */

static int build(struct ibv_qp_ex *q, uint64_t i, unsigned flags, uint32_t rkey, uint64_t to,
                 const struct ibv_sge *sge)
{
    ibv_wr_start(q);
    q->wr_id = i;
    q->wr_flags = flags;
    ibv_wr_rdma_write(q, rkey, to);
    if (flags & IBV_SEND_INLINE)
        ibv_wr_set_inline_data(q, (void *)(uintptr_t)sge->addr, sge->length);
    else
        ibv_wr_set_sge(q, sge->lkey, sge->addr, sge->length);
    return ibv_wr_complete(q);
}

void stream_post(struct stream *s, uint32_t rkey)
{
    struct message m = stream_message(s->shape, s->posted);
    uint8_t *from = source_of(s, s->posted);
    unsigned flags = (m.signaled ? IBV_SEND_SIGNALED : 0u) | (m.is_inline ? IBV_SEND_INLINE : 0u);
    struct ibv_sge sge = {(uintptr_t)from, m.len, s->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = s->posted,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags,
                             .wr.rdma = {s->peer.addr + m.offset, rkey}},
                       *bad;
    memset(from, m.fill, m.len);
    s->sends_before = calls_sends;
    if (s->shape->built)
        CHECK(!build(ibv_qp_to_qp_ex(s->id->qp), wr.wr_id, flags, rkey, wr.wr.rdma.remote_addr,
                     &sge));
    else
        CHECK(!ibv_post_send(s->id->qp, &wr, &bad));
    s->posted++;
    if (m.is_inline)
        memset(from, 0, m.len);
}

/** The completion is the next that has to come. What it stands for is overwritten. */
static void complete(struct stream *s, const struct ibv_wc *wc)
{
    struct message m;
    CHECK(wc->status == IBV_WC_SUCCESS);
    CHECK(wc->opcode == IBV_WC_RDMA_WRITE);
    do {
        CHECK(s->done < s->posted);
        m = stream_message(s->shape, s->done);
        memset(source_of(s, s->done), 0, m.len);
        s->done++;
    } while (!m.signaled);
    CHECK(wc->wr_id == s->done - 1);
}

/** Streams until @p done messages are completed and @p posted are posted, as the queue allows. */
static void stream_past(struct stream *s, uint64_t done, uint64_t posted)
{
    struct ibv_wc wc[POLL_BATCH];
    while (s->done < done) {
        while (s->posted < posted && s->posted - s->done < s->shape->depth)
            stream_post(s, s->peer.rkey);
        int k = ibv_poll_cq(s->id->send_cq, POLL_BATCH, wc);
        CHECK(k >= 0);
        for (int i = 0; i < k; i++)
            complete(s, &wc[i]);
    }
}

void stream_to(struct stream *s, uint64_t n)
{
    stream_past(s, n, n);
}

void stream_until_corked(struct stream *s)
{
    uint64_t n = WARM_UP / ROUND * ROUND;
    stream_to(s, n);
    CHECK(calls_sends > 0);
    for (unsigned i = 0; i == 0 || s->sends_before != calls_sends; i++) {
        CHECK(i < TRIES);
        uint64_t to = n + ROUND / 2 + (1 + i % 4) * SIGNAL; /* not in step with what goes out */
        stream_past(s, to - SIGNAL, to);
        n += ROUND;
    }
}

void stream_rest(struct stream *s)
{
    while (s->done < s->posted) {
        struct ibv_wc wc = stream_poll(s->id->send_cq);
        complete(s, &wc);
    }
}

void stream_finish(struct stream *s)
{
    stream_rest(s);
    CHECK(s->sends_before != calls_sends);
}

void stream_until_flushed(struct stream *s)
{
    struct ibv_wc wc;
    bool flushed = false;
    while (!flushed || s->done < s->posted) {
        while (!flushed && s->posted - s->done < s->shape->depth)
            stream_post(s, s->peer.rkey);
        if (ibv_poll_cq(s->id->send_cq, 1, &wc) == 0)
            continue;
        CHECK(wc.wr_id == s->done);
        CHECK(wc.status == (flushed ? IBV_WC_WR_FLUSH_ERR : wc.status));
        CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        flushed = wc.status;
        s->done++;
    }
    child_event(s->ch, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
}

struct ibv_wc stream_poll(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(n == 1);
    return wc;
}

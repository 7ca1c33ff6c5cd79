/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/qp_held.h"

#include "rnic/qp_answer.h"
#include "wire/range.h"

#include <stdlib.h>
#include <string.h>

#define BOUND            (256u * 1024)       /* bytes a connection */
#define BOUND_REQUESTING (16u * 1024 * 1024) /* while requests of our own are outstanding */

enum kind { SEGMENT, IMMEDIATE, READ, ATOMIC };

struct iw_held {
    struct iw_held *next;
    enum kind kind;
    size_t size;
    union {
        struct ddp_seg seg; /* its payload is bytes[] */
        struct iw_immediate imm;
        struct rdmap_read_request read;
        struct rdmap_atomic_request atomic;
    };
    uint8_t bytes[];
};

bool iw_held_any(const struct iw_qp *qp)
{
    return qp->held_head != NULL;
}

static bool within_bound(struct iw_qp *qp, size_t more)
{
    lock_get(&qp->sq_lock);
    bool requesting = qp->ord.head != qp->ord.tail;
    lock_put(&qp->sq_lock);
    return range_fits(requesting ? BOUND_REQUESTING : BOUND, qp->held_bytes, more);
}

/** @return a new last element with room for @p len bytes, NULL at the bound or without memory */
static struct iw_held *add(struct iw_qp *qp, enum kind kind, size_t len)
{
    size_t size = sizeof(struct iw_held) + len;
    assert_held(&qp->rx_lock);
    atomic_store(&qp->starved, true);
    struct iw_held *h = within_bound(qp, size) ? calloc(1, size) : NULL;
    if (!h)
        return NULL;
    h->kind = kind;
    h->size = size;
    if (qp->held_tail)
        qp->held_tail->next = h;
    else
        qp->held_head = h;
    qp->held_tail = h;
    qp->held_bytes += size;
    return h;
}

int iw_held_segment(struct iw_qp *qp, const struct ddp_seg *seg)
{
    struct iw_held *h = add(qp, SEGMENT, seg->len);
    if (!h)
        return IWC_HOLD;
    h->seg = *seg;
    h->seg.payload = h->bytes;
    h->seg.hdr = NULL;
    if (seg->len)
        memcpy(h->bytes, seg->payload, seg->len);
    return iw_held_replay(qp);
}

int iw_held_immediate(struct iw_qp *qp, const struct iw_immediate *imm)
{
    struct iw_held *h = add(qp, IMMEDIATE, 0);
    if (!h)
        return IWC_HOLD;
    h->imm = *imm;
    return iw_held_replay(qp);
}

int iw_held_read(struct iw_qp *qp, const struct rdmap_read_request *r)
{
    struct iw_held *h = add(qp, READ, 0);
    if (!h)
        return IWC_HOLD;
    h->read = *r;
    return iw_held_replay(qp);
}

int iw_held_atomic(struct iw_qp *qp, const struct rdmap_atomic_request *r)
{
    struct iw_held *h = add(qp, ATOMIC, 0);
    if (!h)
        return IWC_HOLD;
    h->atomic = *r;
    return iw_held_replay(qp);
}

static int offer(struct iw_qp *qp, const struct iw_held *h)
{
    switch (h->kind) {
    case SEGMENT:
        return iw_recv_place(qp, &h->seg);
    case IMMEDIATE:
        return iw_recv_immediate(qp, &h->imm);
    case READ:
        return iw_answer_read(qp, &h->read);
    case ATOMIC:
        return iw_answer_atomic(qp, &h->atomic);
    }
    return IW_ERR_RDMAP_LOCAL;
}

static void pop(struct iw_qp *qp)
{
    struct iw_held *h = qp->held_head;
    qp->held_head = h->next;
    if (!h->next)
        qp->held_tail = NULL;
    qp->held_bytes -= h->size;
    free(h);
}

int iw_held_replay(struct iw_qp *qp)
{
    assert_held(&qp->rx_lock);
    while (qp->held_head) {
        int r = offer(qp, qp->held_head);
        if (r == IWC_HOLD && iw_rq_wait(qp))
            continue;
        if (r == IWC_HOLD)
            return IW_OK;
        pop(qp);
        if (r)
            return r;
    }
    if (!qp->paused)
        atomic_store(&qp->starved, false);
    return IW_OK;
}

void iw_held_drop(struct iw_qp *qp)
{
    while (qp->held_head)
        pop(qp);
    iw_rq_leave(qp);
}

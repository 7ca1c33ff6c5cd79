/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_stall.h"

#include "conn/stream_tls.h"

#include "qp/end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES   (64u * 1024)
#define BOUND         (16u * 1024 * 1024) /* bytes a connection: more than TCP's buffers hold */
#define BOUND_PROCESS (64u * 1024 * 1024)
#define BLOCKS_A_PASS 64

struct iw_stall_block {
    struct iw_stall_block *next;
    uint32_t from, to; /* of bytes[] */
    uint8_t bytes[BLOCK_BYTES];
};

/** Bytes in all blocks of the process, used or not. */
static atomic_size_t all;

void iw_stall_paused(struct iw_qp *qp)
{
    struct iw_stall *s = &qp->rx.stall;
    assert_held(&qp->rx.lock);
    if (!s->since) {
        s->since = iw_now();
        s->takes_in = false;
    }
    if (s->timed || s->takes_in)
        return;
    s->timed = true;
    iw_qp_note_news(qp, IW_QP_NEWS_STALLS, &qp->rx.wakes);
}

bool iw_stall_due(struct iw_qp *qp)
{
    struct iw_stall *s = &qp->rx.stall;
    assert_held(&qp->rx.lock);
    s->timed = false;
    if (!s->since || qp->fin_known)
        return false;
    s->takes_in = iw_now() - s->since >= IW_STALL_MS * 1000000ull / 2; /* of an older timer */
    if (!s->takes_in && qp->rx.paused)
        iw_stall_paused(qp);
    return s->takes_in;
}

/** Room behind the last byte. @return NULL at a bound, or if there is no memory */
static struct iw_stall_block *room(struct iw_stall *s)
{
    if (s->tail && s->tail->to <= BLOCK_BYTES - IWC_TLS_ROOM) /* a whole record fits */
        return s->tail;
    if (s->blocks == BOUND / BLOCK_BYTES)
        return NULL;
    struct iw_stall_block *b = NULL;
    if (atomic_fetch_add(&all, BLOCK_BYTES) < BOUND_PROCESS)
        b = malloc(sizeof(*b));
    if (!b) {
        atomic_fetch_sub(&all, BLOCK_BYTES);
        return NULL;
    }
    b->next = NULL;
    b->from = b->to = 0;
    if (s->tail)
        s->tail->next = b;
    else
        s->head = b;
    s->tail = b;
    s->blocks++;
    return b;
}

static void free_first(struct iw_stall *s)
{
    struct iw_stall_block *b = s->head;
    s->head = b->next;
    if (!b->next)
        s->tail = NULL;
    s->blocks--;
    free(b);
    atomic_fetch_sub(&all, BLOCK_BYTES);
}

ssize_t iw_stall_take_in(struct iw_qp *qp)
{
    struct iw_stall *s = &qp->rx.stall;
    ssize_t n = 0;
    assert_held(&qp->rx.lock);
    for (int i = 0; i < BLOCKS_A_PASS; i++) {
        struct iw_stall_block *b = room(s);
        if (!b)
            return -ENOBUFS;
        n = qp->stream->ops->recv(qp->stream, b->bytes + b->to, BLOCK_BYTES - b->to);
        if (n <= 0)
            break;
        b->to += (uint32_t)n;
        s->bytes += (uint32_t)n;
    }
    if (s->tail && s->tail->to == 0 && s->tail == s->head)
        free_first(s);
    return n;
}

uint32_t iw_stall_give(struct iw_qp_rx *rx, uint8_t *p, uint32_t space)
{
    struct iw_stall *s = &rx->stall;
    uint32_t given = 0;
    assert_held(&rx->lock);
    while (s->head && given < space) {
        struct iw_stall_block *b = s->head;
        uint32_t n = b->to - b->from < space - given ? b->to - b->from : space - given;
        memcpy(p + given, b->bytes + b->from, n);
        b->from += n;
        given += n;
        if (b->from == b->to)
            free_first(s);
    }
    s->bytes -= given;
    return given;
}

void iw_stall_drop(struct iw_qp_rx *rx)
{
    while (rx->stall.head)
        free_first(&rx->stall);
    rx->stall.bytes = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP has taken is complete before what came in afterwards over the same connection is shown.
 *
 * A work request completes when the thread that gave it to TCP is back from there, and sees what
 * was taken. By then another thread may have received what the peer answered. A program that finds
 * the answer, and not the completion of what was asked, takes that for an error. So a receive waits
 * with its completion for who is on the way back: only then, for what was sent before its bytes had
 * come in and not for what follows, and at most 1 s, should that thread be held up.
 *
 * So it stands first in a CQ for both, and is there to be polled when the receive of another CQ is.
 * Events are queued with completions (cq/cq.h), so that those of two CQs on one channel are in
 * order, too. Reads and atomics need nothing: they complete under tx.lock, behind what was sent
 * before. Not meant are other connections, and a peer's Write that a program finds by looking at
 * memory.
 *
 * A QP without two threads at it pays for this with two stores a transmission and one load a
 * recv().
 */
#ifndef ANYWARP_QP_TX_TAKEN_H
#define ANYWARP_QP_TX_TAKEN_H

#include <stdatomic.h>
#include <stdbool.h>

struct iw_sent {
    /* Odd while a thread gives bytes to TCP and completes what it took; changed under tx.lock. */
    atomic_uint turns;
    unsigned came_in; /* what it was when the last bytes had come in; under rx.lock */
};

/**
 * Bytes are going to TCP. tx.lock. It needs no order of its own: whoever receives the answer to
 * those bytes is behind the kernel's locks at the socket, through which they went.
 */
static inline void iw_sent_begin(struct iw_sent *s)
{
    unsigned turns = atomic_load_explicit(&s->turns, memory_order_relaxed);
    atomic_store_explicit(&s->turns, turns + 1, memory_order_relaxed);
}

/** What TCP took is completed. tx.lock. */
static inline void iw_sent_end(struct iw_sent *s)
{
    unsigned turns = atomic_load_explicit(&s->turns, memory_order_relaxed);
    atomic_store_explicit(&s->turns, turns + 1, memory_order_release);
}

/** Bytes have come in. rx.lock. */
static inline void iw_sent_note(struct iw_sent *s)
{
    s->came_in = atomic_load_explicit(&s->turns, memory_order_acquire);
}

/** Waits while the turn goes on in which the last bytes came in. */
void iw_sent_wait(struct iw_sent *s);

/** Before a completion that tells of those bytes is added. rx.lock, and not tx.lock. */
static inline void iw_sent_before(struct iw_sent *s)
{
    if (s->came_in & 1)
        iw_sent_wait(s);
}

#endif

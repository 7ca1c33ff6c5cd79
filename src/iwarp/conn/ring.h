/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bytes in memory that two processes share: one produces, one consumes. No I/O, no
 * allocation, no locks. The data is mapped twice in a row, so that no stretch of it wraps.
 *
 * Each side keeps its own counter to itself and never reads it back; what the other side says is
 * checked whenever it is read, and a lie is -EPROTO. Bytes that are there may change while they are
 * looked at: who judges them copies them first. A side that lies, or scribbles, harms what it sends
 * and receives, and nothing else.
 *
 * Who sleeps is rung for. The consumer arms the ring, then looks once more; the producer publishes,
 * then asks whether the ring is armed. The same with a producer that wants room. Of each pair the
 * two steps are in the order of all sequentially consistent accesses, so that one of the two sides
 * sees the other; tests/model/ring.pml walks through them.
 */
#ifndef ANYWARP_CONN_RING_H
#define ANYWARP_CONN_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IWC_RING_LINE 128 /* what processors fetch at a time, at most */

/** In shared memory, zeroed at first: armed, and empty. */
struct iwc_ring_ctl {
    _Alignas(IWC_RING_LINE) _Atomic uint64_t head; /* bytes ever published; the producer's */
    _Alignas(IWC_RING_LINE) _Atomic uint64_t tail; /* bytes ever used; the consumer's */
    /* Read at each step, and seldom changed: away from what changes at each. */
    _Alignas(IWC_RING_LINE) _Atomic uint32_t awake; /* the consumer looks by itself; 0: armed */
    _Atomic uint32_t wants_room;                    /* the producer is to be rung for */
};

/** What one side knows of a ring. Single owner, but for iwc_ring_arm(). */
struct iwc_ring {
    struct iwc_ring_ctl *ctl;
    uint8_t *data;        /* size bytes, twice */
    size_t size;          /* a power of two */
    _Atomic uint64_t own; /* this side's counter */
    uint64_t other;       /* the other's, when it was last read */
    uint64_t relieved;    /* the consumer's counter, when it last asked whether to ring */
};

/** @param ctl  of a new ring */
void iwc_ring_init(struct iwc_ring *r, struct iwc_ring_ctl *ctl, uint8_t *data, size_t size);

/** What this side has moved, ever. Its owner. */
static inline uint64_t iwc_ring_moved(const struct iwc_ring *r)
{
    return atomic_load_explicit(&r->own, memory_order_relaxed);
}

/* ---- the producer ---- */

/**
 * Room behind what is published.
 * @param enough  the other side's counter is read if less is known of
 * @return bytes, or -EPROTO
 */
ssize_t iwc_ring_room(struct iwc_ring *r, size_t enough);

/** Where the next bytes go. */
uint8_t *iwc_ring_place(const struct iwc_ring *r);

/** Publishes the next @p n bytes, for which there is room. */
void iwc_ring_publish(struct iwc_ring *r, size_t n);

/** Behind publishing: whether the consumer has to be rung for, by this caller. */
bool iwc_ring_rouses(struct iwc_ring *r);

/** Has the consumer ring when there is room. @return false if there is some now, or a lie */
bool iwc_ring_want_room(struct iwc_ring *r);

/* ---- the consumer ---- */

/** The bytes that are there. @param p  [out] the first @return how many, or -EPROTO */
ssize_t iwc_ring_look(struct iwc_ring *r, const uint8_t **p);

/** Whether nothing seems to be there. Any thread, at any time; whoever used the last byte was at it
 * before. */
bool iwc_ring_is_empty(const struct iwc_ring *r);

/** Gives up the first @p n bytes of those. */
void iwc_ring_use(struct iwc_ring *r, size_t n);

/**
 * Behind that: whether the producer has to be rung for, by this caller. It waits with a full ring
 * only: asked once for each quarter that was used, the ring is half empty at most by then.
 */
bool iwc_ring_relieves(struct iwc_ring *r);

/**
 * Asks to be rung for when something is published. Any thread, at any time.
 * @return false if something is there already: the caller has to look, and is not rung for
 */
bool iwc_ring_arm(struct iwc_ring *r);

#endif

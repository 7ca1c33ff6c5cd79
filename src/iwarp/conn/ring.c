/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/ring.h"

#include <errno.h>

void iwc_ring_init(struct iwc_ring *r, struct iwc_ring_ctl *ctl, uint8_t *data, size_t size)
{
    r->ctl = ctl;
    r->data = data;
    r->size = size;
    atomic_init(&r->own, 0);
    r->other = 0;
    r->relieved = 0;
}

static void add(struct iwc_ring *r, size_t n)
{
    atomic_store_explicit(&r->own, iwc_ring_moved(r) + n, memory_order_release);
}

static uint8_t *at(const struct iwc_ring *r)
{
    return r->data + (iwc_ring_moved(r) & (r->size - 1));
}

/* ---- the producer ---- */

ssize_t iwc_ring_room(struct iwc_ring *r, size_t enough)
{
    uint64_t used = iwc_ring_moved(r) - r->other;
    if (r->size - used < enough) {
        uint64_t tail = atomic_load_explicit(&r->ctl->tail, memory_order_acquire);
        if (iwc_ring_moved(r) - tail > used)
            return -EPROTO;
        r->other = tail;
        used = iwc_ring_moved(r) - tail;
    }
    return (ssize_t)(r->size - used);
}

uint8_t *iwc_ring_place(const struct iwc_ring *r)
{
    return at(r);
}

void iwc_ring_publish(struct iwc_ring *r, size_t n)
{
    add(r, n);
    atomic_store_explicit(&r->ctl->head, iwc_ring_moved(r), memory_order_release);
}

bool iwc_ring_rouses(struct iwc_ring *r)
{
    atomic_thread_fence(memory_order_seq_cst);
    return !atomic_load_explicit(&r->ctl->awake, memory_order_relaxed) &&
           !atomic_exchange(&r->ctl->awake, 1);
}

bool iwc_ring_want_room(struct iwc_ring *r)
{
    atomic_store(&r->ctl->wants_room, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (iwc_ring_room(r, 1) == 0)
        return true;
    atomic_store(&r->ctl->wants_room, 0);
    return false;
}

/* ---- the consumer ---- */

ssize_t iwc_ring_look(struct iwc_ring *r, const uint8_t **p)
{
    uint64_t head = atomic_load_explicit(&r->ctl->head, memory_order_acquire),
             there = head - iwc_ring_moved(r);
    if (there > r->size || there < r->other - iwc_ring_moved(r))
        return -EPROTO;
    r->other = head;
    *p = at(r);
    return (ssize_t)there;
}

bool iwc_ring_is_empty(const struct iwc_ring *r)
{
    return atomic_load_explicit(&r->ctl->head, memory_order_acquire) ==
           atomic_load_explicit(&r->own, memory_order_acquire);
}

void iwc_ring_use(struct iwc_ring *r, size_t n)
{
    add(r, n);
    atomic_store_explicit(&r->ctl->tail, iwc_ring_moved(r), memory_order_release);
}

bool iwc_ring_relieves(struct iwc_ring *r)
{
    if (iwc_ring_moved(r) - r->relieved < r->size / 4)
        return false;
    r->relieved = iwc_ring_moved(r);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&r->ctl->wants_room, memory_order_relaxed) &&
           r->other - iwc_ring_moved(r) <= r->size / 2 && atomic_exchange(&r->ctl->wants_room, 0);
}

bool iwc_ring_arm(struct iwc_ring *r)
{
    atomic_store(&r->ctl->awake, 0);
    atomic_thread_fence(memory_order_seq_cst);
    /* What another thread uses just now is there or not: both are right. */
    if (iwc_ring_is_empty(r))
        return true;
    atomic_store(&r->ctl->awake, 1);
    return false;
}

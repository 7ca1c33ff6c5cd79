/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lingering: whether the engine's thread looks on for a moment before it sleeps. A pure policy; the
 * engine has the clock.
 *
 * A packet that wakes a thread costs its sender and the thread more time than a hundred small
 * messages do. A peer that posts so many, waits until this thread has acknowledged them, and posts
 * the next, pays that for each hundred; so the thread looks on after such an occasion. That is
 * right where more comes soon. After a moment in vain some occasions are left out, each time twice
 * as many: a peer that sends now and then, or cannot send because this thread has its processor,
 * costs next to nothing.
 */
#ifndef ANYWARP_ENGINE_LINGER_H
#define ANYWARP_ENGINE_LINGER_H

#include <stdbool.h>
#include <stdint.h>

/* ---- thresholds ---- */

#define IW_LINGER_US       50   /* a moment, at most: 64 bytes at depth 128 twice as fast */
#define IW_LINGER_REST_MAX 1023 /* occasions left out: a moment in vain is then 50 ns of each */

/* ---- the decision ---- */

struct iw_linger {
    unsigned us;   /* a moment; 0: none */
    uint32_t rest; /* occasions that are left out from now on */
    uint32_t next; /* and how many after the next moment in vain */
};

/** @param us  what a thread may look on, of which IW_LINGER_US are taken
 *  @param processors  of the machine: on one, nothing comes while the thread looks */
void iw_linger_init(struct iw_linger *l, unsigned us, long processors);

/** There is an occasion. @return whether to look on for l->us; then iw_linger_end() follows */
bool iw_linger_begin(struct iw_linger *l);
/** @param found  something came in that moment, which is over */
void iw_linger_end(struct iw_linger *l, bool found);

#endif

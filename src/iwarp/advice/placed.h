/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where bytes of peers were placed lately, and what a buffer looks like: by both together a change
 * that the program made is told from one that it asked for.
 */
#ifndef ANYWARP_ADVICE_PLACED_H
#define ANYWARP_ADVICE_PLACED_H

#include "advice/advice.h"

#include <stddef.h>
#include <stdint.h>

extern bool iw_placed_watched; /* set once, before there is a connection */

/** Counts, page by page, that bytes are placed. Any lock. */
void iw_placed_count(const void *at, size_t len);

/** Before bytes are placed: nothing where nobody looks. */
static inline void iw_placed(const void *at, size_t len)
{
    if (__builtin_expect(iw_placed_watched, 0))
        iw_placed_count(at, len);
}

struct iw_sample {
    uint64_t bytes;  /* a sum of them; of large buffers some */
    uint64_t placed; /* how often something was placed in these pages, and others */
    bool readable;
};

/** Takes a sample of @p len bytes, which may be unmapped. */
struct iw_sample iw_sample(const void *at, size_t len);

/** Whether they are others now, and nothing was placed there meanwhile. */
bool iw_sample_changed(const struct iw_sample *before, const void *at, size_t len);

#endif

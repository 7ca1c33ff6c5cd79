/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only arithmetic on lengths and offsets that a peer chose. Every function is total: no
 * combination of arguments overflows.
 */
#ifndef ANYWARP_WIRE_RANGE_H
#define ANYWARP_WIRE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/** Whether start + len wraps past 2^64. A range that ends exactly at 2^64 does not. */
static inline bool range_wraps(uint64_t start, uint64_t len)
{
    return len != 0 && start + (len - 1) < start;
}

/** Whether [start, start+len) lies inside [base, base+size). */
static inline bool range_inside(uint64_t base, uint64_t size, uint64_t start, uint64_t len)
{
    return start >= base && start - base <= size && len <= size - (start - base);
}

/** Whether @p have bytes plus @p more still fit into @p limit. */
static inline bool range_fits(uint64_t limit, uint64_t have, uint64_t more)
{
    return have <= limit && more <= limit - have;
}

/** @p total - @p part where part must not be larger; false and *@p rest untouched if it is. */
static inline bool range_rest(uint64_t total, uint64_t part, uint64_t *rest)
{
    if (part > total)
        return false;
    *rest = total - part;
    return true;
}

#endif

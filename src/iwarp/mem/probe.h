/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory can be accessed, found out without touching its content.
 *
 * Up to 64 KB the pages are populated (0.6 us a page, 2.5 us for 64 KB, measured): whoever
 * registers so little is about to use it. Larger ranges, kernels before 5.14, what stands in for a
 * kernel and only says that it has populated, and mappings that cannot be populated are looked up,
 * mapping by mapping of the range, with PROCMAP_QUERY (Linux 6.11; 5 us, measured). Without that
 * call, or without /proc, holes are found, and rights at both ends and at a few places between
 * them.
 *
 * None of this takes longer when the process has many mappings.
 */
#ifndef ANYWARP_MEM_PROBE_H
#define ANYWARP_MEM_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/** @p len is not 0 and the range does not wrap. @return 0 or EFAULT */
int iw_probe(const void *addr, size_t len, bool write);

/** As iw_probe() does without PROCMAP_QUERY, and without populating. */
int iw_probe_places(const void *addr, size_t len, bool write);

/** Whether the byte at @p addr cannot be read now, though it may be mapped. Slow. */
bool iw_probe_gone(const void *addr);

/** Whether some of it is not mapped at all. */
bool iw_probe_hole(const void *addr, size_t len);

/** Brings memory in, whatever its size, for reading or for writing. @return 0 or EFAULT */
int iw_prefetch(const void *addr, size_t len, bool write);

#endif

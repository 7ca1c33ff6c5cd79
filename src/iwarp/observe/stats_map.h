/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the statistics and the file that it may be: stats.c's other half. The calls are
 * serialised by stats.c; counters may be written meanwhile, and those of the moment in which memory
 * becomes a file's may be lost.
 */
#ifndef ANYWARP_OBSERVE_STATS_MAP_H
#define ANYWARP_OBSERVE_STATS_MAP_H

#include "observe/stats_page.h"

#include <stdbool.h>

/** Zeros at first; always at the same address. */
struct stats_page *iw_stats_page(void);

/** Whether no file was tried in this process yet. */
bool iw_stats_map_wanted(void);

/** Makes a file of the part with the first @p qps rows; removes old files of others. */
void iw_stats_map_open(size_t qps);

/** Makes the file, if there is one, longer if it does not hold @p qps rows. */
void iw_stats_map_grow(size_t qps);

/** In a forked child: the memory is its own, and no file's. */
void iw_stats_map_leave(void);

#endif

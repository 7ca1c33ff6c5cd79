/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs of "anywarp chaos": a first line with the seed, then one for each fault. */
#ifndef ANYWARP_TOOLS_CHAOS_H
#define ANYWARP_TOOLS_CHAOS_H

#include <inttypes.h>
#include <stdint.h>

#define CHAOS_HEAD "# anywarp chaos, seed "

/** The seed that stands in a log; ends the process if it is none. */
uint64_t chaos_seed_of(const char *path);

#endif

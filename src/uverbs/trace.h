/* SPDX-License-Identifier: BSD-2-Clause */
/* ANYWARP_UVERBS_TRACE=FILE: a line for each command. */
#ifndef ANYWARP_UVERBS_TRACE_H
#define ANYWARP_UVERBS_TRACE_H

#include <stdint.h>
#include <sys/types.h>

/** "name in/out result"; @p result is a length or a negative errno. Costs a load if nothing traces.
 */
void uv_trace(const char *name, unsigned in, unsigned out, ssize_t result);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the control groups of this process, those of version 2 or 1, let it have. */
#ifndef ANYWARP_ENV_CGROUP_H
#define ANYWARP_ENV_CGROUP_H

#include <stdint.h>

/**
 * The lowest of the limits of memory from its own group up to the highest that it sees.
 * @param root  "", or the folder where a test has another /proc and what is mounted
 * @return bytes; UINT64_MAX: there is no limit, or it cannot be read
 */
uint64_t iw_cgroup_memory(const char *root);

#endif

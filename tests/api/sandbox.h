/* SPDX-License-Identifier: BSD-2-Clause */
/* A sandbox that refuses a system call, by a filter. */
#ifndef ANYWARP_TESTS_API_SANDBOX_H
#define ANYWARP_TESTS_API_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_ANY UINT32_MAX

/**
 * From here on, in this thread and those that it makes.
 * @param family  of sockets, the first argument of the call; SANDBOX_ANY: the call as a whole
 * @return false if there is no such filter here
 */
bool sandbox_refuse(uint32_t call, uint32_t family, int error);

#endif

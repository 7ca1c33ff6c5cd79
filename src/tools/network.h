/* SPDX-License-Identifier: BSD-2-Clause */
/* A network of one's own: a namespace with nothing but loopback, whose ports nobody else has. */
#ifndef ANYWARP_TOOLS_NETWORK_H
#define ANYWARP_TOOLS_NETWORK_H

#include <stdbool.h>

/**
 * Moves the process, which has one thread, into a new network; users and groups stay what they are.
 * @return false: it may not; then it is good for nothing but _exit()
 */
bool network_own(void);

/** Whether a process may do that here. */
bool network_may(void);

#endif

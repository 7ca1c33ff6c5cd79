/* SPDX-License-Identifier: BSD-2-Clause */
/* "anywarp run --like": adapters that the device can be held to. */
#ifndef ANYWARP_TOOLS_LIKE_H
#define ANYWARP_TOOLS_LIKE_H

/** Prints the adapters, their limits, and where these are from. @return the exit status */
int like_list(void);

/** Has the program's libraries refuse, and say, what the adapter of this name would refuse; ends
 * the process if there is none. */
void like_set(const char *name);

#endif

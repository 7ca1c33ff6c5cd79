/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_INET_H
#define KVERBS_LINUX_INET_H

#include <linux/in.h>

__be32 in_aton(const char *s);

/** Reads an address of `len` bytes (-1: to the end) or up to `delim`; @return 1, or 0: it is none
 */
int in4_pton(const char *s, int len, u8 *to, int delim, const char **end);
int in6_pton(const char *s, int len, u8 *to, int delim, const char **end);

#endif

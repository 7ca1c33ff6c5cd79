/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_RANDOM_H
#define KVERBS_LINUX_RANDOM_H

#include <linux/types.h>

void get_random_bytes(void *to, int n);
u32 get_random_u32(void);
#define prandom_u32()    get_random_u32()
#define get_random_int() get_random_u32()

#endif

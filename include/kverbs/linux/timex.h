/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_TIMEX_H
#define KVERBS_LINUX_TIMEX_H

#include <linux/types.h>

typedef u64 cycles_t;

/** Nanoseconds of the monotonic clock. */
cycles_t get_cycles(void);

#endif

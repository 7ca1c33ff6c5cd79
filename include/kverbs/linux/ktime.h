/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_KTIME_H
#define KVERBS_LINUX_KTIME_H

#include <linux/types.h>

typedef s64 ktime_t; /* nanoseconds */

ktime_t ktime_get(void);
time64_t ktime_get_seconds(void);

#define ktime_sub(a, b)      ((a) - (b))
#define ktime_add(a, b)      ((a) + (b))
#define ktime_to_ns(t)       ((s64)(t))
#define ktime_to_us(t)       ((s64)(t) / 1000)
#define ktime_to_ms(t)       ((s64)(t) / 1000000)
#define ktime_us_delta(a, b) ktime_to_us(ktime_sub(a, b))

#endif

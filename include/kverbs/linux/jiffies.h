/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_JIFFIES_H
#define KVERBS_LINUX_JIFFIES_H

#include <linux/types.h>

/* A jiffy is a millisecond. */
#undef HZ
#define HZ                   1000
#define MAX_SCHEDULE_TIMEOUT ((long)(~0UL >> 1))

unsigned long kverbs_jiffies(void);
#define jiffies kverbs_jiffies()

#define msecs_to_jiffies(m)  ((unsigned long)(m))
#define jiffies_to_msecs(j)  ((unsigned)(j))
#define usecs_to_jiffies(u)  (((unsigned long)(u) + 999) / 1000)
#define time_after(a, b)     ((long)((b) - (a)) < 0)
#define time_before(a, b)    time_after(b, a)
#define time_after_eq(a, b)  ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)

#endif

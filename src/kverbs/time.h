/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's clock for libc's. */
#ifndef KVERBS_TIME_H
#define KVERBS_TIME_H

#include <time.h>

/** When so many jiffies are over, for pthread_cond_timedwait() with a condition of default kind. */
struct timespec kv_deadline(long left);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_TIME_H
#define KVERBS_LINUX_TIME_H

#include <sys/time.h>
#include <time.h>

#include <linux/ktime.h>

void do_gettimeofday(struct timeval *tv);
unsigned long get_seconds(void);

#endif

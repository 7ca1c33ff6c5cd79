/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SCHED_SIGNAL_H
#define KVERBS_LINUX_SCHED_SIGNAL_H

#include <signal.h>

#include <linux/sched.h>

#endif

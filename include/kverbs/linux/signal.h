/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SIGNAL_H
#define KVERBS_LINUX_SIGNAL_H

#include <linux/sched/signal.h>

#endif

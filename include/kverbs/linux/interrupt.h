/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_INTERRUPT_H
#define KVERBS_LINUX_INTERRUPT_H

#include <linux/kernel.h>

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_DELAY_H
#define KVERBS_LINUX_DELAY_H

#include <linux/types.h>

void msleep(unsigned ms);
unsigned long msleep_interruptible(unsigned ms);
void usleep_range(unsigned long least, unsigned long most);
void udelay(unsigned long us);
#define mdelay(ms) udelay((ms)*1000UL)

#endif

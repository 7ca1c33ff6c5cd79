/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_IN6_H
#define KVERBS_LINUX_IN6_H

#include <linux/in.h>

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_IN_H
#define KVERBS_LINUX_IN_H

#include <netinet/in.h>

#include <linux/kernel.h>

#endif

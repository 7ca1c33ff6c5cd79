/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_REFCOUNT_H
#define KVERBS_LINUX_REFCOUNT_H

#include <linux/kref.h>

#endif

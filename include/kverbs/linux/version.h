/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_VERSION_H
#define KVERBS_LINUX_VERSION_H

/* What the interface is like. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE      KERNEL_VERSION(4, 14, 0)
#define UTS_RELEASE             "4.14.0"

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_ERRNO_H
#define KVERBS_LINUX_ERRNO_H

#include_next <linux/errno.h>

/* Of the kernel alone. */
#define ERESTARTSYS  512
#define ENOIOCTLCMD  515
#define EPROBE_DEFER 517
#define ENOTSUPP     524

#endif

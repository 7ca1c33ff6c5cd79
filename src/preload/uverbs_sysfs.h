/* SPDX-License-Identifier: BSD-2-Clause */
/* What libibverbs and librdmacm look for in /sys, for our devices. */
#ifndef ANYWARP_PRELOAD_UVERBS_SYSFS_H
#define ANYWARP_PRELOAD_UVERBS_SYSFS_H

/** The numbers of the character devices, as Linux has them. */
enum { UVERBS_MAJOR = 231, UVERBS_MINOR = 192 };

/**
 * Makes the folder, unless it is there; its name comes from its contents.
 *
 * @return its path, or NULL and errno; for the life of the process
 */
const char *uverbs_sysfs(void);

#endif

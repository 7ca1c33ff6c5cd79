/* SPDX-License-Identifier: BSD-2-Clause */
/* What libibverbs and librdmacm look for in /sys, for our devices. */
#ifndef ANYWARP_PRELOAD_UVERBS_SYSFS_H
#define ANYWARP_PRELOAD_UVERBS_SYSFS_H

#include <stdbool.h>

/** The numbers of the character devices, as Linux has them. */
enum { UVERBS_MAJOR = 231, UVERBS_MINOR = 192 };

/** Whether this is the path of a file below the folder whose contents come and go with addresses.
 */
bool uverbs_sysfs_changes(const char *path);

/** Opens such a file, as it is now. @return a descriptor with O_CLOEXEC, or -1 and errno */
int uverbs_sysfs_open(const char *path);

/**
 * Makes the folder, or what of it is not there; its name comes from its contents.
 *
 * @return its path, for the life of the process; or NULL, and said why on standard error
 */
const char *uverbs_sysfs(void);

#endif

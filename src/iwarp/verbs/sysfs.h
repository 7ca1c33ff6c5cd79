/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading small attribute files, for programs that ask the library to. */
#ifndef ANYWARP_VERBS_SYSFS_H
#define ANYWARP_VERBS_SYSFS_H

#include <stddef.h>

/** "/sys", or what SYSFS_PATH says, without slashes behind. */
const char *ibv_get_sysfs_path(void);

/**
 * The first @p size bytes of dir/file, without the newline at the end; terminated if there is room.
 * @return how many, or -1 and errno
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#endif

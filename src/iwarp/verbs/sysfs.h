/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading small attribute files, for programs that ask the library to. */
#ifndef ANYWARP_VERBS_SYSFS_H
#define ANYWARP_VERBS_SYSFS_H

#include <stddef.h>

/** "/sys", or what SYSFS_PATH says, without slashes behind. */
const char *ibv_get_sysfs_path(void);

/**
 * The bytes of dir/file without the newline at the end, terminated with a zero.
 * @return how many; 0 of an empty file, with nothing written; or -1 and errno: ENOSPC if neither
 * newline nor zero fitted
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#endif

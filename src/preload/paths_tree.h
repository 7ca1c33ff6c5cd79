/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths are of our devices, and what stands for them. */
#ifndef ANYWARP_PRELOAD_PATHS_TREE_H
#define ANYWARP_PRELOAD_PATHS_TREE_H

enum { PATHS_ROOM = 1024 };

/**
 * What to hand to libc in place of a path. The names below /sys/class/infiniband,
 * /sys/class/infiniband_verbs and /dev/infiniband that the machine does not have and our devices
 * do, and these three folders, have another; the first of them makes the folder of
 * preload/uverbs_sysfs.h. In a child of vfork() nothing is made. Async-signal-safe for all other
 * paths. errno stays.
 *
 * @param path  absolute, else it is never ours; or NULL
 * @param room  where the other path is put
 * @return @p path itself: it is not ours
 */
const char *paths_map(const char *path, char room[PATHS_ROOM]);

/** The number of the device whose node in /dev this is, or -1. */
int paths_node(const char *path);

/** As open(), of a path that paths_map() has changed; for reading. */
int paths_open(const char *path, const char *mapped, int flags);

#endif

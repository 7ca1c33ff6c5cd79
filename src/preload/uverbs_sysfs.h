/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder that describes our devices as /sys does, for who looks for them there. */
#ifndef ANYWARP_PRELOAD_UVERBS_SYSFS_H
#define ANYWARP_PRELOAD_UVERBS_SYSFS_H

#include <stdbool.h>

/** The numbers of the character devices, as Linux has them. */
enum { UVERBS_MAJOR = 231, UVERBS_MINOR = 192 };

enum sysfs_reader {
    /* The system's libibverbs, which finds these devices alone, uverbs0 and so on, and is told of a
     * provider. What comes and goes is in no file. */
    SYSFS_LIBRARY,
    /* Programs beside our libibverbs, by the names that it gives: in class/infiniband and
     * class/infiniband_verbs, and in dev/infiniband, where the nodes are links to /dev/null. What
     * the machine has there is linked to; what comes and goes is in files as it was. */
    SYSFS_PROGRAMS,
};

/** Whether this is the path of a file below the folder whose contents come and go with addresses
 * and links. */
bool uverbs_sysfs_changes(const char *path);

/** Opens such a file, as it is now. @return a descriptor with O_CLOEXEC, or -1 and errno */
int uverbs_sysfs_open(const char *path);

/**
 * Makes the folder, or what of it is not there; its name comes from its contents. For one reader in
 * a process; several threads at a time may ask.
 *
 * @return its path, for the life of the process; or NULL, and said why on standard error
 */
const char *uverbs_sysfs(enum sysfs_reader reader);

#endif

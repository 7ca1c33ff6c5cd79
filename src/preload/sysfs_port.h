/* SPDX-License-Identifier: BSD-2-Clause */
/* The files below a device's ports/1 in sysfs whose contents come and go, with addresses and links.
 */
#ifndef ANYWARP_PRELOAD_SYSFS_PORT_H
#define ANYWARP_PRELOAD_SYSFS_PORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { SYSFS_LINE = 64 };

/** In groups of four digits, as Linux shows GUIDs and GIDs; at most 8 @p words of two bytes. */
void sysfs_words(char line[SYSFS_LINE], const uint8_t *bytes, int words);

/**
 * What a path below the device's folder names.
 * @param path   as "ports/1/gids/0"
 * @param file   [out] "gids", "types", "ndevs", of which there is one for each entry of the GID
 *               table, or "state", "phys_state", "rate"
 * @return the number of the entry, or 0; -1: it names none of these
 */
int sysfs_port_file(const char *path, char file[16]);

/** What such a file holds now, without a newline; of an entry that is empty, or gone, zeros. */
void sysfs_port_line(struct ibv_context *context, const char *file, int index,
                     char line[SYSFS_LINE]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the files of statistics are and which process each is of. A file's name says that:
 * PID-START-NAMESPACE, so that a number that is used again is not taken for the old process.
 */
#ifndef ANYWARP_OBSERVE_STATS_FILE_H
#define ANYWARP_OBSERVE_STATS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STATS_NAME_MAX 64
#define STATS_PATH_MAX 512
#define STATS_KEEP     16 /* files of processes that were killed, or had errors */

/**
 * The directories in the order of preference: @p knob if that is an absolute path (ANYWARP_STATS),
 * else $XDG_RUNTIME_DIR/anywarp and /dev/shm/anywarp-UID.
 * @param i  0, 1, ...
 * @return false if there are no more
 */
bool stats_dir(const char *knob, unsigned i, char dir[STATS_PATH_MAX]);

/**
 * Opens a directory of this user that nobody else may enter. What is done in it is done through the
 * descriptor: the path may lead elsewhere the next time.
 * @return a descriptor, or a negative errno: -EPERM if it is another's, or open to others
 */
int stats_dir_open(const char *dir);

struct stats_owner {
    uint32_t pid;
    uint64_t start; /* ticks after boot, 0: unknown */
    uint64_t ns;    /* inode of its PID namespace, 0: unknown */
};

/** This process. */
struct stats_owner stats_self(void);
void stats_name(char name[STATS_NAME_MAX], const struct stats_owner *o);
/** @return false if it is no name of such a file */
bool stats_name_parse(const char *name, struct stats_owner *o);

enum stats_life { STATS_ALIVE, STATS_ENDED, STATS_UNKNOWN /* another PID namespace */ };
enum stats_life stats_life(const struct stats_owner *o);

/**
 * Removes files of ended processes from the directory @p fd, but for the @p keep newest.
 * @return how many
 */
unsigned stats_evict(int fd, unsigned keep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that the user has asked for by name, to be written by this process alone: a capture, a
 * record. Its owner alone can read it. One that was there is written over if it is a regular file
 * of this user with one name; no symbolic link is followed to it.
 */
#ifndef ANYWARP_OBSERVE_OWN_FILE_H
#define ANYWARP_OBSERVE_OWN_FILE_H

#include <stdbool.h>
#include <sys/types.h>

struct iw_own_file {
    int fd; /* -1: not open */
    dev_t dev;
    ino_t ino;
    char path[512];
};

/**
 * Opens it, empty; each %p of the pattern is the number of the process.
 * @return NULL, or why not, with the path set and nothing open
 */
const char *iw_own_file_open(struct iw_own_file *f, const char *pattern);

/** The program may have closed what it does not know, and opened something else. */
bool iw_own_file_is_ours(const struct iw_own_file *f);

/** As much of @p want as the process may write to a file: beyond it a signal would come. */
unsigned long iw_own_file_limit(unsigned long want);

/** Closes it, unless the program has. */
void iw_own_file_close(struct iw_own_file *f);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How many descriptors or threads this process has, before and after. */
#ifndef ANYWARP_TESTS_ENTRIES_H
#define ANYWARP_TESTS_ENTRIES_H

#include <dirent.h>
#include <stdlib.h>

/**
 * Of the folder, "." and ".." among them, and of /proc/self/fd this look at it. Where it cannot be
 * read the test aborts.
 */
static inline int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d)
        abort();
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static inline int descriptors(void)
{
    return entries("/proc/self/fd");
}

#endif

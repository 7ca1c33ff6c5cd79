/* SPDX-License-Identifier: BSD-2-Clause */
/* What the dynamic loader would load for a program, in the words of the loader itself. */
#ifndef ANYWARP_TOOLS_LOADER_H
#define ANYWARP_TOOLS_LOADER_H

#include <stddef.h>

struct loaded {
    char *name; /* as it is asked for */
    char *path;
};

struct loader_list {
    struct loaded *libraries; /* those that have a file */
    size_t n;
    char **missing; /* names of those that it does not find */
    size_t n_missing;
    char *error; /* what the loader says against the program, or NULL */
};

/**
 * Asks the loader to list, in the environment that "anywarp run" makes. The program does not run;
 * a hostile one can crash the loader, which is another process.
 */
void loader_list_init(struct loader_list *l, const char *loader, const char *program);
void loader_list_fini(struct loader_list *l);

#endif

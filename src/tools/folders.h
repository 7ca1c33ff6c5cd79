/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the libraries and programs are: fixed when it is built, or beside the command. */
#ifndef ANYWARP_TOOLS_FOLDERS_H
#define ANYWARP_TOOLS_FOLDERS_H

#include <stdbool.h>

/* Absolute, or relative to the folder of the command, with "../" at the beginning only. paths.c,
 * compiled once for each place. */
extern const char tool_libraries_at[];
extern const char tool_programs_at[];

/** Sets tool_libraries and tool_programs, or ends the process: also if LD_LIBRARY_PATH cannot hold
 * that folder. */
void tool_find_folders(void);

/**
 * Ends the process if a list of paths for the loader cannot hold @p path. There is no quoting.
 * @param separators  what ends a path there
 * @param names       those, in words
 */
void tool_check_folder(const char *path, const char *separators, const char *names);
/** Whether it can. */
bool tool_is_word(const char *path, const char *separators);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A program before it runs: which file it is, and whether the loader would obey LD_LIBRARY_PATH. */
#ifndef ANYWARP_TOOLS_PROGRAM_H
#define ANYWARP_TOOLS_PROGRAM_H

/**
 * The file that the shell would run for @p name, by PATH if it has no slash. Ends the process with
 * the shell's exit status if there is none.
 * @return memory of the caller
 */
char *program_find(const char *name);

/** The file that PATH gives for a name without slash, best an executable one; NULL: none. */
char *program_search(const char *name);

/** @return why the kernel would run it with privileges, as in "is setuid", or NULL */
const char *program_privilege(const char *path);

#endif

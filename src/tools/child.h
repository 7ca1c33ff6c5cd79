/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_TOOLS_CHILD_H
#define ANYWARP_TOOLS_CHILD_H

/**
 * Runs the program @p argv on anywarp to its end, and passes on to it what asks this process to
 * end. Once in a process.
 * @param tool  the subcommand, for the message if that fails, which ends the process
 * @return its exit status as a shell tells it
 */
int child_run(const char *tool, char **argv);

#endif

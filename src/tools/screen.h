/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal that is drawn anew every second. It is as it was after screen_close(), after a signal
 * that ends the process, and while the process is stopped.
 */
#ifndef ANYWARP_TOOLS_SCREEN_H
#define ANYWARP_TOOLS_SCREEN_H

#include <stdbool.h>

void screen_open(void);
void screen_close(void);

/** Waits. @return false if the user wants no more: q, or a signal, of which the process then dies
 */
bool screen_wait(double seconds);

/** Begins a picture. @param lines, columns  [out] the size of the terminal */
void screen_begin(unsigned *lines, unsigned *columns);
void screen_end(void);

/** Prints a line, at most @p columns of it unless that is 0. */
void screen_line(const char *line, unsigned columns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_TOOLS_SHELL_H
#define ANYWARP_TOOLS_SHELL_H

#include <stdio.h>

/** Prints a blank and each word so that a shell reads it as it is. */
void shell_words(FILE *f, char *const *word);

#endif

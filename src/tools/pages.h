/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_TOOLS_PAGES_H
#define ANYWARP_TOOLS_PAGES_H

#include <stdbool.h>
#include <stdio.h>

/** Prints the section @p name of doc/findings.md. @return false: it has none */
bool page_print(FILE *f, const char *name);

#endif

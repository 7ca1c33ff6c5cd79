/* SPDX-License-Identifier: BSD-2-Clause */
/* What "anywarp check" prints. */
#ifndef ANYWARP_TOOLS_REPORT_H
#define ANYWARP_TOOLS_REPORT_H

#include "tools/findings.h"

#include <stdio.h>

typedef void report(FILE *f, const struct findings *all, char **argv, int status);

/** "text", "json", "junit" or "sarif". @return NULL if it is none of them */
report *report_find(const char *format);

#endif

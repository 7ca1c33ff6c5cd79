/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics for people and for programs. */
#ifndef ANYWARP_TOOLS_STATS_TEXT_H
#define ANYWARP_TOOLS_STATS_TEXT_H

#include "tools/stats.h"

#include <stdio.h>

#define STATS_ENDPOINT_MAX 64

/** All of it: a line for each object, in pairs of key and value; what is 0 is left out. */
void stats_print(FILE *f, const struct stats *s);
/** A line for the process. */
void stats_print_line(FILE *f, const struct stats *s);
/** A line for the process, and one for each error. */
void stats_print_errors(FILE *f, const struct stats *s);
/** A JSON object, without a newline at its end. */
void stats_print_json(FILE *f, const struct stats *s);

/** "INIT" and the like; "?" for what is none. */
const char *stats_state(const struct stats_qp *q);
/** "RC", "UC", "UD". */
const char *stats_type(const struct stats_qp *q);
/** The kind of its device: "iWARP", "RoCE". */
const char *stats_device(const struct stats_qp *q);
/** Address and port: "10.0.0.1:7174", "[::1]:7174", "-" if it is not connected. */
void stats_endpoint(const struct stats_qp *q, bool peer, char text[STATS_ENDPOINT_MAX]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The log: VERBS_LOG_LEVEL (0 none, 1 error, 2 warning, 3 info, 4 debug), VERBS_LOG_FILE. */
#ifndef ANYWARP_ENV_LOG_H
#define ANYWARP_ENV_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum iw_log_level {
    IW_LOG_ASKED = 0, /* at any level: the user asked for something by name, and does not get it */
    IW_LOG_ERR = 1,
    IW_LOG_WARN = 2,
    IW_LOG_INFO = 3,
    IW_LOG_DEBUG = 4,
};

/**
 * What VERBS_LOG_LEVEL=@p value stands for: NULL and an empty one are 0, what is too much is 4.
 * @return whether it is a level
 */
bool iw_log_level_of(const char *value, int *level);

/** Whether lines of this level are written at all: cheap, for callers that must first gather facts.
 */
bool iw_log_on(enum iw_log_level level);

/** Writes one line, "anywarp: " in front and a newline behind, in one write. Keeps errno. */
void iw_log(enum iw_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void iw_vlog(enum iw_log_level level, const char *fmt, va_list ap);

#endif

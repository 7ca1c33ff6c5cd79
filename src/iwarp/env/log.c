/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file is opened for each line: lines are rare, and a descriptor kept open could have become
 * something else of a program that closes all it does not know, as daemons do.
 */
#include "env/log.h"

#include "common/append.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX   "anywarp: "
#define LINE_MAX 1024

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int level_max;
static const char *file; /* NULL: standard error */

/** Of a variable of the log itself, @p name with its '=': on standard error. */
static void warn(const char *name, const char *value, const char *what)
{
    char line[LINE_MAX];
    int n = snprintf(line, sizeof(line), PREFIX "%s%.256s %s\n", name, value, what);
    append_to(STDERR_FILENO, line, (size_t)n);
}

bool iw_log_level_of(const char *value, int *level)
{
    const char *s = value ? value : "";
    bool number = !s[strspn(s, "0123456789")];
    unsigned long n = number ? strtoul(s, NULL, 10) : 0;
    *level = n > IW_LOG_DEBUG ? IW_LOG_DEBUG : (int)n;
    return number && n <= IW_LOG_DEBUG;
}

static void setup(void)
{
    const char *s = getenv("VERBS_LOG_LEVEL");
    if (!iw_log_level_of(s, &level_max))
        warn("VERBS_LOG_LEVEL=", s,
             level_max ? "is more than 4: 4 is taken" : "is not understood (0 to 4): 0 is taken");
    s = secure_getenv("VERBS_LOG_FILE");
    file = s && *s ? strdup(s) : NULL;
}

bool iw_log_on(enum iw_log_level level)
{
    pthread_once(&once, setup);
    return (int)level <= level_max;
}

static void put(const char *line, size_t len)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (file && !append(file, line, len))
        return;
    if (file && !atomic_flag_test_and_set(&told))
        warn("VERBS_LOG_FILE=", file, "cannot be written: the log comes here");
    append_to(STDERR_FILENO, line, len);
}

void iw_vlog(enum iw_log_level level, const char *fmt, va_list ap)
{
    if (!iw_log_on(level))
        return;
    int saved = errno;
    char line[LINE_MAX] = PREFIX;
    size_t room = sizeof(line) - sizeof(PREFIX); /* without the newline */
    int n = vsnprintf(line + sizeof(PREFIX) - 1, room + 1, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n > room ? room : (size_t)n;
    len += sizeof(PREFIX) - 1;
    line[len++] = '\n';
    put(line, len);
    errno = saved;
}

void iw_log(enum iw_log_level level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    iw_vlog(level, fmt, ap);
    va_end(ap);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file is opened for each line: lines are rare, and a descriptor kept open could have become
 * something else of a program that closes all it does not know, as daemons do.
 */
#include "env/log.h"

#include "common/sys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX   "anywarp: "
#define LINE_MAX 1024

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int level_max;
static const char *file; /* NULL: standard error */

static void setup(void)
{
    const char *s = getenv("VERBS_LOG_LEVEL");
    level_max = s ? atoi(s) : 0;
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
    long fd = file ? sys_open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -ENOENT;
    sys_write(fd < 0 ? STDERR_FILENO : (int)fd, line, len);
    if (fd >= 0)
        sys_close((int)fd);
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

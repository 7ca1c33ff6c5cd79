/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and numbers: printk() and <linux/kernel.h>. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/kernel.h>
#include <linux/string.h>

int vprintk(const char *format, va_list ap)
{
    enum { LINE = 1024 };
    char line[LINE];
    int n = vsnprintf(line, sizeof line, format, ap);
    int length = min(n, LINE - 1);
    const char *text = line;
    if (length >= 2 && line[0] == KERN_SOH[0]) { /* the level comes first */
        text += 2;
        length -= 2;
    }
    while (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0 && errno == EINTR)
        continue;
    return n;
}

int printk(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vprintk(format, ap);
    va_end(ap);
    return n;
}

int scnprintf(char *s, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(s, size, format, ap);
    va_end(ap);
    return n < (int)size ? n : size > 0 ? (int)size - 1 : 0;
}

size_t kverbs_strlcpy(char *to, const char *from, size_t size)
{
    size_t n = strlen(from);
    if (size > 0) {
        size_t copied = min(n, size - 1);
        memcpy(to, from, copied);
        to[copied] = 0;
    }
    return n;
}

unsigned long simple_strtoul(const char *s, char **end, unsigned base)
{
    return strtoul(s, end, (int)base);
}

long simple_strtol(const char *s, char **end, unsigned base)
{
    return strtol(s, end, (int)base);
}

/* A newline may follow. */
static bool is_end(const char *s, const char *end)
{
    return end != s && (end[0] == 0 || (end[0] == '\n' && end[1] == 0));
}

int kstrtoul(const char *s, unsigned base, unsigned long *value)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(s, &end, (int)base);
    if (*s == '-' || !is_end(s, end))
        return -EINVAL;
    if (errno == ERANGE)
        return -ERANGE;
    *value = v;
    return 0;
}

int kstrtouint(const char *s, unsigned base, unsigned *value)
{
    unsigned long v;
    int ret = kstrtoul(s, base, &v);
    if (ret == 0 && v > UINT_MAX)
        ret = -ERANGE;
    if (ret == 0)
        *value = (unsigned)v;
    return ret;
}

int kstrtoint(const char *s, unsigned base, int *value)
{
    char *end;
    errno = 0;
    long v = strtol(s, &end, (int)base);
    if (!is_end(s, end))
        return -EINVAL;
    if (errno == ERANGE || v < INT_MIN || v > INT_MAX)
        return -ERANGE;
    *value = (int)v;
    return 0;
}

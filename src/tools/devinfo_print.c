/* SPDX-License-Identifier: BSD-2-Clause */
#include "devinfo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TAB 8

void devinfo_field(int level, const char *name, const char *fmt, ...)
{
    int column = level * TAB + (int)strlen(name) + 1, values = (level == 1 ? 5 : 6) * TAB;
    va_list ap;
    for (int i = 0; i < level; i++)
        putchar('\t');
    printf("%s:", name);
    do {
        putchar('\t');
        column += TAB - column % TAB;
    } while (column < values);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

const char *devinfo_text(int value, const struct devinfo_name *names)
{
    while (names->text && names->value != (uint64_t)value)
        names++;
    return names->text ? names->text : "invalid value";
}

void devinfo_named(int level, const char *name, int value, const struct devinfo_name *names)
{
    devinfo_field(level, name, "%s (%d)", devinfo_text(value, names), value);
}

void devinfo_flags(uint64_t flags, const struct devinfo_name *names)
{
    for (; names->text; names++)
        if (flags & names->value)
            printf("\t\t\t\t\t%s\n", names->text);
}

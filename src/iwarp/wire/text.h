/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_WIRE_TEXT_H
#define ANYWARP_WIRE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/** Appends to the string in @p buf, and cuts off what does not fit into its @p size bytes. */
__attribute__((format(printf, 3, 4))) static inline void text_add(char *buf, size_t size,
                                                                  const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + used, size - used, fmt, ap);
    va_end(ap);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The version of a device's firmware, "a.b.c", as one number. */
#ifndef ANYWARP_COMPAT_VERSION_H
#define ANYWARP_COMPAT_VERSION_H

#include <stdint.h>
#include <stdio.h>

static inline uint64_t version_number(const char *text)
{
    unsigned a = 0, b = 0, c = 0;
    sscanf(text, "%u.%u.%u", &a, &b, &c);
    return (uint64_t)a << 32 | (uint64_t)(b & 0xffff) << 16 | (c & 0xffff);
}

#endif

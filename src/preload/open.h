/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For libraries that take the place of libc's functions: those that open by a path. @p takes is a
 * bool takes(const char *path, int flags, int *fd): whether the path is the library's, which has
 * then opened it or set errno. All others go on to the next definition.
 */
#ifndef ANYWARP_PRELOAD_OPEN_H
#define ANYWARP_PRELOAD_OPEN_H

#include "preload/next.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>

static inline mode_t open_mode(int flags, va_list ap)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name, takes)                                                                          \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        int fd;                                                                                    \
        if (takes(path, flags, &fd))                                                               \
            return fd;                                                                             \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = open_mode(flags, ap);                                                        \
        va_end(ap);                                                                                \
        return NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode);                    \
    }
#define OPENAT(name, takes)                                                                        \
    EXPORT int name(int at, const char *path, int flags, ...)                                      \
    {                                                                                              \
        int fd;                                                                                    \
        if (takes(path, flags, &fd))                                                               \
            return fd;                                                                             \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = open_mode(flags, ap);                                                        \
        va_end(ap);                                                                                \
        return NEXT(int (*)(int, const char *, int, ...), #name)(at, path, flags, mode);           \
    }
#define OPEN_2(name, takes)                                                                        \
    int name(const char *path, int flags);                                                         \
    EXPORT int name(const char *path, int flags)                                                   \
    {                                                                                              \
        int fd;                                                                                    \
        return takes(path, flags, &fd) ? fd                                                        \
                                       : NEXT(int (*)(const char *, int), #name)(path, flags);     \
    }
#define OPENAT_2(name, takes)                                                                      \
    int name(int at, const char *path, int flags);                                                 \
    EXPORT int name(int at, const char *path, int flags)                                           \
    {                                                                                              \
        int fd;                                                                                    \
        return takes(path, flags, &fd)                                                             \
                   ? fd                                                                            \
                   : NEXT(int (*)(int, const char *, int), #name)(at, path, flags);                \
    }

#endif

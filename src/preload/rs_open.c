/* SPDX-License-Identifier: BSD-2-Clause */
/* librspreload.so: calls that open something else than sockets, whose numbers are fresh. */
#include "preload/next.h"
#include "preload/open.h"
#include "preload/rs_close.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN_FRESH(name)                                                                           \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = open_mode(flags, ap);                                                        \
        va_end(ap);                                                                                \
        return pre_fresh(NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode));         \
    }
#define OPENAT_FRESH(name)                                                                         \
    EXPORT int name(int at, const char *path, int flags, ...)                                      \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = open_mode(flags, ap);                                                        \
        va_end(ap);                                                                                \
        return pre_fresh(                                                                          \
            NEXT(int (*)(int, const char *, int, ...), #name)(at, path, flags, mode));             \
    }
#define OPEN_2_FRESH(name)                                                                         \
    int name(const char *path, int flags);                                                         \
    EXPORT int name(const char *path, int flags)                                                   \
    {                                                                                              \
        return pre_fresh(NEXT(int (*)(const char *, int), #name)(path, flags));                    \
    }
#define OPENAT_2_FRESH(name)                                                                       \
    int name(int at, const char *path, int flags);                                                 \
    EXPORT int name(int at, const char *path, int flags)                                           \
    {                                                                                              \
        return pre_fresh(NEXT(int (*)(int, const char *, int), #name)(at, path, flags));           \
    }
#define CREAT_FRESH(name)                                                                          \
    EXPORT int name(const char *path, mode_t mode)                                                 \
    {                                                                                              \
        return pre_fresh(NEXT(int (*)(const char *, mode_t), #name)(path, mode));                  \
    }
#define FOPEN_FRESH(name)                                                                          \
    EXPORT FILE *name(const char *path, const char *mode)                                          \
    {                                                                                              \
        FILE *file = NEXT(FILE * (*)(const char *, const char *), #name)(path, mode);              \
        if (file)                                                                                  \
            pre_fresh(fileno(file));                                                               \
        return file;                                                                               \
    }

OPEN_FRESH(open)
OPEN_FRESH(open64)
OPENAT_FRESH(openat)
OPENAT_FRESH(openat64)
OPEN_2_FRESH(__open_2)
OPEN_2_FRESH(__open64_2)
OPENAT_2_FRESH(__openat_2)
OPENAT_2_FRESH(__openat64_2)
CREAT_FRESH(creat)
CREAT_FRESH(creat64)
FOPEN_FRESH(fopen)
FOPEN_FRESH(fopen64)

static int both(int r, const int fds[2])
{
    for (int i = 0; r == 0 && i < 2; i++)
        pre_fresh(fds[i]);
    return r;
}

EXPORT int pipe(int fds[2])
{
    return both(NEXT(int (*)(int *), "pipe")(fds), fds);
}

EXPORT int pipe2(int fds[2], int flags)
{
    return both(NEXT(int (*)(int *, int), "pipe2")(fds, flags), fds);
}

EXPORT int socketpair(int domain, int type, int protocol, int fds[2])
{
    return both(NEXT(int (*)(int, int, int, int *), "socketpair")(domain, type, protocol, fds),
                fds);
}

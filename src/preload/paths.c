/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libanywarp-paths.so: the libc calls that take a path, for programs that look for RDMA devices by
 * paths. All other paths go on to the next definition.
 */
#undef _FORTIFY_SOURCE
#include "preload/open.h"
#include "preload/paths_tree.h"
#include "preload/uverbs_sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- open ---- */

static bool takes(const char *path, int flags, int *fd)
{
    char room[PATHS_ROOM];
    const char *mapped = paths_map(path, room);
    if (mapped == path)
        return false;
    *fd = paths_open(path, mapped, flags);
    return true;
}

OPEN(open, takes)
OPEN(open64, takes)
OPENAT(openat, takes)
OPENAT(openat64, takes)
OPEN_2(__open_2, takes)
OPEN_2(__open64_2, takes)
OPENAT_2(__openat_2, takes)
OPENAT_2(__openat64_2, takes)

typedef FILE *fopen_fn(const char *, const char *);

static FILE *open_stream(const char *path, const char *mapped, const char *mode)
{
    bool writes = mode[0] != 'r' || strchr(mode, '+');
    int fd = paths_open(path, mapped,
                        (writes ? O_RDWR : O_RDONLY) | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

#define FOPEN(name)                                                                                \
    EXPORT FILE *name(const char *path, const char *mode)                                          \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        const char *mapped = paths_map(path, room);                                                \
        return mapped != path ? open_stream(path, mapped, mode)                                    \
                              : NEXT(fopen_fn *, #name)(path, mode);                               \
    }

FOPEN(fopen)
FOPEN(fopen64)

/* ---- stat ---- */

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "a machine of 64 bits");

static bool describe(const char *path, void *st)
{
    int number = paths_node(path);
    if (number < 0)
        return false;
    *(struct stat *)st = (struct stat){
        .st_mode = S_IFCHR | 0666,
        .st_nlink = 1,
        .st_rdev = makedev(UVERBS_MAJOR, (unsigned)(UVERBS_MINOR + number)),
    };
    return true;
}

typedef int stat_fn(const char *, void *);
typedef int fstatat_fn(int, const char *, void *, int);
typedef int xstat_fn(int, const char *, void *);
typedef int fxstatat_fn(int, int, const char *, void *, int);

/* glibc has the first six from 2.33 on, programs built before call the others. */
#ifdef SYS_newfstatat
#define KERNEL_STAT(at, path, st, flags) (int)syscall(SYS_newfstatat, at, path, st, flags)
#else
#define KERNEL_STAT(at, path, st, flags) (errno = ENOSYS, -1)
#endif

#define STAT(name, type, flags)                                                                    \
    EXPORT int name(const char *path, struct type *st)                                             \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        const char *mapped = paths_map(path, room);                                                \
        if (mapped != path && describe(path, st))                                                  \
            return 0;                                                                              \
        stat_fn *next = NEXT(stat_fn *, #name);                                                    \
        return next ? next(mapped, st) : KERNEL_STAT(AT_FDCWD, mapped, st, flags);                 \
    }
#define FSTATAT(name, type)                                                                        \
    EXPORT int name(int at, const char *path, struct type *st, int flags)                          \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        const char *mapped = paths_map(path, room);                                                \
        if (mapped != path && describe(path, st))                                                  \
            return 0;                                                                              \
        fstatat_fn *next = NEXT(fstatat_fn *, #name);                                              \
        return next ? next(at, mapped, st, flags) : KERNEL_STAT(at, mapped, st, flags);            \
    }
#define XSTAT(name, type)                                                                          \
    int name(int version, const char *path, struct type *st);                                      \
    EXPORT int name(int version, const char *path, struct type *st)                                \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        const char *mapped = paths_map(path, room);                                                \
        if (mapped != path && describe(path, st))                                                  \
            return 0;                                                                              \
        return NEXT(xstat_fn *, #name)(version, mapped, st);                                       \
    }
#define FXSTATAT(name, type)                                                                       \
    int name(int version, int at, const char *path, struct type *st, int flags);                   \
    EXPORT int name(int version, int at, const char *path, struct type *st, int flags)             \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        const char *mapped = paths_map(path, room);                                                \
        if (mapped != path && describe(path, st))                                                  \
            return 0;                                                                              \
        return NEXT(fxstatat_fn *, #name)(version, at, mapped, st, flags);                         \
    }

STAT(stat, stat, 0)
STAT(stat64, stat64, 0)
STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)
FXSTATAT(__fxstatat, stat)
FXSTATAT(__fxstatat64, stat64)

typedef int statx_fn(int, const char *, int, unsigned, struct statx *);

EXPORT int statx(int at, const char *path, int flags, unsigned mask, struct statx *stx)
{
    char room[PATHS_ROOM];
    const char *mapped = paths_map(path, room);
    struct stat st;
    if (mapped == path || !describe(path, &st))
        return NEXT(statx_fn *, "statx")(at, mapped, flags, mask, stx);
    *stx = (struct statx){
        .stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK,
        .stx_mode = (uint16_t)st.st_mode,
        .stx_nlink = 1,
        .stx_rdev_major = major(st.st_rdev),
        .stx_rdev_minor = minor(st.st_rdev),
    };
    return 0;
}

/* ---- Others, by another name ---- */

#define BY_PATH(type, name, parameters, arguments, next_parameters)                                \
    type name parameters;                                                                          \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        path = paths_map(path, room);                                                              \
        return NEXT(type(*) next_parameters, #name) arguments;                                     \
    }

typedef int filter_fn(const struct dirent *);
typedef int order_fn(const struct dirent **, const struct dirent **);
typedef int filter64_fn(const struct dirent64 *);
typedef int order64_fn(const struct dirent64 **, const struct dirent64 **);

BY_PATH(int, access, (const char *path, int how), (path, how), (const char *, int))
BY_PATH(int, eaccess, (const char *path, int how), (path, how), (const char *, int))
BY_PATH(int, euidaccess, (const char *path, int how), (path, how), (const char *, int))
BY_PATH(int, faccessat, (int at, const char *path, int how, int flags), (at, path, how, flags),
        (int, const char *, int, int))
BY_PATH(int, chdir, (const char *path), (path), (const char *))
BY_PATH(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size),
        (path, name, value, size), (const char *, const char *, void *, size_t))
BY_PATH(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size),
        (path, name, value, size), (const char *, const char *, void *, size_t))
BY_PATH(ssize_t, listxattr, (const char *path, char *list, size_t size), (path, list, size),
        (const char *, char *, size_t))
BY_PATH(ssize_t, llistxattr, (const char *path, char *list, size_t size), (path, list, size),
        (const char *, char *, size_t))
BY_PATH(DIR *, opendir, (const char *path), (path), (const char *))
BY_PATH(int, scandir,
        (const char *path, struct dirent ***names, filter_fn *filter, order_fn *order),
        (path, names, filter, order), (const char *, struct dirent ***, filter_fn *, order_fn *))
BY_PATH(int, scandir64,
        (const char *path, struct dirent64 ***names, filter64_fn *filter, order64_fn *order),
        (path, names, filter, order),
        (const char *, struct dirent64 ***, filter64_fn *, order64_fn *))

/* ---- What a path leads to ---- */

/* A node is a link in the folder, which nobody is to see. */
static bool is_no_link(const char *path)
{
    bool node = paths_node(path) >= 0;
    if (node)
        errno = EINVAL;
    return node;
}

#define READLINK(name, parameters, arguments, next_parameters)                                     \
    ssize_t name parameters;                                                                       \
    EXPORT ssize_t name parameters                                                                 \
    {                                                                                              \
        char room[PATHS_ROOM];                                                                     \
        if (is_no_link(path))                                                                      \
            return -1;                                                                             \
        path = paths_map(path, room);                                                              \
        return NEXT(ssize_t(*) next_parameters, #name) arguments;                                  \
    }

READLINK(readlink, (const char *path, char *buf, size_t len), (path, buf, len),
         (const char *, char *, size_t))
READLINK(__readlink_chk, (const char *path, char *buf, size_t len, size_t room_of),
         (path, buf, len, room_of), (const char *, char *, size_t, size_t))
READLINK(readlinkat, (int at, const char *path, char *buf, size_t len), (at, path, buf, len),
         (int, const char *, char *, size_t))
READLINK(__readlinkat_chk, (int at, const char *path, char *buf, size_t len, size_t room_of),
         (at, path, buf, len, room_of), (int, const char *, char *, size_t, size_t))

/** What realpath() gives for a node: its own name. */
static char *own_name(const char *path, char *result)
{
    return result ? strcpy(result, path) : strdup(path);
}

EXPORT char *realpath(const char *path, char *result)
{
    char room[PATHS_ROOM];
    if (paths_node(path) >= 0)
        return own_name(path, result);
    path = paths_map(path, room);
    return NEXT(char *(*)(const char *, char *), "realpath")(path, result);
}

char *__realpath_chk(const char *path, char *result, size_t size);
EXPORT char *__realpath_chk(const char *path, char *result, size_t size)
{
    char room[PATHS_ROOM];
    if (paths_node(path) >= 0)
        return own_name(path, result);
    path = paths_map(path, room);
    return NEXT(char *(*)(const char *, char *, size_t), "__realpath_chk")(path, result, size);
}

EXPORT char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libanywarp-uverbs-preload.so: the libc calls with which the distribution's libibverbs and
 * librdmacm reach the kernel's devices. Descriptors that are not of src/uverbs go on to the next
 * definition.
 */
#include <anywarp/uverbs.h>

#include "preload/open.h"
#include "preload/uverbs_sysfs.h"
#include "uverbs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static pid_t owner;
static bool by_ioctl;

/* A child of vfork() has our memory, and closes descriptors of its own. */
static bool mine(void)
{
    return (pid_t)syscall(SYS_getpid) == owner;
}

static void in_child(void)
{
    owner = (pid_t)syscall(SYS_getpid);
}

__attribute__((constructor)) static void start(void)
{
    owner = (pid_t)syscall(SYS_getpid);
    pthread_atfork(NULL, NULL, in_child);
    const char *wanted = getenv("ANYWARP_UVERBS_IOCTL");
    by_ioctl = wanted && !strcmp(wanted, "on");
    if (wanted && *wanted && !by_ioctl && strcmp(wanted, "off") != 0)
        fprintf(stderr, "anywarp: ANYWARP_UVERBS_IOCTL=%s is not understood (on, off): ignored\n",
                wanted);
    const char *folder = uverbs_sysfs(SYSFS_LIBRARY);
    if (folder)
        setenv("SYSFS_PATH", folder, 1);
}

/* ---- Names ---- */

#define FOLDER "/dev/infiniband/"

enum { NOT_OURS = -3, SYSFS, RDMA_CM }; /* else the number of a device */

static int device_of(const char *path)
{
    if (path && uverbs_sysfs_changes(path))
        return SYSFS;
    if (!path || strncmp(path, FOLDER, sizeof FOLDER - 1) != 0)
        return NOT_OURS;
    const char *name = path + sizeof FOLDER - 1;
    if (!strcmp(name, "rdma_cm"))
        return RDMA_CM;
    char *end;
    if (strncmp(name, "uverbs", 6) != 0 || name[6] < '0' || name[6] > '9')
        return NOT_OURS;
    unsigned long n = strtoul(name + 6, &end, 10);
    return *end || n > 255 ? NOT_OURS : (int)n;
}

/* The name of a device by its number is what sysfs says. */
static int open_device(int number)
{
    char path[600], name[64];
    const char *folder = getenv("SYSFS_PATH");
    snprintf(path, sizeof path, "%s/class/infiniband_verbs/uverbs%d/ibdev", folder ? folder : "",
             number);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    long n = syscall(SYS_read, fd, name, sizeof name - 1);
    syscall(SYS_close, fd);
    if (n <= 0) {
        errno = ENODEV;
        return -1;
    }
    name[n] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return anywarp_uverbs_open(name);
}

static int open_ours(int number, const char *path, int flags)
{
    int fd = number == RDMA_CM ? anywarp_ucm_open()
             : number == SYSFS ? uverbs_sysfs_open(path)
                               : open_device(number);
    if (fd >= 0 && !(flags & O_CLOEXEC))
        syscall(SYS_fcntl, fd, F_SETFD, 0);
    return fd;
}

static bool takes(const char *path, int flags, int *fd)
{
    int number = device_of(path);
    if (number == NOT_OURS)
        return false;
    *fd = open_ours(number, path, flags);
    return true;
}

OPEN(open, takes)
OPEN(open64, takes)
OPENAT(openat, takes)
OPENAT(openat64, takes)
OPEN_2(__open_2, takes)
OPEN_2(__open64_2, takes)

/* ---- What is there ---- */

static void describe(struct stat *st, int number)
{
    *st = (struct stat){
        .st_mode = S_IFCHR | 0666,
        .st_nlink = 1,
        .st_rdev = number >= 0 ? makedev(UVERBS_MAJOR, (unsigned)(UVERBS_MINOR + number))
                               : makedev(10, 58),
    };
}

static bool describe_path(const char *path, void *st)
{
    int number = device_of(path);
    if (number < RDMA_CM)
        return false;
    describe(st, number);
    return true;
}

static bool describe_fd(int fd, void *st)
{
    struct uv_file *f = uv_file_get(fd);
    if (!f)
        return false;
    describe(st, f->number);
    uv_file_put(f);
    return true;
}

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "a machine of 64 bits");

typedef int stat_fn(const char *, void *);
typedef int fstat_fn(int, void *);
typedef int xstat_fn(int, const char *, void *);
typedef int fxstat_fn(int, int, void *);

/* glibc has the first four from 2.33 on, programs built before call the others. */
#define STAT(name, type)                                                                           \
    EXPORT int name(const char *path, struct type *st)                                             \
    {                                                                                              \
        return describe_path(path, st) ? 0 : NEXT(stat_fn *, #name)(path, st);                     \
    }
#define FSTAT(name, type)                                                                          \
    EXPORT int name(int fd, struct type *st)                                                       \
    {                                                                                              \
        return describe_fd(fd, st) ? 0 : NEXT(fstat_fn *, #name)(fd, st);                          \
    }
#define XSTAT(name, type)                                                                          \
    int name(int version, const char *path, struct type *st);                                      \
    EXPORT int name(int version, const char *path, struct type *st)                                \
    {                                                                                              \
        return describe_path(path, st) ? 0 : NEXT(xstat_fn *, #name)(version, path, st);           \
    }
#define FXSTAT(name, type)                                                                         \
    int name(int version, int fd, struct type *st);                                                \
    EXPORT int name(int version, int fd, struct type *st)                                          \
    {                                                                                              \
        return describe_fd(fd, st) ? 0 : NEXT(fxstat_fn *, #name)(version, fd, st);                \
    }

STAT(stat, stat)
STAT(stat64, stat64)
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
FXSTAT(__fxstat, stat)
FXSTAT(__fxstat64, stat64)

/* Without it libibverbs looks for its devices in sysfs, where there is a folder of ours. */
EXPORT int socket(int domain, int type, int protocol)
{
    enum { RDMA = 20 };
    if (domain == AF_NETLINK && protocol == RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return NEXT(int (*)(int, int, int), "socket")(domain, type, protocol);
}

/* ---- Commands and events ---- */

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    if (uv_file_is(fd))
        return anywarp_uverbs_write(fd, buf, len);
    return NEXT(ssize_t(*)(int, const void *, size_t), "write")(fd, buf, len);
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
    if (uv_file_is(fd))
        return anywarp_uverbs_read(fd, buf, len);
    return NEXT(ssize_t(*)(int, void *, size_t), "read")(fd, buf, len);
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
    if (uv_file_is(fd) && len <= room)
        return anywarp_uverbs_read(fd, buf, len);
    return NEXT(ssize_t(*)(int, void *, size_t, size_t), "__read_chk")(fd, buf, len, room);
}

/*
 * A libibverbs that can do both asks first, by a command without its struct, whether commands come
 * by ioctl(). It is to write, which is the shorter way, and so is told that there is no such thing,
 * unless ANYWARP_UVERBS_IOCTL wants the other; one that can only ask so is served without it.
 */
EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    if (request != RDMA_VERBS_IOCTL || !uv_file_is(fd))
        return NEXT(int (*)(int, unsigned long, ...), "ioctl")(fd, request, argument);
    int result = anywarp_uverbs_ioctl(fd, request, argument);
    if (result < 0 && (errno == ENOSPC || errno == EPROTONOSUPPORT) && !by_ioctl)
        errno = ENOTTY;
    return result;
}

/* ---- Descriptors that come and go ---- */

EXPORT int close(int fd)
{
    if (uv_file_is(fd) && mine())
        uv_file_forget(fd);
    return NEXT(int (*)(int), "close")(fd);
}

static int duplicated(int from, int to)
{
    if (to >= 0 && (uv_file_is(from) || uv_file_is(to)) && mine())
        uv_file_duplicated(from, to);
    return to;
}

EXPORT int dup(int fd)
{
    return duplicated(fd, NEXT(int (*)(int), "dup")(fd));
}

EXPORT int dup2(int from, int to)
{
    return duplicated(from, NEXT(int (*)(int, int), "dup2")(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    return duplicated(from, NEXT(int (*)(int, int, int), "dup3")(from, to, flags));
}

#define FCNTL(name)                                                                                \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, command);                                                                     \
        void *argument = va_arg(ap, void *);                                                       \
        va_end(ap);                                                                                \
        int result = NEXT(int (*)(int, int, ...), #name)(fd, command, argument);                   \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result; \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

static void forget_range(unsigned first, unsigned last)
{
    if (!mine())
        return;
    for (unsigned fd = first; fd <= last && fd < 65536; fd++)
        uv_file_forget((int)fd);
}

/* By the name that the headers of Linux have: those of glibc 2.31 do not know the call. */
EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    enum { CLOEXEC = 4 };
    if (first <= last && !(flags & CLOEXEC)) {
        /* Nothing is forgotten where the kernel has no such call, or no such flags. */
        long result = syscall(__NR_close_range, UINT32_MAX, UINT32_MAX, flags);
        if (result != 0)
            return (int)result;
        forget_range(first, last);
    }
    return (int)syscall(__NR_close_range, first, last, flags);
}

void closefrom(int first);
EXPORT void closefrom(int first)
{
    forget_range(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    NEXT(void (*)(int), "closefrom")(first);
}

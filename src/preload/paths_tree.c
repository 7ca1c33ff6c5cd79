/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/paths_tree.h"

#include "preload/next.h"
#include "preload/uverbs_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t owner;
static bool off;

/* While this thread describes the devices it sees what the machine has. */
static _Thread_local bool looking __attribute__((tls_model("initial-exec")));

static void in_child(void)
{
    owner = (pid_t)syscall(SYS_getpid);
}

__attribute__((constructor)) static void start(void)
{
    const char *wanted = getenv("ANYWARP_PATHS");
    off = wanted && !strcmp(wanted, "off");
    if (wanted && *wanted && !off && strcmp(wanted, "on") != 0)
        fprintf(stderr, "anywarp: ANYWARP_PATHS=%s is not understood (on, off): ignored\n", wanted);
    owner = (pid_t)syscall(SYS_getpid);
    pthread_atfork(NULL, NULL, in_child);
}

/* A child of vfork() has our memory: it makes nothing, and opens no device. */
static bool may_look(void)
{
    return !looking && (pid_t)syscall(SYS_getpid) == owner;
}

static const char *folder(void)
{
    static const char *_Atomic made;
    static atomic_bool tried;
    const char *path = atomic_load(&made);
    if (path || atomic_load(&tried) || !may_look())
        return path;
    looking = true;
    path = uverbs_sysfs(SYSFS_PROGRAMS);
    looking = false;
    if (path)
        atomic_store(&made, path);
    atomic_store(&tried, true);
    return path;
}

#define NODES "/dev/infiniband"

/** The length of the name of one of the three folders that the path is, or is below; or 0. */
static size_t root_of(const char *path)
{
    static const char *const roots[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                        NODES};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        size_t len = strlen(roots[i]);
        if (!strncmp(path, roots[i], len) && (path[len] == '/' || !path[len]))
            return len;
    }
    return 0;
}

static bool is_there(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

/** Whether the name that is next below the folder is the machine's. */
static bool is_machines(const char *path, size_t root)
{
    char name[PATHS_ROOM];
    size_t start = root + strspn(path + root, "/");
    if (!path[start])
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(start + strcspn(path + start, "/")), path);
    return is_there(name);
}

const char *paths_map(const char *path, char room[PATHS_ROOM])
{
    static const char sys[] = "/sys";
    size_t root = path && !off && !looking ? root_of(path) : 0;
    if (!root || strlen(path) > PATHS_ROOM / 2)
        return path;
    int err = errno;
    const char *at = is_machines(path, root) ? NULL : folder();
    if (at &&
        snprintf(room, PATHS_ROOM, "%s%s", at,
                 path + (strncmp(path, sys, strlen(sys)) ? 0 : strlen(sys))) < PATHS_ROOM &&
        (is_there(room) || uverbs_sysfs_changes(room))) /* an address that has come since */
        path = room;
    errno = err;
    return path;
}

int paths_node(const char *path)
{
    char room[PATHS_ROOM];
    int number, end = 0;
    if (!path || strncmp(path, NODES, strlen(NODES)) != 0 || paths_map(path, room) == path ||
        sscanf(path + strlen(NODES), "/uverbs%4d%n", &number, &end) != 1 ||
        path[strlen(NODES) + (size_t)end])
        return -1;
    return number;
}

/* The device itself is in the process, and takes no commands by a descriptor. */
int paths_open(const char *path, const char *mapped, int flags)
{
    if (paths_node(path) >= 0) {
        errno = ENXIO;
        return -1;
    }
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC) {
        errno = EACCES;
        return -1;
    }
    if (!uverbs_sysfs_changes(mapped) || !may_look())
        return (int)syscall(SYS_openat, AT_FDCWD, mapped, flags & ~O_CREAT, 0);
    looking = true;
    int fd = uverbs_sysfs_open(mapped);
    looking = false;
    if (fd >= 0 && !(flags & O_CLOEXEC))
        fcntl(fd, F_SETFD, 0);
    return fd;
}

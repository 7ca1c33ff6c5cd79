/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/sysfs.h"

#include "common/sys.h"
#include "verbs/export.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[IBV_SYSFS_PATH_MAX];

static void find_root(void)
{
    const char *env = secure_getenv("SYSFS_PATH");
    snprintf(root, sizeof(root), "%s", env ? env : "/sys");
    for (size_t len = strlen(root); len > 0 && root[len - 1] == '/'; len--)
        root[len - 1] = '\0';
}

VERBS_EXPORT const char *ibv_get_sysfs_path(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_root);
    return root;
}

VERBS_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[2 * IBV_SYSFS_PATH_MAX];
    if (!dir || !file || !buf)
        return minus_errno(iw_refuse(__func__, ARGUMENT));
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
        return minus_errno(ENAMETOOLONG);
    int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long n = sys_read(fd, buf, size);
    sys_close(fd);
    if (n < 0)
        return minus_errno((int)-n);
    if (n > 0 && buf[n - 1] == '\n')
        buf[--n] = '\0';
    else if (n > 0 && (size_t)n < size)
        buf[n] = '\0';
    else if (n > 0)
        return minus_errno(ENOSPC); /* there may be more */
    return (int)n;
}

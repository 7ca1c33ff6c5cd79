/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/own_file.h"

#include "common/sys.h"
#include "env/fd.h"
#include "wire/text.h"

#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void make_path(struct iw_own_file *f, const char *pattern)
{
    f->path[0] = 0;
    for (const char *p; (p = strstr(pattern, "%p")); pattern = p + 2)
        text_add(f->path, sizeof(f->path), "%.*s%d", (int)(p - pattern), pattern, (int)getpid());
    text_add(f->path, sizeof(f->path), "%s", pattern);
}

/** Whether what was opened is there to be written over. @return NULL, or why not */
static const char *refuse(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "no regular file";
    if (st->st_uid != geteuid())
        return "the file of another user";
    return st->st_nlink > 1 ? "it has another name, too" : NULL;
}

/** @return NULL, or why not */
static const char *take(struct iw_own_file *f)
{
    struct stat st;
    if (fstat(f->fd, &st))
        return strerror(errno);
    const char *why = refuse(&st);
    if (why)
        return why;
    if (flock(f->fd, LOCK_EX | LOCK_NB))
        return "another process writes it; %p in the name makes it each process's own";
    if (fchmod(f->fd, 0600) || ftruncate(f->fd, 0))
        return strerror(errno);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return NULL;
}

const char *iw_own_file_open(struct iw_own_file *f, const char *pattern)
{
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    make_path(f, pattern);
    f->fd = -1;
    long fd = sys_open(f->path, flags, 0600);
    if (fd == -ELOOP)
        return "a symbolic link";
    if (fd < 0)
        return strerror((int)-fd);
    f->fd = iw_fd_high((int)fd);
    const char *why = take(f);
    if (why) {
        sys_close(f->fd);
        f->fd = -1;
    }
    return why;
}

bool iw_own_file_is_ours(const struct iw_own_file *f)
{
    struct stat st;
    return f->fd >= 0 && !fstat(f->fd, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

unsigned long iw_own_file_limit(unsigned long want)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < want ? limit.rlim_cur : want;
}

void iw_own_file_close(struct iw_own_file *f)
{
    if (iw_own_file_is_ours(f))
        sys_close(f->fd);
    f->fd = -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for a file that the user has named, which other processes may write, too. Where it reaches
 * the largest size that the process may write (RLIMIT_FSIZE) no line comes, but no SIGXFSZ either,
 * which would end the program. Good in a signal handler; no cancellation point.
 */
#ifndef ANYWARP_APPEND_H
#define ANYWARP_APPEND_H

#include "common/sys.h"

#include <signal.h>

/** @return 0, or a negative errno: not all of it is there */
static inline long append_to(int fd, const char *line, size_t len)
{
    const uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1);
    uint64_t before;
    sys_sigmask(SIG_BLOCK, &too_large, &before);
    long n = sys_write(fd, line, len);
    if (n == -EFBIG)
        sys_sigtake(&too_large);
    sys_sigmask(SIG_SETMASK, &before, NULL);
    return n == (long)len ? 0 : n < 0 ? n : -ENOSPC;
}

/** The same, with a file that is opened for this line, and made if there is none. */
static inline long append(const char *path, const char *line, size_t len)
{
    long fd = sys_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return fd;
    long r = append_to((int)fd, line, len);
    sys_close((int)fd);
    return r;
}

#endif

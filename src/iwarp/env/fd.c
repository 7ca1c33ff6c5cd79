/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/fd.h"

#include "common/sys.h"

#include <sys/resource.h>

#define FIRST 1024

bool iw_fd_more(void)
{
    struct rlimit lim;
    int saved = errno;
    bool more = getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max;
    if (more) {
        rlim_t want = lim.rlim_cur < FIRST ? 2 * FIRST : 2 * lim.rlim_cur;
        lim.rlim_cur = want < lim.rlim_max ? want : lim.rlim_max;
        more = setrlimit(RLIMIT_NOFILE, &lim) == 0;
    }
    errno = saved;
    return more;
}

int iw_fd_high(int fd)
{
    long high;
    do
        high = sys_fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
    while ((high == -EINVAL || high == -EMFILE) && iw_fd_more());
    if (high < 0 && fd <= STDERR_FILENO)
        high = sys_fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (high < 0)
        return fd;
    sys_close(fd);
    return (int)high;
}

static bool is_of(int fd, mode_t kind)
{
    struct stat st;
    return fd >= 0 && sys_fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

bool iw_fd_is_anonymous(int fd)
{
    return is_of(fd, 0);
}

bool iw_fd_is_socket(int fd)
{
    return is_of(fd, S_IFSOCK);
}

ino_t iw_fd_file(int fd)
{
    struct stat st;
    return fd >= 0 && sys_fstat(fd, &st) == 0 ? st.st_ino : 0;
}

void iw_fd_leave_anonymous(int fd)
{
    if (iw_fd_is_anonymous(fd))
        sys_close(fd);
}

void iw_fd_leave_socket(int fd)
{
    if (iw_fd_is_socket(fd))
        sys_close(fd);
}

int iw_fd_socket(int domain, int type, int protocol)
{
    long fd;
    do
        fd = sys_socket(domain, type, protocol);
    while (fd == -EMFILE && iw_fd_more());
    return fd < 0 ? (int)fd : iw_fd_high((int)fd);
}

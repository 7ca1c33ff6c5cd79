/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(const char *path, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static bool write_file(const char *path, const char *fmt, ...)
{
    va_list ap;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    va_start(ap, fmt);
    int n = fd < 0 ? -1 : vdprintf(fd, fmt, ap);
    va_end(ap);
    if (fd >= 0)
        close(fd);
    return n > 0;
}

/** Who may not by himself may as the root of a user namespace. */
static bool leave(void)
{
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWNET) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    write_file("/proc/self/setgroups", "deny");
    return write_file("/proc/self/uid_map", "%u %u 1", uid, uid) &&
           write_file("/proc/self/gid_map", "%u %u 1", gid, gid);
}

static bool loopback_up(void)
{
    struct ifreq r = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0;
    r.ifr_flags |= IFF_UP;
    up = up && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
    if (fd >= 0)
        close(fd);
    return up;
}

bool network_own(void)
{
    return leave() && loopback_up();
}

bool network_may(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(network_own() ? 0 : 1);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/iwcm.h"

#include "common/sys.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#define FIRST_FD 1024 /* programs that use select() keep the descriptors below */

static void raise_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
}

int iw_eventfd_create(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, raise_limit);
    int low = (int)sys_eventfd();
    if (low < 0)
        return low;
    int fd = (int)sys_fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);
    if (fd < 0)
        return low;
    sys_close(low);
    return fd;
}

void iw_eventfd_raise(int fd)
{
    sys_write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

void iw_eventfd_drain(int fd)
{
    uint64_t count;
    sys_read(fd, &count, sizeof(count));
}

bool iw_eventfd_nonblocking(int fd)
{
    long flags = sys_fcntl(fd, F_GETFL, 0);
    return flags >= 0 && (flags & O_NONBLOCK);
}

/** Crash handlers say nothing about a wait: these come from the thread's own instructions. */
static bool is_fault(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP ||
           sig == SIGSYS;
}

bool iw_eventfd_restarts(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction sa;
        if (is_fault(sig) || sigaction(sig, NULL, &sa) || sa.sa_handler == SIG_DFL ||
            sa.sa_handler == SIG_IGN)
            continue;
        if (!(sa.sa_flags & SA_RESTART))
            return false;
    }
    return true;
}

int iw_eventfd_wait(int fd)
{
    for (;;) {
        long r = sys_wait_fd(fd, -1);
        if (r != -EINTR)
            return r < 0 ? (int)r : 0;
        if (!iw_eventfd_restarts())
            return -EINTR;
    }
}

void iw_eventfd_close(int fd)
{
    sys_close(fd);
}

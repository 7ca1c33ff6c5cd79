/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw system calls.
 *
 * librspreload replaces socket(), read(), close(), poll() and others for the whole process; called
 * through them, our own kernel sockets would come back to us as rsockets. Everything that touches a
 * descriptor of ours goes through this file. Each function returns what the kernel returned:
 * a result >= 0, or a negative errno; errno itself is left alone.
 *
 * The blocking wait of the program's threads, sys_wait_fd(), is a libc call on purpose: it is a
 * cancellation point, and who interposes ppoll() passes our descriptors on. epoll_wait() of newer
 * librspreloads does not.
 */
#ifndef ANYWARP_SYS_H
#define ANYWARP_SYS_H

#define _SYS_INLINE static inline __attribute__((unused))

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* syscall() reports through errno, which belongs to the program: save it, hand the code back. */
#define _SYS_RET(call)                                                                             \
    do {                                                                                           \
        int saved_ = errno;                                                                        \
        long r_ = (call);                                                                          \
        if (r_ < 0)                                                                                \
            r_ = -errno;                                                                           \
        errno = saved_;                                                                            \
        return r_;                                                                                 \
    } while (0)

_SYS_INLINE long sys_socket(int domain, int type, int protocol)
{
    _SYS_RET(syscall(SYS_socket, domain, type, protocol));
}

_SYS_INLINE long sys_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    _SYS_RET(syscall(SYS_bind, fd, addr, len));
}

_SYS_INLINE long sys_listen(int fd, int backlog)
{
    _SYS_RET(syscall(SYS_listen, fd, backlog));
}

_SYS_INLINE long sys_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    _SYS_RET(syscall(SYS_connect, fd, addr, len));
}

_SYS_INLINE long sys_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    _SYS_RET(syscall(SYS_accept4, fd, addr, len, flags));
}

_SYS_INLINE long sys_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
    _SYS_RET(syscall(SYS_getsockname, fd, addr, len));
}

_SYS_INLINE long sys_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
    _SYS_RET(syscall(SYS_getpeername, fd, addr, len));
}

_SYS_INLINE long sys_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    _SYS_RET(syscall(SYS_setsockopt, fd, level, name, value, len));
}

_SYS_INLINE long sys_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    _SYS_RET(syscall(SYS_getsockopt, fd, level, name, value, len));
}

_SYS_INLINE long sys_shutdown(int fd, int how)
{
    _SYS_RET(syscall(SYS_shutdown, fd, how));
}

_SYS_INLINE long sys_recv(int fd, void *buf, size_t len, int flags)
{
    _SYS_RET(syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL));
}

_SYS_INLINE long sys_send(int fd, const void *buf, size_t len, int flags)
{
    _SYS_RET(syscall(SYS_sendto, fd, buf, len, flags, NULL, 0));
}

_SYS_INLINE long sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
    _SYS_RET(syscall(SYS_recvmsg, fd, msg, flags));
}

_SYS_INLINE long sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    _SYS_RET(syscall(SYS_sendmsg, fd, msg, flags));
}

_SYS_INLINE long _sys_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    _SYS_RET(syscall(SYS_sendmmsg, fd, msgs, n, flags));
}

_SYS_INLINE long _sys_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    _SYS_RET(syscall(SYS_recvmmsg, fd, msgs, n, flags, NULL));
}

/** Whether it may be a sandbox that says so. */
_SYS_INLINE int sys_is_refused(long r)
{
    return r == -ENOSYS || r == -EPERM || r == -EACCES;
}

/** One by one where a sandbox refuses more. @return messages sent; an error only if that is none */
_SYS_INLINE long sys_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    long r = _sys_sendmmsg(fd, msgs, n, flags);
    if (!sys_is_refused(r))
        return r;
    r = sys_sendmsg(fd, &msgs->msg_hdr, flags);
    return r < 0 ? r : 1;
}

/** Likewise. @return messages received; an error only if that is none */
_SYS_INLINE long sys_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    long r = _sys_recvmmsg(fd, msgs, n, flags);
    if (!sys_is_refused(r))
        return r;
    r = sys_recvmsg(fd, &msgs->msg_hdr, flags);
    msgs->msg_len = r < 0 ? 0 : (unsigned)r;
    return r < 0 ? r : 1;
}

_SYS_INLINE long sys_read(int fd, void *buf, size_t len)
{
    _SYS_RET(syscall(SYS_read, fd, buf, len));
}

_SYS_INLINE long sys_write(int fd, const void *buf, size_t len)
{
    _SYS_RET(syscall(SYS_write, fd, buf, len));
}

_SYS_INLINE long sys_pwritev(int fd, const struct iovec *iov, int n, int64_t at)
{
    _SYS_RET(syscall(SYS_pwritev, fd, iov, n, (long)at, (long)((uint64_t)at >> 32)));
}

/** Opens a file in the directory @p dir; unlike openat(), no cancellation point. */
_SYS_INLINE long sys_openat(int dir, const char *path, int flags, mode_t mode)
{
    _SYS_RET(syscall(SYS_openat, dir, path, flags, mode));
}

_SYS_INLINE long sys_open(const char *path, int flags, mode_t mode)
{
    return sys_openat(AT_FDCWD, path, flags, mode);
}

_SYS_INLINE long sys_close(int fd)
{
    _SYS_RET(syscall(SYS_close, fd));
}

_SYS_INLINE long sys_fcntl(int fd, int cmd, long arg)
{
    _SYS_RET(syscall(SYS_fcntl, fd, cmd, arg));
}

_SYS_INLINE long sys_dup3(int fd, int to, int flags)
{
    _SYS_RET(syscall(SYS_dup3, fd, to, flags));
}

_SYS_INLINE long sys_ioctl(int fd, unsigned long request, void *arg)
{
    _SYS_RET(syscall(SYS_ioctl, fd, request, arg));
}

/**
 * The kernel adds @p by to @p word, atomically. Nobody waits at @p idle; who waits at @p word for
 * a change may wake up without one.
 */
_SYS_INLINE long sys_futex_add(uint32_t *idle, uint32_t *word, int by)
{
    _SYS_RET(syscall(SYS_futex, idle, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, (void *)0, word,
                     FUTEX_OP(FUTEX_OP_ADD, by, FUTEX_OP_CMP_EQ, 0)));
}

/**
 * Waits while @p word is @p value, at most @p ms, or for as long as it takes with @p ms < 0; not
 * shared with other processes. It may end earlier.
 * @return -ETIMEDOUT when that time is over
 */
_SYS_INLINE long sys_futex_wait(uint32_t *word, uint32_t value, int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    _SYS_RET(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ms < 0 ? NULL : &t));
}

_SYS_INLINE long sys_futex_wake(uint32_t *word, int waiters)
{
    _SYS_RET(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters));
}

/** Waits until the kernel has gathered enough, once after the boot of the machine. */
_SYS_INLINE long sys_getrandom(void *buf, size_t len)
{
    _SYS_RET(syscall(SYS_getrandom, buf, len, 0));
}

/** rt_sigprocmask() with sets of 8 bytes; @p old may be NULL. */
_SYS_INLINE long sys_sigmask(int how, const void *set, void *old)
{
    _SYS_RET(syscall(SYS_rt_sigprocmask, how, set, old, 8));
}

/** Takes a signal of the set, of 8 bytes, if one is pending; no cancellation point. */
_SYS_INLINE long sys_sigtake(const void *set)
{
    struct timespec now = {0};
    _SYS_RET(syscall(SYS_rt_sigtimedwait, set, NULL, &now, 8));
}

/** Bytes sent that the peer's TCP has not acknowledged, a FIN counted as one. */
_SYS_INLINE long sys_unacked(int fd)
{
    int n;
    _SYS_RET(syscall(SYS_ioctl, fd, SIOCOUTQ, &n) < 0 ? -1 : n);
}

_SYS_INLINE long sys_memfd_create(const char *name, unsigned flags)
{
    _SYS_RET(syscall(SYS_memfd_create, name, flags));
}

_SYS_INLINE long sys_ftruncate(int fd, long len)
{
    _SYS_RET(syscall(SYS_ftruncate, fd, len));
}

_SYS_INLINE long sys_lseek(int fd, long to, int whence)
{
    _SYS_RET(syscall(SYS_lseek, fd, to, whence));
}

_SYS_INLINE long sys_fstat(int fd, struct stat *st)
{
    _SYS_RET(syscall(SYS_fstat, fd, st));
}

/** @param fs  a struct statfs */
_SYS_INLINE long sys_fstatfs(int fd, void *fs)
{
    _SYS_RET(syscall(SYS_fstatfs, fd, fs));
}

/** Readable when the process has ended. */
_SYS_INLINE long sys_pidfd_open(pid_t pid)
{
    _SYS_RET(syscall(SYS_pidfd_open, pid, 0));
}

_SYS_INLINE long sys_eventfd(unsigned count, int flags)
{
    _SYS_RET(syscall(SYS_eventfd2, count, EFD_CLOEXEC | flags));
}

_SYS_INLINE long sys_timerfd(void)
{
    _SYS_RET(syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

/** Makes it readable at @p ns of CLOCK_MONOTONIC; 0: never. */
_SYS_INLINE long sys_timerfd_set(int fd, uint64_t ns)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};
    _SYS_RET(syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &at, NULL));
}

_SYS_INLINE long sys_epoll_create(void)
{
    _SYS_RET(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
}

_SYS_INLINE long sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
    _SYS_RET(syscall(SYS_epoll_ctl, epfd, op, fd, ev));
}

/** Of linux/membarrier.h. */
_SYS_INLINE long sys_membarrier(int cmd)
{
    _SYS_RET(syscall(SYS_membarrier, cmd, 0, 0));
}

/** Sleeps, or less after a signal; unlike nanosleep(), no cancellation point. */
_SYS_INLINE long sys_nap(int64_t ns)
{
    struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    _SYS_RET(syscall(SYS_nanosleep, &ts, NULL));
}

/** Looks at an epoll set without waiting. */
_SYS_INLINE long sys_epoll_look(int epfd, struct epoll_event *ev, int max)
{
    _SYS_RET(syscall(SYS_epoll_pwait, epfd, ev, max, 0, NULL, 8));
}

/** Waits on an epoll set, for a thread of our own. No cancellation point. */
_SYS_INLINE long sys_wait(int epfd, struct epoll_event *ev, int max)
{
    _SYS_RET(syscall(SYS_epoll_pwait, epfd, ev, max, -1, NULL, 8));
}

/**
 * Waits for one readable descriptor; @p ns is nanoseconds, negative for ever. One that is closed is
 * -EBADF. A cancellation point.
 */
_SYS_INLINE long sys_wait_fd(int fd, int64_t ns)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    int saved = errno;
    long r = ppoll(&p, 1, ns < 0 ? NULL : &ts, NULL);
    if (r < 0)
        r = -errno;
    else if (p.revents & POLLNVAL)
        r = -EBADF;
    errno = saved;
    return r;
}

#endif

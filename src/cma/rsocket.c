/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets are not offered: every call fails with ENOSYS. */
#include "cma.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE(type, name, params)                                                                 \
    type name params                                                                               \
    {                                                                                              \
        return (type)cma_fail(ENOSYS);                                                             \
    }

REFUSE(int, rsocket, (int domain, int type, int protocol))
REFUSE(int, rbind, (int fd, const struct sockaddr *addr, socklen_t len))
REFUSE(int, rlisten, (int fd, int backlog))
REFUSE(int, raccept, (int fd, struct sockaddr *addr, socklen_t *len))
REFUSE(int, rconnect, (int fd, const struct sockaddr *addr, socklen_t len))
REFUSE(int, rshutdown, (int fd, int how))
REFUSE(int, rclose, (int fd))
REFUSE(int, rgetpeername, (int fd, struct sockaddr *addr, socklen_t *len))
REFUSE(int, rgetsockname, (int fd, struct sockaddr *addr, socklen_t *len))

REFUSE(ssize_t, rrecv, (int fd, void *buf, size_t len, int flags))
REFUSE(ssize_t, rrecvfrom,
       (int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen))
REFUSE(ssize_t, rrecvmsg, (int fd, struct msghdr *msg, int flags))
REFUSE(ssize_t, rsend, (int fd, const void *buf, size_t len, int flags))
REFUSE(ssize_t, rsendto,
       (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
        socklen_t addrlen))
REFUSE(ssize_t, rsendmsg, (int fd, const struct msghdr *msg, int flags))
REFUSE(ssize_t, rread, (int fd, void *buf, size_t len))
REFUSE(ssize_t, rreadv, (int fd, const struct iovec *iov, int n))
REFUSE(ssize_t, rwrite, (int fd, const void *buf, size_t len))
REFUSE(ssize_t, rwritev, (int fd, const struct iovec *iov, int n))

REFUSE(int, rpoll, (struct pollfd * fds, nfds_t n, int timeout))
REFUSE(int, rselect,
       (int n, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout))

REFUSE(int, repoll_create, (int flags))
REFUSE(int, repoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
REFUSE(int, repoll_wait, (int epfd, struct epoll_event *events, int maxevents, int timeout))

REFUSE(int, rsetsockopt, (int fd, int level, int name, const void *value, socklen_t len))
REFUSE(int, rgetsockopt, (int fd, int level, int name, void *value, socklen_t *len))
REFUSE(int, rfcntl, (int fd, int cmd, ...))

REFUSE(off_t, riomap, (int fd, void *buf, size_t len, int prot, int flags, off_t offset))
REFUSE(int, riounmap, (int fd, void *buf, size_t len))
REFUSE(size_t, riowrite, (int fd, const void *buf, size_t len, off_t offset, int flags))

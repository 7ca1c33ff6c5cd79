/* SPDX-License-Identifier: BSD-2-Clause */
/* librspreload.so: the calls that make, bind and describe sockets. */
#include "common/rs_plain.h"
#include "preload/next.h"
#include "preload/rs_close.h"
#include "preload/rs_connect.h"
#include "preload/rs_epoll.h"
#include "preload/rs_numbers.h"
#include "preload/rs_rules.h"
#include "preload/rs_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define KIND (~(SOCK_NONBLOCK | SOCK_CLOEXEC))

typedef int socket_fn(int, int, int);
typedef int fcntl_fn(int, int, ...);
typedef int address_fn(int, const struct sockaddr *, socklen_t);
typedef int name_fn(int, struct sockaddr *, socklen_t *);
typedef int accept4_fn(int, struct sockaddr *, socklen_t *, int);

/* ---- Making ---- */

static void set_size(int rs, int option, const char *variable)
{
    const char *text = getenv(variable);
    int value = text ? atoi(text) : 0;
    if (value > 0)
        rsetsockopt(rs, SOL_RDMA, option, &value, sizeof value);
}

/** Lets @p fd stand for the rsocket, and gives the reference away. @return fd, or -1 and errno */
static int stand_for(int fd, int rs, int domain, enum pre_state state)
{
    struct pre_socket *s = fd >= 0 && fd < RS_NUMBERS ? pre_new(rs, domain, state) : NULL;
    if (!s) {
        int saved = fd < 0 ? errno : fd < RS_NUMBERS ? ENOMEM : EMFILE;
        rclose(rs);
        if (fd >= 0)
            syscall(SYS_close, fd);
        errno = saved;
        return -1;
    }
    pre_set(fd, s);
    pre_put(s);
    return fd;
}

/** Has an rsocket stand for @p fd. @return fd, or -1 and errno */
static int on_rsocket(int fd, int domain, int type, int protocol)
{
    int rs = rsocket(domain, type, protocol);
    if (rs < 0 && pre_may_be_plain())
        return fd; /* without RDMA it is what it was */
    if (rs < 0) {
        syscall(SYS_close, fd);
        errno = EACCES;
        return -1;
    }
    set_size(rs, RDMA_SQSIZE, "RS_SQ_SIZE");
    set_size(rs, RDMA_RQSIZE, "RS_RQ_SIZE");
    set_size(rs, RDMA_INLINE, "RS_INLINE");
    return stand_for(fd, rs, domain, PRE_NEW);
}

EXPORT int socket(int domain, int type, int protocol)
{
    int fd = pre_fresh(NEXT(socket_fn *, "socket")(domain, type, protocol));
    if (fd < 0 || !pre_wanted(domain, type & KIND, protocol))
        return fd;
    pre_shield();
    fd = on_rsocket(fd, domain, type, protocol);
    pre_unshield();
    return fd;
}

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return NEXT(address_fn *, "bind")(fd, addr, len);
    int r = rbind(s->rs, addr, len);
    if (r == 0 && len <= sizeof s->own) {
        memcpy(&s->own, addr, len);
        s->own_len = len;
    }
    pre_put(s);
    return r;
}

EXPORT int listen(int fd, int backlog)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return NEXT(int (*)(int, int), "listen")(fd, backlog);
    int yes = 1;
    rsetsockopt(s->rs, SOL_RDMA, RS_TAKE_TCP, &yes, sizeof yes);
    int r = rlisten(s->rs, backlog);
    if (r == 0)
        atomic_store(&s->state, PRE_LISTENING);
    pre_put(s);
    return r;
}

/* A connection without RDMA: as accept4() returns it. */
static int accept_plain(int fd, int flags)
{
    NEXT(fcntl_fn *, "fcntl")(fd, F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0);
    NEXT(fcntl_fn *, "fcntl")(fd, F_SETFD, flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
    return fd;
}

/** @param may_wait  whether the program lets it */
static int accept_now(struct pre_socket *s, struct sockaddr *addr, socklen_t *len, bool *may_wait)
{
    pthread_mutex_lock(&s->lock);
    int flags = rfcntl(s->rs, F_GETFL);
    rfcntl(s->rs, F_SETFL, O_NONBLOCK);
    int rs = raccept(s->rs, addr, len), saved = errno;
    rfcntl(s->rs, F_SETFL, flags);
    pthread_mutex_unlock(&s->lock);
    errno = saved;
    *may_wait = !(flags & O_NONBLOCK);
    return rs;
}

static int accept_within(struct pre_socket *s, struct sockaddr *addr, socklen_t *len, int ms)
{
    struct pre_limit limit = {s, POLLIN, ms, 0};
    bool may_wait;
    int rs;
    do
        rs = accept_now(s, addr, len, &may_wait);
    while (rs < 0 && errno == EAGAIN && may_wait && pre_limit_wait(&limit));
    return rs;
}

static int accept_ours(struct pre_socket *s, struct sockaddr *addr, socklen_t *len, int flags)
{
    int ms = atomic_load(&s->recv_ms);
    int rs = ms ? accept_within(s, addr, len, ms) : raccept(s->rs, addr, len);
    if (rs < 0)
        return errno == EBADF ? errno = EINVAL, -1 : -1;
    if (rfcntl(rs, F_GETFL) < 0)
        return accept_plain(pre_fresh(rs), flags);
    if (flags & SOCK_NONBLOCK)
        rfcntl(rs, F_SETFL, O_NONBLOCK);
    int fd = pre_fresh(NEXT(socket_fn *, "socket")(s->domain, SOCK_STREAM | (flags & ~KIND), 0));
    return stand_for(fd, rs, s->domain, PRE_CONNECTED);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return pre_fresh(NEXT(accept4_fn *, "accept4")(fd, addr, len, flags));
    int r = accept_ours(s, addr, len, flags);
    pre_epoll_used_up(fd, EPOLLIN | EPOLLRDNORM);
    pre_put(s);
    return r;
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return pre_fresh(NEXT(name_fn *, "accept")(fd, addr, len));
    int r = accept_ours(s, addr, len, 0);
    pre_epoll_used_up(fd, EPOLLIN | EPOLLRDNORM);
    pre_put(s);
    return r;
}

/* ---- Ends and flags ---- */

EXPORT int shutdown(int fd, int how)
{
    struct pre_socket *s = pre_get_settled(fd);
    if (!s)
        return NEXT(int (*)(int, int), "shutdown")(fd, how);
    int r = rshutdown(s->rs, how);
    pre_put(s);
    return r;
}

static void set_flags(int fd, int flags)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return;
    rfcntl(s->rs, F_SETFL, flags & O_NONBLOCK);
    pre_put(s);
}

#define FCNTL(name)                                                                                \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, command);                                                                     \
        void *argument = va_arg(ap, void *);                                                       \
        va_end(ap);                                                                                \
        int r = NEXT(fcntl_fn *, #name)(fd, command, argument);                                    \
        if (r == 0 && command == F_SETFL)                                                          \
            set_flags(fd, (int)(uintptr_t)argument);                                               \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? pre_duplicated(fd, r) : r;       \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

static int readable_bytes(const struct pre_socket *s, int *count)
{
    socklen_t len = sizeof *count;
    if (atomic_load(&s->state) == PRE_LISTENING) {
        errno = EINVAL;
        return -1;
    }
    *count = 0;
    rgetsockopt(s->rs, SOL_RDMA, RS_UNREAD, count, &len);
    return 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    struct pre_socket *s = request == FIONREAD ? pre_get_settled(fd) : NULL;
    if (s) {
        int r = readable_bytes(s, argument);
        pre_put(s);
        return r;
    }
    int r = NEXT(int (*)(int, unsigned long, ...), "ioctl")(fd, request, argument);
    if (r == 0 && request == FIONBIO)
        set_flags(fd, *(int *)argument ? O_NONBLOCK : 0);
    return r;
}

/* ---- Names and options ---- */

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
    struct pre_socket *s = pre_get_settled(fd);
    if (s && !s->own_len && atomic_load(&s->state) == PRE_NEW) {
        pre_put(s);
        s = NULL;
    }
    if (!s)
        return NEXT(name_fn *, "getsockname")(fd, addr, len);
    int r = rgetsockname(s->rs, addr, len);
    pre_put(s);
    return r;
}

EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
    struct pre_socket *s = pre_get_settled(fd);
    if (s && atomic_load(&s->state) != PRE_CONNECTED) {
        pre_put(s);
        s = NULL;
    }
    if (!s)
        return NEXT(name_fn *, "getpeername")(fd, addr, len);
    int r = rgetpeername(s->rs, addr, len);
    pre_put(s);
    return r;
}

static void set_timeout(struct pre_socket *s, int option, const void *value, socklen_t len)
{
    struct timeval t;
    if (len < sizeof t || (option != SO_RCVTIMEO && option != SO_SNDTIMEO))
        return;
    memcpy(&t, value, sizeof t);
    int64_t ms = (int64_t)t.tv_sec * 1000 + (t.tv_usec + 999) / 1000;
    atomic_store(option == SO_RCVTIMEO ? &s->recv_ms : &s->send_ms,
                 ms > INT32_MAX ? INT32_MAX : (int)ms);
}

typedef int set_fn(int, int, int, const void *, socklen_t);

/* Both take it: the number in case it becomes the connection. */
EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    struct pre_socket *s = pre_get_settled(fd);
    int r = NEXT(set_fn *, "setsockopt")(fd, level, option, value, len);
    if (!s)
        return r;
    int saved = errno;
    if (r == 0 && level == SOL_SOCKET)
        set_timeout(s, option, value, len);
    if (rsetsockopt(s->rs, level, option, value, len) == 0)
        r = 0;
    pre_put(s);
    errno = saved;
    return r;
}

static int get_error(struct pre_socket *s, int *error)
{
    socklen_t len = sizeof *error;
    if (atomic_load(&s->state) != PRE_FAILED)
        return rgetsockopt(s->rs, SOL_SOCKET, SO_ERROR, error, &len);
    *error = atomic_exchange(&s->error, 0);
    return 0;
}

static int get_option(struct pre_socket *s, int option, void *value, socklen_t *len)
{
    int number = option == SO_ACCEPTCONN && atomic_load(&s->state) == PRE_LISTENING;
    if (option == SO_ERROR && get_error(s, &number) < 0)
        return -1;
    if (*len > sizeof number)
        *len = sizeof number;
    memcpy(value, &number, *len);
    return 0;
}

typedef int get_fn(int, int, int, void *, socklen_t *);

EXPORT int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    struct pre_socket *s = pre_get_settled(fd);
    int r = -1;
    if (s && level == SOL_SOCKET && (option == SO_ERROR || option == SO_ACCEPTCONN))
        r = get_option(s, option, value, len);
    else if (s)
        r = rgetsockopt(s->rs, level, option, value, len);
    if (r < 0) /* what rsockets do not know */
        r = NEXT(get_fn *, "getsockopt")(fd, level, option, value, len);
    if (s)
        pre_put(s);
    return r;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* librspreload.so: the calls that close and duplicate numbers. */
#include "preload/rs_close.h"

#include "preload/next.h"
#include "preload/rs_epoll.h"
#include "preload/rs_numbers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define ONLY_CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC, which older headers lack */

static void forget(int fd)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return;
    pre_epoll_forget(fd, s);
    pre_set(fd, NULL);
    if (atomic_load(
            &s->duplicated)) /* another one, closed meanwhile, may have left its place here */
        pre_epoll_forget(fd, s);
    /* The number is still taken: what closes the rsocket is not in the way of another thread. */
    pre_put(s);
}

/** Before a number goes, or becomes another. */
static void leave(int fd)
{
    pre_epoll_close(fd);
    forget(fd);
}

int pre_fresh(int fd)
{
    int saved = errno;
    if (pre_own_process()) {
        pre_epoll_fresh(fd);
        forget(fd);
    }
    errno = saved;
    return fd;
}

static void leave_range(unsigned first, unsigned last)
{
    if (!pre_own_process())
        return;
    for (unsigned fd = first; fd <= last && fd < RS_NUMBERS; fd++)
        leave((int)fd);
}

EXPORT int close(int fd)
{
    if (pre_own_process())
        leave(fd);
    return NEXT(int (*)(int), "close")(fd);
}

int close_range(unsigned first, unsigned last, int flags);
EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int (*next)(unsigned, unsigned, int) = NEXT(int (*)(unsigned, unsigned, int), "close_range");
    if (!next) {
        errno = ENOSYS;
        return -1;
    }
    if (!(flags & ONLY_CLOEXEC))
        leave_range(first, last);
    return next(first, last, flags);
}

void closefrom(int first);
EXPORT void closefrom(int first)
{
    void (*next)(int) = NEXT(void (*)(int), "closefrom");
    leave_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    if (next)
        next(first);
}

/* Its close() is one that the C library makes itself. */
EXPORT int fclose(FILE *file)
{
    int fd = fileno(file);
    if (fd >= 0 && pre_own_process())
        leave(fd);
    return NEXT(int (*)(FILE *), "fclose")(file);
}

int pre_duplicated(int from, int to)
{
    if (to < 0 || from == to || !pre_own_process())
        return to;
    struct pre_socket *s = pre_get(from);
    leave(to);
    if (s) {
        atomic_store(&s->duplicated, true);
        pre_set(to, s);
        pre_put(s);
    }
    return to;
}

EXPORT int dup(int fd)
{
    return pre_duplicated(fd, pre_fresh(NEXT(int (*)(int), "dup")(fd)));
}

EXPORT int dup2(int from, int to)
{
    return pre_duplicated(from, NEXT(int (*)(int, int), "dup2")(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    return pre_duplicated(from, NEXT(int (*)(int, int, int), "dup3")(from, to, flags));
}

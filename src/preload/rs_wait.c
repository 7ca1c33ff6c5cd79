/* SPDX-License-Identifier: BSD-2-Clause */
/* poll() and select() over rsockets and the kernel's descriptors. */
#include "preload/rs_wait.h"

#include "preload/next.h"
#include "preload/rs_connect.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>

#define FEW 64

uint64_t pre_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int pre_left(uint64_t start, int timeout_ms)
{
    uint64_t spent = pre_now_ms() - start;
    return timeout_ms < 0 ? -1 : spent >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)spent;
}

int pre_ms(const struct timespec *timeout)
{
    if (!timeout)
        return -1;
    if (timeout->tv_sec > 2000000)
        return 2000000000;
    return (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
}

bool pre_limit_wait(struct pre_limit *limit)
{
    struct pollfd p = {limit->s->rs, limit->events, 0};
    if (!limit->start)
        limit->start = pre_now_ms();
    int r = rpoll(&p, 1, pre_left(limit->start, limit->ms));
    if (r == 0)
        errno = EAGAIN;
    return r > 0;
}

bool pre_mask(const sigset_t *mask, sigset_t *before)
{
    sigset_t waiting;
    if (!mask)
        return true;
    bool some = false;
    sigpending(&waiting);
    for (int i = 1; i < NSIG; i++)
        some |= sigismember(&waiting, i) == 1 && sigismember(mask, i) == 0;
    pthread_sigmask(SIG_SETMASK, mask, before);
    if (some)
        pthread_sigmask(SIG_SETMASK, before, NULL);
    return !some;
}

void pre_mask_restore(const sigset_t *mask, const sigset_t *before)
{
    int saved = errno;
    if (mask)
        pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = saved;
}

typedef int poll_fn(struct pollfd *, nfds_t, int);

struct watch {
    struct pre_socket *s;
    bool failed;
};

struct look {
    int failed;        /* to connect: these have something without a look */
    bool any;          /* of ours */
    uint64_t until_ms; /* then the first of those that connect are given up; 0: none */
};

static void gather(const struct pollfd *fds, struct pollfd *to, struct watch *watches, nfds_t n,
                   struct look *look)
{
    *look = (struct look){0};
    for (nfds_t i = 0; i < n; i++) {
        struct pre_socket *s = watches[i].s = pre_get(fds[i].fd);
        to[i] = (struct pollfd){s ? s->rs : fds[i].fd, fds[i].events, 0};
        watches[i].failed = s && atomic_load(&s->state) == PRE_FAILED;
        if (watches[i].failed)
            to[i].fd = -1;
        look->failed += watches[i].failed;
        look->any |= s != NULL;
        if (s && atomic_load(&s->state) == PRE_CONNECTING &&
            (!look->until_ms || s->until_ms < look->until_ms))
            look->until_ms = s->until_ms;
    }
}

/* @return the time to sleep, if there is @p left_ms of it */
static int nap(const struct look *look, int left_ms)
{
    if (look->failed)
        return 0;
    if (!look->until_ms)
        return left_ms;
    uint64_t now = pre_now_ms();
    uint64_t ms = now < look->until_ms ? look->until_ms - now : 0;
    return left_ms >= 0 && ms > (uint64_t)left_ms ? left_ms : (int)ms;
}

/* @return false if a number has become plain TCP meanwhile: look once more */
static bool spread(struct pollfd *fds, const struct pollfd *from, struct watch *watches, nfds_t n)
{
    bool same = true;
    for (nfds_t i = 0; i < n; i++) {
        struct pre_socket *s = watches[i].s;
        fds[i].revents = from[i].revents;
        if (watches[i].failed)
            fds[i].revents = (short)((fds[i].events & (POLLIN | POLLOUT)) | POLLERR | POLLHUP);
        if (!s)
            continue;
        bool began = atomic_load(&s->state) == PRE_CONNECTING;
        if (began && (fds[i].revents || pre_now_ms() >= s->until_ms))
            same &= pre_settle(fds[i].fd, s) && atomic_load(&s->state) != PRE_FAILED;
        pre_put(s);
    }
    return same;
}

int pre_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct pollfd few_fds[FEW], *to = few_fds;
    struct watch few_watches[FEW], *watches = few_watches;
    if (n > FEW) {
        to = calloc(n, sizeof *to);
        watches = calloc(n, sizeof *watches);
        if (!to || !watches) {
            free(to);
            free(watches);
            errno = ENOMEM;
            return -1;
        }
    }
    uint64_t start = timeout_ms > 0 ? pre_now_ms() : 0;
    bool same;
    int r, left, slept;
    do {
        struct look look;
        gather(fds, to, watches, n, &look);
        left = timeout_ms > 0 ? pre_left(start, timeout_ms) : timeout_ms;
        slept = nap(&look, left);
        r = look.any ? rpoll(to, n, slept) : NEXT(poll_fn *, "poll")(to, n, slept);
        int saved = errno;
        same = spread(fds, to, watches, n);
        errno = saved;
        r = r < 0 ? r : r + look.failed;
    } while (r >= 0 && (!same || (r == 0 && slept != left)));
    if (n > FEW) {
        free(to);
        free(watches);
    }
    return r;
}

static bool any_ours(struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++) {
        struct pre_socket *s = pre_get(fds[i].fd);
        if (!s)
            continue;
        pre_put(s);
        return true;
    }
    return false;
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    return any_ours(fds, n) ? pre_poll(fds, n, timeout) : NEXT(poll_fn *, "poll")(fds, n, timeout);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
    if (n > size / sizeof *fds)
        abort();
    return poll(fds, n, timeout);
}

typedef int ppoll_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t before;
    if (!any_ours(fds, n))
        return NEXT(ppoll_fn *, "ppoll")(fds, n, timeout, mask);
    if (!pre_mask(mask, &before)) {
        errno = EINTR;
        return -1;
    }
    int r = pre_poll(fds, n, pre_ms(timeout));
    pre_mask_restore(mask, &before);
    return r;
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t size);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *mask, size_t size)
{
    if (n > size / sizeof *fds)
        abort();
    return ppoll(fds, n, timeout, mask);
}

/* What a program selects; with numbers beyond FD_SETSIZE, too, if its sets are as large. */
struct selection {
    fd_set *in, *out, *except;
    struct pollfd *few, *fds; /* of FD_SETSIZE, and those that are used */
    nfds_t count;
};

static bool is_in(const fd_set *set, int fd)
{
    return set && (size_t)((const fd_mask *)set)[fd / NFDBITS] >> (fd % NFDBITS) & 1;
}

static void clear(fd_set *set, int fd)
{
    ((fd_mask *)set)[fd / NFDBITS] &= ~(fd_mask)((size_t)1 << (fd % NFDBITS));
}

/* So much the kernel reads of a set: getdtablesize() is more than the sets of some programs have.
 */
static int table_size(void)
{
    char line[128];
    int size = FD_SETSIZE;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "FDSize: %d", &size) != 1)
        ;
    if (file)
        fclose(file);
    return size;
}

static void read_sets(int n, struct selection *to)
{
    for (int fd = 0; fd < n; fd++) {
        int events = 0;
        if (is_in(to->in, fd))
            events |= POLLIN;
        if (is_in(to->out, fd))
            events |= POLLOUT;
        if (is_in(to->except, fd))
            events |= POLLPRI;
        if (events)
            to->fds[to->count++] = (struct pollfd){fd, (short)events, 0};
    }
}

static void free_selection(struct selection *s)
{
    if (s->fds != s->few)
        free(s->fds);
}

/* @return 1: of ours, too, and to be freed; 0: not; -1 and errno */
static int select_any_ours(int n, struct selection *to)
{
    if (n <= 0 || !pre_any())
        return 0;
    if (n > FD_SETSIZE) {
        int most = table_size();
        n = n < most ? n : most;
        to->fds = calloc((size_t)n, sizeof *to->fds);
        if (!to->fds)
            return -1;
    }
    read_sets(n, to);
    if (any_ours(to->fds, to->count))
        return 1;
    free_selection(to);
    return 0;
}

static int keep(fd_set *set, const struct pollfd *fds, nfds_t count, short asked, short bits)
{
    int found = 0;
    for (nfds_t i = 0; set && i < count; i++) {
        if (!(fds[i].events & asked))
            continue;
        if (fds[i].revents & bits)
            found++;
        else
            clear(set, fds[i].fd);
    }
    return found;
}

static int select_ours(const struct selection *s, int timeout_ms)
{
    const struct pollfd *fds = s->fds;
    int r = pre_poll(s->fds, s->count, timeout_ms);
    if (r < 0)
        return r;
    for (nfds_t i = 0; i < s->count; i++)
        if (fds[i].revents & POLLNVAL) {
            errno = EBADF;
            return -1;
        }
    return keep(s->in, fds, s->count, POLLIN, POLLIN | POLLHUP | POLLERR) +
           keep(s->out, fds, s->count, POLLOUT, POLLOUT | POLLERR) +
           keep(s->except, fds, s->count, POLLPRI, POLLPRI);
}

typedef int select_fn(int, fd_set *, fd_set *, fd_set *, struct timeval *);

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
    struct pollfd few[FD_SETSIZE];
    struct selection s = {in, out, except, few, few, 0};
    int ours = select_any_ours(n, &s);
    if (ours <= 0)
        return ours < 0 ? -1 : NEXT(select_fn *, "select")(n, in, out, except, timeout);
    struct timespec t = {timeout ? timeout->tv_sec : 0, timeout ? timeout->tv_usec * 1000 : 0};
    int ms = pre_ms(timeout ? &t : NULL);
    uint64_t start = pre_now_ms();
    int r = select_ours(&s, ms), saved = errno;
    if (timeout) { /* Linux tells what is left */
        int left = pre_left(start, ms);
        *timeout = (struct timeval){left / 1000, left % 1000 * 1000L};
    }
    free_selection(&s);
    errno = saved;
    return r;
}

typedef int pselect_fn(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                       const sigset_t *);

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
                   const sigset_t *mask)
{
    struct pollfd few[FD_SETSIZE];
    struct selection s = {in, out, except, few, few, 0};
    sigset_t before;
    int ours = select_any_ours(n, &s), r = -1, saved = EINTR;
    if (ours <= 0)
        return ours < 0 ? -1 : NEXT(pselect_fn *, "pselect")(n, in, out, except, timeout, mask);
    if (pre_mask(mask, &before)) {
        r = select_ours(&s, pre_ms(timeout));
        saved = errno;
        pre_mask_restore(mask, &before);
    }
    free_selection(&s);
    errno = saved;
    return r;
}

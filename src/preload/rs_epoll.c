/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/rs_epoll.h"

#include "preload/next.h"
#include "preload/rs_close.h"
#include "preload/rs_numbers.h"
#include "preload/rs_wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FEW    64
#define FREE   (-1)
#define ENDED  (-2) /* free when nobody waits any more */
#define ALWAYS (EPOLLERR | EPOLLHUP)
#define CHANGE ((uintptr_t)&sets) /* what the kernel tells of struct set's change */

struct member {
    int fd;
    struct epoll_event event; /* events 0: EPOLLONESHOT, which was fired */
    uint32_t told;            /* EPOLLET: what was told, and not used up since */
    bool orphan;              /* it was added by another number of the socket, since closed */
};

/* Once made, a set is used again and never freed: a thread may look at one that has just gone. */
struct set {
    struct set *next;
    pthread_mutex_t lock;
    atomic_int fd;    /* or FREE, or ENDED; changed under the lock */
    int change;       /* eventfd in the kernel's set: ours has changed under who waits */
    unsigned version; /* of members */
    unsigned waiting,
        behind; /* threads that wait for members of this version, and of earlier ones */
    struct member *members;
    unsigned count, room, first; /* first: whose turn it is to be told of first */
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct set *) sets;
static atomic_uint edges; /* members with EPOLLET that there ever were */

typedef int ctl_fn(int, int, int, struct epoll_event *);
typedef int wait_fn(int, struct epoll_event *, int, int);

static void in_child(void)
{
    atomic_store(&sets, NULL);
    pthread_mutex_init(&sets_lock, NULL);
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* A handler of a signal may close a file while its thread has a set locked: others are only looked
 * at. @return a set of that number, locked; or NULL */
static struct set *lock_any(int epfd)
{
    for (struct set *set = atomic_load(&sets); set; set = set->next) {
        if (set->fd != epfd)
            continue;
        pthread_mutex_lock(&set->lock);
        if (set->fd == epfd)
            return set;
        pthread_mutex_unlock(&set->lock);
    }
    return NULL;
}

/** @return the set, locked; NULL: there is none beside the kernel's */
static struct set *lock_set(int epfd)
{
    return epfd < 0 ? NULL : lock_any(epfd);
}

/* Whoever sleeps in the kernel's set wakes when ours changes. */
static bool begin(struct set *set, int epfd)
{
    struct epoll_event event = {EPOLLIN, {.u64 = CHANGE}};
    set->change = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    set->count = 0;
    if (set->change < 0)
        return false;
    if (NEXT(ctl_fn *, "epoll_ctl")(epfd, EPOLL_CTL_ADD, set->change, &event) == 0) {
        set->fd = epfd;
        return true;
    }
    int saved = errno;
    syscall(SYS_close, set->change);
    errno = saved;
    return false;
}

/* Who waits is on the old members until it is back: till then all are woken. */
static void changed(struct set *set)
{
    uint64_t one = 1;
    set->version++;
    set->behind += set->waiting;
    set->waiting = 0;
    syscall(SYS_write, set->change, &one, sizeof one);
}

/* Lock held. */
static void free_if_left(struct set *set)
{
    if (set->fd != ENDED || set->waiting || set->behind)
        return;
    syscall(SYS_close, set->change);
    set->fd = FREE;
}

/* Lock held. */
static void end(struct set *set)
{
    set->fd = ENDED;
    set->count = 0;
    changed(set);
    free_if_left(set);
}

void pre_epoll_fresh(int epfd)
{
    struct set *set = lock_set(epfd);
    if (!set)
        return;
    set->change = -1;
    end(set);
    pthread_mutex_unlock(&set->lock);
}

EXPORT int epoll_create(int size)
{
    return pre_fresh(NEXT(int (*)(int), "epoll_create")(size));
}

EXPORT int epoll_create1(int flags)
{
    return pre_fresh(NEXT(int (*)(int), "epoll_create1")(flags));
}

/** @return a set, locked; NULL and errno */
static struct set *make_set(int epfd)
{
    struct set *set = lock_set(epfd);
    if (set)
        return set;
    if (epfd < 0) {
        errno = EBADF;
        return NULL;
    }
    pthread_mutex_lock(&sets_lock);
    set = lock_set(epfd); /* another thread may have made it */
    if (!set && (set = lock_any(FREE)) == NULL && (set = calloc(1, sizeof *set))) {
        pthread_mutex_init(&set->lock, NULL);
        pthread_mutex_lock(&set->lock);
        set->next = atomic_load(&sets);
        set->fd = FREE;
        atomic_store(&sets, set);
    }
    if (set && set->fd < 0 && !begin(set, epfd)) {
        pthread_mutex_unlock(&set->lock);
        set = NULL;
    }
    pthread_mutex_unlock(&sets_lock);
    return set;
}

static struct member *find(struct set *set, int fd)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->members[i].fd == fd)
            return &set->members[i];
    return NULL;
}

static int add(struct set *set, int fd, const struct epoll_event *event)
{
    if (set->count == set->room) {
        unsigned room = set->room ? 2 * set->room : 16;
        struct member *members = realloc(set->members, room * sizeof *members);
        if (!members)
            return -ENOMEM;
        set->members = members;
        set->room = room;
    }
    set->members[set->count++] = (struct member){fd, *event, 0, false};
    return 0;
}

static void take_off(struct set *set, struct member *m)
{
    *m = set->members[--set->count];
}

/* For a number that stands for an rsocket. @return 0 or -errno */
static int control(struct set *set, int op, int fd, const struct epoll_event *event)
{
    struct member *m = find(set, fd);
    if (!event && op != EPOLL_CTL_DEL)
        return -EFAULT;
    if (op != EPOLL_CTL_DEL && event->events & EPOLLET)
        atomic_fetch_add(&edges, 1);
    if (m && m->orphan) {
        if (op == EPOLL_CTL_ADD) /* the kernel would tell of both */
            take_off(set, m);
        m = NULL;
    }
    switch (op) {
    case EPOLL_CTL_ADD:
        return m ? -EEXIST : add(set, fd, event);
    case EPOLL_CTL_MOD:
        if (m)
            *m = (struct member){fd, *event, 0, false};
        return m ? 0 : -ENOENT;
    case EPOLL_CTL_DEL:
        if (m)
            take_off(set, m);
        return m ? 0 : -ENOENT;
    default:
        return -EINVAL;
    }
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    struct pre_socket *s = pre_get(fd);
    if (!s)
        return NEXT(ctl_fn *, "epoll_ctl")(epfd, op, fd, event);
    int r = -1;
    struct set *set = make_set(epfd);
    if (set) {
        r = control(set, op, fd, event);
        if (r == 0)
            changed(set);
        pthread_mutex_unlock(&set->lock);
        if (r < 0) {
            errno = -r;
            r = -1;
        }
    }
    pre_put(s);
    return r;
}

static void each_set(int fd, void (*act)(struct set *, struct member *, const void *),
                     const void *how)
{
    for (struct set *set = atomic_load(&sets); set; set = set->next) {
        pthread_mutex_lock(&set->lock);
        struct member *m = set->fd >= 0 ? find(set, fd) : NULL;
        if (m)
            act(set, m, how);
        pthread_mutex_unlock(&set->lock);
    }
}

static void to_kernel(struct set *set, struct member *m, const void *unused)
{
    (void)unused;
    NEXT(ctl_fn *, "epoll_ctl")(set->fd, EPOLL_CTL_ADD, m->fd, &m->event);
    take_off(set, m);
}

void pre_epoll_plain(int fd)
{
    each_set(fd, to_kernel, NULL);
}

static void forget(struct set *set, struct member *m, const void *s)
{
    int other = pre_another(s, m->fd);
    if (other < 0 || find(set, other)) {
        take_off(set, m);
    } else {
        m->fd = other;
        m->orphan = true;
    }
    changed(set); /* who sleeps holds a reference to the socket */
}

void pre_epoll_forget(int fd, const struct pre_socket *s)
{
    each_set(fd, forget, s);
}

static void use_up(struct set *set, struct member *m, const void *events)
{
    if (!(m->told & *(const uint32_t *)events))
        return;
    m->told &= ~*(const uint32_t *)events;
    changed(set);
}

void pre_epoll_used_up(int fd, uint32_t events)
{
    if (atomic_load_explicit(&edges, memory_order_relaxed))
        each_set(fd, use_up, &events);
}

void pre_epoll_close(int epfd)
{
    if (!atomic_load_explicit(&sets, memory_order_relaxed))
        return;
    struct set *set = lock_set(epfd);
    if (!set)
        return;
    end(set);
    pthread_mutex_unlock(&set->lock);
}

/* What to look for now. Lock held. */
static struct pollfd asked(const struct member *m)
{
    uint32_t want = m->event.events & ~m->told;
    bool nothing = !m->event.events || (m->told & ALWAYS);
    return (struct pollfd){nothing ? -1 : m->fd, (short)(want & 0x7fff), 0};
}

/* Lock held; members may have changed since they were looked at. */
static int report(struct set *set, const struct pollfd *fds, unsigned count,
                  struct epoll_event *events, int most)
{
    int found = 0;
    unsigned first = set->first++;
    for (unsigned i = 0; i < count && found < most; i++) {
        const struct pollfd *p = &fds[(first + i) % count];
        if (!p->revents || p->revents & POLLNVAL)
            continue;
        struct member *m = find(set, p->fd);
        if (!m || !m->event.events)
            continue;
        uint32_t is = (uint32_t)(uint16_t)p->revents & (m->event.events | ALWAYS) & ~m->told;
        if (!is)
            continue;
        events[found++] = (struct epoll_event){is, m->event.data};
        if (m->event.events & EPOLLET)
            m->told |= is;
        if (m->event.events & EPOLLONESHOT)
            m->event.events = 0;
    }
    return found;
}

/* What the kernel has, without our own news. */
static int kernel_wait(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
    int n = NEXT(wait_fn *, "epoll_wait")(epfd, events, most, timeout_ms), kept = 0;
    for (int i = 0; i < n; i++)
        if (events[i].data.u64 != CHANGE)
            events[kept++] = events[i];
    return n < 0 ? n : kept;
}

/* Lock held. @return whether all that slept when members changed have woken since */
static bool back(struct set *set, unsigned version)
{
    if (version == set->version)
        set->waiting--;
    else
        set->behind--;
    free_if_left(set);
    return !set->behind;
}

/* @return events that the set has, of what pre_poll() found */
static int take(struct set *set, int epfd, unsigned version, const struct pollfd *fds,
                unsigned count, struct epoll_event *events, int most)
{
    int r = 0;
    uint64_t times;
    pthread_mutex_lock(&set->lock);
    bool all = back(set, version);
    if (set->fd == epfd) {
        if (all && fds[count].revents)
            syscall(SYS_read, set->change, &times, sizeof times);
        r = count ? report(set, fds, count, events, most) : 0;
    }
    pthread_mutex_unlock(&set->lock);
    return r;
}

/* Notes that this thread is about to wait. Lock held. @return NULL: no memory */
static struct pollfd *list(struct set *set, int epfd, struct pollfd *few)
{
    struct pollfd *fds = set->count > FEW ? malloc((set->count + 1) * sizeof *fds) : few;
    if (!fds)
        return NULL;
    for (unsigned i = 0; i < set->count; i++)
        fds[i] = asked(&set->members[i]);
    fds[set->count] = (struct pollfd){epfd, POLLIN, 0};
    set->waiting++;
    return fds;
}

/* @return events; 0: look again, or the time is over; -1 */
static int look(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
    struct pollfd few[FEW + 1];
    struct set *set = pre_any() ? make_set(epfd) : NULL;
    if (!set)
        return kernel_wait(epfd, events, most, timeout_ms);
    struct pollfd *fds = list(set, epfd, few);
    unsigned count = set->count, version = set->version;
    pthread_mutex_unlock(&set->lock);
    if (!fds) {
        errno = ENOMEM;
        return -1;
    }
    int r = pre_poll(fds, count + 1, timeout_ms), saved = errno;
    int found = take(set, epfd, version, fds, count, events, r > 0 ? most : 0);
    errno = saved;
    if (r > 0) {
        r = found;
        if (fds[count].revents && r < most) {
            int more = kernel_wait(epfd, events + r, most - r, 0);
            r = more > 0 ? r + more : r ? r : more;
        }
    }
    if (fds != few)
        free(fds);
    return r;
}

static bool any_ours(int epfd)
{
    if (!atomic_load_explicit(&sets, memory_order_relaxed))
        return false;
    struct set *set = lock_set(epfd);
    if (set)
        pthread_mutex_unlock(&set->lock);
    return set != NULL;
}

/* Without a mask nothing is lost by waiting for ours, too, that may come later. */
static bool is_seen(int epfd, const sigset_t *mask)
{
    return any_ours(epfd) || (!mask && pre_any());
}

static int wait_for(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
    uint64_t start = pre_now_ms();
    int r;
    if (!events || most <= 0) {
        errno = EINVAL;
        return -1;
    }
    do
        r = look(epfd, events, most, pre_left(start, timeout_ms));
    while (r == 0 && pre_left(start, timeout_ms) != 0);
    return r;
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int most, int timeout)
{
    return wait_for(epfd, events, most, timeout);
}

static int wait_masked(int epfd, struct epoll_event *events, int most, int timeout_ms,
                       const sigset_t *mask)
{
    sigset_t before;
    if (!pre_mask(mask, &before)) {
        errno = EINTR;
        return -1;
    }
    int r = wait_for(epfd, events, most, timeout_ms);
    pre_mask_restore(mask, &before);
    return r;
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int most, int timeout,
                       const sigset_t *mask)
{
    if (is_seen(epfd, mask))
        return wait_masked(epfd, events, most, timeout, mask);
    return NEXT(int (*)(int, struct epoll_event *, int, int, const sigset_t *),
                "epoll_pwait")(epfd, events, most, timeout, mask);
}

int epoll_pwait2(int epfd, struct epoll_event *events, int most, const struct timespec *timeout,
                 const sigset_t *mask);
EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int most,
                        const struct timespec *timeout, const sigset_t *mask)
{
    if (is_seen(epfd, mask))
        return wait_masked(epfd, events, most, pre_ms(timeout), mask);
    typedef int next_fn(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
    next_fn *next = NEXT(next_fn *, "epoll_pwait2");
    if (next)
        return next(epfd, events, most, timeout, mask);
    errno = ENOSYS;
    return -1;
}

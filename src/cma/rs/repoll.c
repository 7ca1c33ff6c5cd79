/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repoll: sets of sockets of both kinds, level triggered (EPOLLET is taken, and not needed). The
 * number of a set is a descriptor that nothing else is done with. Who waits has a copy of the
 * members; repoll_ctl() makes another version and wakes all that wait, who copy again.
 */
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdlib.h>

struct member {
    int fd;
    struct epoll_event event; /* events 0: one shot, which was fired */
};

struct set {
    struct list link;
    int fd;
    pthread_mutex_t lock;
    struct member *members;
    unsigned count, room, first; /* first: whose turn it is to be told of first */
    atomic_uint version;         /* changes with the lock held */
    struct list waiters;         /* struct rs_waiter of threads that have a copy */
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list sets = {&sets, &sets};

static struct set *find(int fd)
{
    struct set *found = NULL;
    pthread_mutex_lock(&sets_lock);
    for (struct list *l = sets.next; l != &sets && !found; l = l->next) {
        struct set *set = container_of(l, struct set, link);
        found = set->fd == fd ? set : NULL;
    }
    pthread_mutex_unlock(&sets_lock);
    return found;
}

int repoll_create(int flags)
{
    if (flags & ~EPOLL_CLOEXEC)
        return rs_fail(EINVAL);
    struct set *set = calloc(1, sizeof *set);
    if (!set)
        return -1;
    long fd = sys_eventfd(0, EFD_NONBLOCK);
    if (fd < 0) {
        free(set);
        return rs_fail((int)-fd);
    }
    set->fd = (int)fd;
    list_init(&set->waiters);
    pthread_mutex_init(&set->lock, NULL);
    pthread_mutex_lock(&sets_lock);
    list_add_tail(&sets, &set->link);
    pthread_mutex_unlock(&sets_lock);
    return set->fd;
}

bool rs_repoll_close(int fd)
{
    struct set *set = find(fd);
    if (!set)
        return false;
    pthread_mutex_lock(&sets_lock);
    list_del(&set->link);
    pthread_mutex_unlock(&sets_lock);
    sys_close(set->fd);
    pthread_mutex_destroy(&set->lock);
    free(set->members);
    free(set);
    return true;
}

void rs_repoll_forked(void)
{
    pthread_mutex_init(&sets_lock, NULL);
    list_init(&sets);
}

/* Lock held. */
static struct member *member_of(struct set *set, int fd)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->members[i].fd == fd)
            return &set->members[i];
    return NULL;
}

/* Lock held. */
static void take_off(struct set *set, struct member *member)
{
    if (member)
        *member = set->members[--set->count];
}

void rs_repoll_forget(int fd)
{
    pthread_mutex_lock(&sets_lock);
    for (struct list *l = sets.next; l != &sets; l = l->next) {
        struct set *set = container_of(l, struct set, link);
        pthread_mutex_lock(&set->lock);
        take_off(set, member_of(set, fd));
        pthread_mutex_unlock(&set->lock);
    }
    pthread_mutex_unlock(&sets_lock);
}

static int grow(struct set *set)
{
    if (set->count < set->room)
        return 0;
    unsigned room = set->room ? 2 * set->room : 16;
    struct member *members = realloc(set->members, room * sizeof *members);
    if (!members)
        return -ENOMEM;
    set->members = members;
    set->room = room;
    return 0;
}

/* Lock held. */
static int change(struct set *set, int op, int fd, const struct epoll_event *event)
{
    struct member *member = member_of(set, fd);
    switch (op) {
    case EPOLL_CTL_ADD:
        if (member)
            return -EEXIST;
        if (grow(set) < 0)
            return -ENOMEM;
        set->members[set->count++] = (struct member){fd, *event};
        return 0;
    case EPOLL_CTL_MOD:
        if (!member)
            return -ENOENT;
        member->event = *event;
        return 0;
    case EPOLL_CTL_DEL:
        if (!member)
            return -ENOENT;
        take_off(set, member);
        return 0;
    default:
        return -EINVAL;
    }
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    struct set *set = find(epfd);
    if (!set || (!rs_get(fd) && sys_fcntl(fd, F_GETFD, 0) < 0))
        return rs_fail(EBADF);
    if (fd == epfd || (!event && op != EPOLL_CTL_DEL))
        return rs_fail(EINVAL);
    pthread_mutex_lock(&set->lock);
    int r = change(set, op, fd, event);
    atomic_fetch_add(&set->version, 1);
    for (struct list *l = set->waiters.next; l != &set->waiters; l = l->next)
        rs_wake(container_of(l, struct rs_waiter, link)->wake);
    pthread_mutex_unlock(&set->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

/*
 * What rpoll() found, as events; members may have changed meanwhile. One of the kernel's that was
 * closed leaves the set here, unless its number may be another's by now.
 */
static int report(struct set *set, const struct pollfd *fds, unsigned count,
                  const struct rs_version *v, struct epoll_event *events, int maxevents)
{
    int found = 0;
    pthread_mutex_lock(&set->lock);
    bool same = atomic_load(v->now) == v->seen;
    unsigned first = set->first++;
    for (unsigned i = 0; i < count && found < maxevents; i++) {
        const struct pollfd *p = &fds[(first + i) % count];
        struct member *m = p->revents ? member_of(set, p->fd) : NULL;
        if (m && p->revents & POLLNVAL) {
            if (same)
                take_off(set, m);
        } else if (m && m->event.events) {
            events[found++] = (struct epoll_event){(uint32_t)(uint16_t)p->revents, m->event.data};
            if (m->event.events & EPOLLONESHOT)
                m->event.events = 0;
        }
    }
    pthread_mutex_unlock(&set->lock);
    return found;
}

/* A copy of the members, of which @p waiter is told if they change. @return NULL: no memory */
static struct pollfd *copy(struct set *set, unsigned *count, struct rs_version *v,
                           struct rs_waiter *waiter)
{
    pthread_mutex_lock(&set->lock);
    *count = set->count;
    *v = (struct rs_version){&set->version, atomic_load(&set->version)};
    struct pollfd *fds = malloc((*count + 1) * sizeof *fds);
    for (unsigned i = 0; fds && i < *count; i++) {
        uint32_t asked = set->members[i].event.events;
        fds[i] = (struct pollfd){asked ? set->members[i].fd : -1, (short)(asked & 0x7fff), 0};
    }
    if (fds)
        list_add_tail(&set->waiters, &waiter->link);
    pthread_mutex_unlock(&set->lock);
    return fds;
}

/* @return events, 0 if the time is over or the set has changed, -errno */
static int wait_once(struct set *set, struct epoll_event *events, int maxevents, int timeout)
{
    struct rs_waiter waiter = {.wake = rs_wake_fd()};
    struct rs_version version;
    unsigned count;
    struct pollfd *fds = copy(set, &count, &version, &waiter);
    if (!fds)
        return -ENOMEM;
    int r = rs_poll(fds, count, timeout, &version);
    pthread_mutex_lock(&set->lock);
    list_del(&waiter.link);
    pthread_mutex_unlock(&set->lock);
    if (r > 0)
        r = report(set, fds, count, &version, events, maxevents);
    free(fds);
    return r;
}

int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
    struct set *set = find(epfd);
    if (!set)
        return rs_fail(EBADF);
    if (!events || maxevents <= 0)
        return rs_fail(EINVAL);
    uint64_t end = rs_now_us() + (uint64_t)(timeout < 0 ? 0 : timeout) * 1000;
    for (;;) {
        uint64_t now = rs_now_us();
        int left = timeout < 0 ? -1 : now < end ? (int)((end - now + 999) / 1000) : 0;
        int r = wait_once(set, events, maxevents, left);
        if (r < 0)
            return rs_fail(-r);
        if (r > 0 || (timeout >= 0 && rs_now_us() >= end))
            return r;
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/rs_numbers.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic(struct pre_socket *) numbers[RS_NUMBERS];
static atomic_int top; /* numbers below it were ever in use */

/* Sockets are used again and never freed: a thread may look at one that has just gone. */
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pre_socket *free_sockets;
static pid_t owner;

bool pre_own_process(void)
{
    return (pid_t)syscall(SYS_getpid) == owner;
}

/* A connection stays with the parent: here its number is a socket that is not connected. */
static void in_child(void)
{
    owner = (pid_t)syscall(SYS_getpid);
    pthread_mutex_init(&free_lock, NULL);
    for (int fd = 0, end = atomic_load(&top); fd < end; fd++)
        atomic_store(&numbers[fd], NULL);
    atomic_store(&top, 0);
}

__attribute__((constructor)) static void start(void)
{
    owner = (pid_t)syscall(SYS_getpid);
    pthread_atfork(NULL, NULL, in_child);
}

static void unref(struct pre_socket *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    int saved = errno;
    if (s->rs >= 0)
        rclose(s->rs);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_lock(&free_lock);
    s->free = free_sockets;
    free_sockets = s;
    pthread_mutex_unlock(&free_lock);
    errno = saved;
}

/** @return a reference to what the number stands for */
static struct pre_socket *ref(int fd)
{
    for (;;) {
        struct pre_socket *s = atomic_load(&numbers[fd]);
        if (!s)
            return NULL;
        unsigned refs = atomic_load(&s->refs);
        while (refs && !atomic_compare_exchange_weak(&s->refs, &refs, refs + 1))
            ;
        if (refs && atomic_load(&numbers[fd]) == s)
            return s;
        if (refs)
            unref(s);
    }
}

bool pre_any(void)
{
    return atomic_load_explicit(&top, memory_order_relaxed) > 0;
}

struct pre_socket *pre_get(int fd)
{
    if (fd < 0 || fd >= RS_NUMBERS || !atomic_load(&numbers[fd]))
        return NULL;
    pre_shield();
    struct pre_socket *s = ref(fd);
    if (!s)
        pre_unshield();
    return s;
}

void pre_put(struct pre_socket *s)
{
    unref(s);
    pre_unshield();
}

struct pre_socket *pre_new(int rs, int domain, enum pre_state state)
{
    pre_shield();
    pthread_mutex_lock(&free_lock);
    struct pre_socket *s = free_sockets;
    if (s)
        free_sockets = s->free;
    pthread_mutex_unlock(&free_lock);
    if (!s && !(s = calloc(1, sizeof *s))) {
        pre_unshield();
        return NULL;
    }
    s->rs = rs;
    s->domain = domain;
    s->own_len = s->peer_len = 0;
    atomic_store(&s->state, state);
    atomic_store(&s->duplicated, false);
    atomic_store(&s->error, 0);
    atomic_store(&s->recv_ms, 0);
    atomic_store(&s->send_ms, 0);
    pthread_mutex_init(&s->lock, NULL);
    atomic_store(&s->refs, 1);
    return s;
}

void pre_set(int fd, struct pre_socket *s)
{
    if (fd < 0 || fd >= RS_NUMBERS)
        return;
    if (s)
        atomic_fetch_add(&s->refs, 1);
    int end = atomic_load(&top);
    while (s && end <= fd && !atomic_compare_exchange_weak(&top, &end, fd + 1))
        ;
    struct pre_socket *old = atomic_exchange(&numbers[fd], s);
    if (old)
        unref(old);
}

int pre_another(const struct pre_socket *s, int fd)
{
    int end = atomic_load(&s->duplicated) ? atomic_load(&top) : 0;
    for (int other = 0; other < end; other++)
        if (other != fd && atomic_load(&numbers[other]) == s)
            return other;
    return -1;
}

void pre_release(struct pre_socket *s, void (*each)(int fd))
{
    for (int fd = 0, end = atomic_load(&top); fd < end; fd++) {
        struct pre_socket *old = s;
        if (!atomic_compare_exchange_strong(&numbers[fd], &old, NULL))
            continue;
        each(fd);
        unref(s);
    }
}
